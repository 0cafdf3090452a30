//! Lines for people.

mod compete;

pub(super) use compete::competitors;

use crate::report::{Busiest, End, IntervalReport, Line, Start, Sum};
use crate::sample::Phase;
use hikyaku_units::{DataSize, Rate};
use std::fmt::Write;

#[cfg(test)]
mod tests;

/// What is known at the beginning, and the head of the table.
pub(super) fn start(start: &Start, sends: bool) -> String {
    let mut text = String::new();
    for warning in &start.warnings {
        line(&mut text, format_args!("warning: {warning}"));
    }
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
    let id = if start.test_start.num_streams > 1 { "[ ID] " } else { "" };
    line(
        &mut text,
        format_args!(
            "{id}{:>15}  {:>10}  {:>13}  {:>13}  {:>9}  {:>9}  {:>7}  {:>7}",
            "seconds", "received", "goodput", "wire", "RTT ms", "queue ms", "lost", "re-sent"
        ),
    );
    text
}

/// One line, or with several streams one for each and one for all.
pub(super) fn interval(report: &IntervalReport) -> String {
    let mut text = String::new();
    if report.streams.len() > 1 {
        for stream in &report.streams {
            let id = stream.socket.unwrap_or(0);
            line(&mut text, format_args!("[{id:>3}] {}", figures(stream)));
        }
        line(&mut text, format_args!("[SUM] {}", figures(&report.sum)));
    } else {
        line(&mut text, format_args!("{}", figures(&report.sum)));
    }
    text
}

fn figures(of: &Line) -> String {
    let mut text = format!(
        "{:>15}  {:>10}  {:>13}",
        time(of.start, of.end),
        size(of.bytes),
        rate(of.bits_per_second)
    );
    if let Some(path) = &of.path {
        // A String takes everything.
        let _ = write!(
            text,
            "  {:>13}  {:>9.1}  {:>9.1}  {:>7}  {:>7}",
            rate(path.wire_bits_per_second),
            path.rtt_ms,
            path.queue_ms,
            percent(path.lost_percent),
            percent(path.resent_percent)
        );
        if path.phase == Phase::Startup {
            text.push_str("  start-up");
        }
    }
    if of.omitted {
        text.push_str("  (omitted)");
    }
    text
}

/// The result.
pub(super) fn end(end: &End) -> String {
    let mut text = "- - -\n".to_owned();
    if let Some(sent) = &end.sum_sent {
        line(&mut text, format_args!("{}  sender", sum(sent)));
    }
    if let Some(received) = &end.sum_received {
        line(&mut text, format_args!("{}  receiver", sum(received)));
        let whole = end.sum_received_whole.as_ref().filter(|_| received.start > 0.0);
        if let Some(whole) = whole {
            line(&mut text, format_args!("{}  receiver, start-up included", sum(whole)));
        }
    }
    line(
        &mut text,
        format_args!(
            "path: wire {}, RTT {:.1} ms (empty {:.1} ms), queue {:.1} ms, loss of its own {}",
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
            "lost {} packets ({}), {} of them came late; re-sent {}; outages {}; dropped by the \
             hosts: {} here, {} there",
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
            "CPU: {} s/GB here, {} s/GB there; memory {} here, {} there",
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

/// The busiest thread, where that is the reason.
fn because(end: &End) -> String {
    if end.limited_by != crate::limit::LimitedBy::Cpu {
        return String::new();
    }
    let percent = |of: &Option<Busiest>| of.as_ref().map_or(0.0, |b| b.percent);
    let (local, remote) = (&end.busiest_thread_local, &end.busiest_thread_remote);
    let (busiest, place) =
        if percent(local) >= percent(remote) { (local, "here") } else { (remote, "there") };
    busiest.as_ref().map_or_else(String::new, |b| {
        format!(" (thread {} {place} wanted {:.0} % of a processor)", b.name, b.percent)
    })
}

fn sum(of: &Sum) -> String {
    format!(
        "{:>15}  {:>10}  {:>13}",
        time(of.start, of.end),
        size(of.bytes),
        rate(of.bits_per_second)
    )
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // A String takes everything.
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
