//! Text output.

mod compete;

pub(super) use compete::competitors;

use crate::report::{Busiest, End, IntervalReport, Line, Start, StreamEnd, Sum};
use crate::sample::Phase;
use hikyaku_units::{DataSize, Rate};
use std::fmt::Write;

#[cfg(test)]
mod tests;

/// The description of the connection and the table's header.
pub(super) fn start(start: &Start, sends: bool) -> String {
    let mut text = String::new();
    for warning in &start.warnings {
        line(&mut text, format_args!("warning: {warning}"));
    }
    text.push_str(&connection(start, sends));
    text.push_str(&head(start));
    text
}

/// Both endpoints, and what is known of the connection between them.
pub(super) fn connection(start: &Start, sends: bool) -> String {
    let mut text = String::new();
    if let Some(first) = start.connected.first() {
        let arrow = if sends { "->" } else { "<-" };
        let streams = match start.test_start.num_streams {
            1 => String::new(),
            n => format!(", {n} connections"),
        };
        line(
            &mut text,
            format_args!(
                "{} {arrow} {}{streams}; {}, {}, {} bytes a packet, handshake {:.1} ms",
                address(&first.local_host, first.local_port),
                address(&first.remote_host, first.remote_port),
                start.cipher,
                start.policy,
                start.mtu_payload,
                start.handshake_seconds * 1e3,
            ),
        );
    }
    text
}

/// The table's header.
pub(super) fn head(start: &Start) -> String {
    let id = if start.test_start.num_streams > 1 { "[ ID] " } else { "" };
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            "{id}{:>13} {:>8} {:>11} {:>11} {:>6} {:>6} {:>7}",
            "seconds", "received", "goodput", "wire", "RTT ms", "queue", "lost"
        ),
    );
    text
}

/// One line, or with several streams one line for each and one for their sum.
pub(super) fn interval(report: &IntervalReport) -> String {
    let mut text = String::new();
    let Some(sum) = report.total() else { return text };
    if report.streams.len() > 1 {
        for stream in &report.streams {
            let id = stream.socket.unwrap_or(0);
            line(&mut text, format_args!("[{id:>3}] {}", figures(stream, &SHORT_MARKS)));
        }
        line(&mut text, format_args!("[SUM] {}", figures(sum, &SHORT_MARKS)));
    } else {
        line(&mut text, format_args!("{}", figures(sum, &MARKS)));
    }
    text
}

/// Marks at the end of lines that differ from the others.
struct Marks {
    startup: &'static str,
    omitted: &'static str,
}

const MARKS: Marks = Marks { startup: " start", omitted: " omit" };
/// Shorter marks, for lines that begin with a stream or test number, to stay within 80 columns.
const SHORT_MARKS: Marks = Marks { startup: " s", omitted: " o" };

fn figures(of: &Line, marks: &Marks) -> String {
    let mut text = format!(
        "{:>13} {:>8} {:>11}",
        time(of.start, of.end),
        size(of.bytes),
        rate(of.bits_per_second)
    );
    if let Some(path) = &of.path {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            " {:>11} {:>6.1} {:>6.1} {:>7}",
            rate(path.wire_bits_per_second),
            path.rtt_ms,
            path.queue_ms,
            percent(path.lost_percent),
        );
    }
    let is_starting = of.path.as_ref().is_some_and(|path| path.phase == Phase::Startup);
    if of.omitted {
        text.push_str(marks.omitted);
    } else if is_starting {
        text.push_str(marks.startup);
    }
    text
}

/// The result. `first` is the number of the first stream.
pub(super) fn end(end: &End, first: u32) -> String {
    let mut text = "- - -\n".to_owned();
    let whole = end.sum_received_whole.as_ref();
    let whole = whole.filter(|_| end.sum_received.as_ref().is_some_and(|sum| sum.start > 0.0));
    let sums = [
        (end.sum_sent.as_ref(), "sender"),
        (end.sum_received.as_ref(), "receiver"),
        (whole, "receiver, start-up included"),
    ];
    text.push_str(&totals(&end.streams, first, &sums));
    line(
        &mut text,
        format_args!(
            "path: wire {}, RTT {:.1} ms (without queue {:.1} ms), queue {:.1} ms, non-congestion loss {}",
            rate(end.wire_bits_per_second),
            end.rtt_ms,
            end.base_rtt_ms,
            end.queue_ms,
            percent(end.ambient_loss_percent)
        ),
    );
    line(
        &mut text,
        format_args!(
            "lost {} packets ({}), {} of them spurious; retransmitted {}; outages {}; dropped by \
             socket buffers: {} local, {} remote",
            end.lost_packets,
            percent(end.lost_percent),
            end.spurious_losses,
            percent(end.resent_percent),
            end.outages,
            end.host_drops_local,
            or_unknown(end.host_drops_remote),
        ),
    );
    line(
        &mut text,
        format_args!(
            "CPU: {} s/GB local, {} s/GB remote; peak memory {} local, {} remote",
            or_unknown(end.cpu.local_seconds_per_gb.map(|s| format!("{s:.3}"))),
            or_unknown(end.cpu.remote_seconds_per_gb.map(|s| format!("{s:.3}"))),
            size(end.max_rss_local_bytes),
            or_unknown(end.max_rss_remote_bytes.map(size)),
        ),
    );
    line(&mut text, format_args!("limited by: {}{}", end.limited_by, because(end)));
    if let Some(compete) = &end.compete {
        text.push_str(&compete::end(compete));
    }
    text
}

/// What was transferred: with several streams the lines of each, as iperf3 has them, before those of all together.
fn totals(streams: &[StreamEnd], first: u32, sums: &[(Option<&Sum>, &str)]) -> String {
    let mut text = String::new();
    let mut lines = |id: &str, sums: &[(Option<&Sum>, &str)]| {
        for (of, end) in sums {
            of.iter().for_each(|of| line(&mut text, format_args!("{id}{}  {end}", sum(of))));
        }
    };
    if streams.len() <= 1 {
        lines("", sums);
        return text;
    }
    for (id, stream) in (first..).zip(streams) {
        let ends = [(stream.sender.as_ref(), "sender"), (stream.receiver.as_ref(), "receiver")];
        lines(&format!("[{id:>3}] "), &ends);
    }
    lines("[SUM] ", sums);
    text
}

/// The sum of two tests, one in each direction.
pub(super) fn both(up: &End, down: &End) -> String {
    let rates =
        [up, down].map(|end| end.sum_received.as_ref().map_or(0.0, |sum| sum.bits_per_second));
    let [up, down] = rates.map(rate);
    format!(
        "both ways: {} received, {up} by the server and {down} by the client\n",
        rate(rates.iter().sum())
    )
}

/// The busiest thread, if a processor was the limit.
fn because(end: &End) -> String {
    if end.limited_by != crate::limit::LimitedBy::Cpu {
        return String::new();
    }
    let percent = |of: &Option<Busiest>| of.as_ref().map_or(0.0, |b| b.percent);
    let (local, remote) = (&end.busiest_thread_local, &end.busiest_thread_remote);
    let (busiest, place) =
        if percent(local) >= percent(remote) { (local, "local") } else { (remote, "remote") };
    busiest.as_ref().map_or_else(String::new, |b| {
        format!(" ({place} thread {} busy {:.0} % of the time)", b.name, b.percent)
    })
}

fn sum(of: &Sum) -> String {
    format!("{:>13} {:>8} {:>11}", time(of.start, of.end), size(of.bytes), rate(of.bits_per_second))
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{arguments}");
}

fn time(start: f64, end: f64) -> String {
    format!("{start:.2}-{end:.2}")
}

fn size(bytes: u64) -> String {
    DataSize::from_bytes(bytes).to_string()
}

fn rate(bits_per_second: f64) -> String {
    Rate::from_bits_per_sec(bits_per_second as u64).to_string()
}

fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}

fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}
