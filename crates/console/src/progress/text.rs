//! Lines for people.

use super::{Counts, LimitedBy, PathFigures};
use hikyaku_units::{DataSize, Rate, counted};
use std::time::Duration;

/// How far it is, for how much longer, and what limits it.
pub(super) fn line(counts: &Counts, rate: Option<Rate>, path: &PathFigures) -> String {
    let Counts { total_files, total_bytes, files, bytes, is_counted, .. } = *counts;
    if !is_counted {
        let rate = rate.map_or_else(String::new, |rate| format!("  {rate}"));
        let files = match files < total_files {
            true => format!("{files}/{total_files}+ files"),
            false => counted(files, "file").to_string(),
        };
        return format!("counting  {}  {files}{rate}{}", so_far(counts), held_back(path));
    }
    // The other end counts, and may say anything.
    let percent = bytes.saturating_mul(100).checked_div(total_bytes).unwrap_or(0).min(100);
    let left = rate.filter(|rate| rate.bytes_per_sec() > 1.0).map_or_else(String::new, |rate| {
        let seconds = total_bytes.saturating_sub(bytes) as f64 / rate.bytes_per_sec();
        format!("  {} left", clock(seconds))
    });
    let rate = rate.map_or_else(String::new, |rate| format!("  {rate}"));
    let path = held_back(path);
    let of = counted(total_files, "file");
    format!("{percent:3} %  {}  {files}/{of}{rate}{left}{path}", so_far(counts))
}

/// Nothing has arrived for the time `still`.
pub(super) fn still_line(counts: &Counts, still: Duration) -> String {
    let (so_far, seconds) = (so_far(counts), still.as_secs());
    format!("{so_far}  nothing has arrived for {seconds} s")
}

/// How much there is, and of how much. Nothing is said of a whole that nobody knows.
fn so_far(counts: &Counts) -> String {
    let (size, total) =
        (DataSize::from_bytes(counts.bytes), DataSize::from_bytes(counts.total_bytes));
    match counts.is_counted {
        true => format!("{size} of {total}"),
        false if counts.bytes < counts.total_bytes => format!("{size} of at least {total}"),
        false => format!("{size}"),
    }
}

/// Loss, and what limits the rate; nothing, before anything is known.
fn held_back(path: &PathFigures) -> String {
    let loss = match path.lost_percent() {
        None if path.limited_by == LimitedBy::Starting => return String::new(),
        Some(loss) if path.lost_packets > 0 => format!("  loss {loss:.1} %"),
        Some(_) | None => String::new(),
    };
    let limited_by = match path.limited_by {
        LimitedBy::Starting => "starting",
        LimitedBy::Link => "limited by the link",
        LimitedBy::Source => "limited by the source",
        LimitedBy::Target => "limited by the target",
        LimitedBy::Limit => "limited by --rate",
    };
    format!("{loss}  {limited_by}")
}

/// The rate and the path in the time `passed`.
pub(super) fn stats_line(
    now: &PathFigures,
    before: &PathFigures,
    bytes: u64,
    passed: Duration,
) -> String {
    let rate = Rate::from_bytes_per_sec(bytes as f64 / passed.as_secs_f64().max(1e-3));
    let sent = now.sent_packets.saturating_sub(before.sent_packets);
    let lost = now.lost_packets.saturating_sub(before.lost_packets);
    let resent = now.resent_bytes.saturating_sub(before.resent_bytes);
    let resent = resent.checked_div(u64::from(now.packet)).unwrap_or(0);
    let percent = 100.0 * lost as f64 / (sent as f64).max(1.0);
    let (rtt, queue) = (now.rtt * 1e3, now.queue * 1e3);
    format!(
        "{rate}, re-sent {resent} packets, lost {percent:.2} %, RTT {rtt:.1} ms, queue {queue:.1} ms"
    )
}

/// Fewer bytes than this are sent in less time than the login takes, so their rate is not that of the path.
const RATED_BYTES_MIN: u64 = 1_000_000;

/// The sums at the end.
pub(super) fn summary(counts: &Counts, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    let rate = match counts.sent() {
        0..RATED_BYTES_MIN => String::new(),
        sent => format!(", {}", Rate::from_bytes_per_sec(sent as f64 / seconds.max(1e-3))),
    };
    let size = DataSize::from_bytes(counts.sent());
    let files = counted(counts.files, "file");
    let kept = match counts.kept_bytes {
        0 => String::new(),
        kept => format!("; {} did not need to be sent", DataSize::from_bytes(kept)),
    };
    format!("{files}, {size} in {seconds:.1} s{rate}{kept}")
}

/// Seconds as people read them.
pub(super) fn clock(seconds: f64) -> String {
    let seconds = seconds.min(360_000.0).ceil() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}
