//! `--prom FILE`: the figures of a test for the textfile collector of Prometheus' node_exporter.
//!
//! The collector reads files whose names end in `.prom`, without time stamps, and must never see half a file.

use crate::args::ClientArgs;
use crate::plan::Direction;
use crate::report::End;
use anyhow::Result;
use hikyaku_console::At;
use hikyaku_fs::write_whole;
use std::fmt::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A metric with its value.
struct Metric {
    /// Behind `hikyaku_perf_`.
    name: &'static str,
    help: &'static str,
    value: f64,
}

/// Writes the file that the user wants, if any. `end` is `None` if the test failed.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn keep(args: &ClientArgs, end: Option<&End>) -> Result<()> {
    let Some(path) = &args.records.prom else { return Ok(()) };
    let direction = match args.plan.direction {
        Direction::Upload => "up",
        Direction::Download => "down",
    };
    let labels = [("peer", args.host.as_str()), ("direction", direction)];
    write(path, &text(&metrics(end), &labels))
}

fn metrics(end: Option<&End>) -> Vec<Metric> {
    let metric = |name, help, value| Metric { name, help, value };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut metrics = vec![
        metric("success", "Whether the last test succeeded.", f64::from(u8::from(end.is_some()))),
        metric("run_timestamp_seconds", "When the last test ended.", since.as_secs() as f64),
    ];
    if let Some(end) = end {
        let received = end.sum_received.as_ref().map_or(0.0, |sum| sum.bits_per_second);
        metrics.extend([
            metric("received_bits_per_second", "Payload that arrived.", received),
            metric("wire_bits_per_second", "What the sender sent.", end.wire_bits_per_second),
            metric("rtt_seconds", "Smoothed round-trip time.", end.rtt_ms / 1e3),
            metric("base_rtt_seconds", "Smallest round-trip time.", end.base_rtt_ms / 1e3),
            metric("queue_seconds", "Mean delay in queues.", end.queue_ms / 1e3),
            metric("lost_ratio", "Packets declared lost.", end.lost_percent / 100.0),
            metric("resent_ratio", "Payload that was sent again.", end.resent_percent / 100.0),
        ]);
    }
    metrics
}

/// Replaces the file in one step.
fn write(path: &Path, text: &str) -> Result<()> {
    write_whole(path, text.as_bytes()).at(path.display())
}

/// The text format of Prometheus.
fn text(metrics: &[Metric], labels: &[(&str, &str)]) -> String {
    let label = |(key, value): &(&str, &str)| format!("{key}=\"{}\"", escaped(value));
    let labels = labels.iter().map(label).collect::<Vec<_>>().join(",");
    let mut text = String::new();
    for Metric { name, help, value } in metrics {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "# HELP hikyaku_perf_{name} {help}");
        let _ = writeln!(text, "# TYPE hikyaku_perf_{name} gauge");
        let _ = writeln!(text, "hikyaku_perf_{name}{{{labels}}} {value}");
    }
    text
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_leave_their_quotes() {
        let metric = Metric { name: "x", help: "A number.", value: 2.5 };
        let labels = [("peer", "a\"} 1\nb\\"), ("direction", "up")];
        let wanted = "# HELP hikyaku_perf_x A number.\n# TYPE hikyaku_perf_x gauge\n\
                      hikyaku_perf_x{peer=\"a\\\"} 1\\nb\\\\\",direction=\"up\"} 2.5\n";
        assert_eq!(text(&[metric], &labels), wanted);
        assert!(metrics(None).iter().any(|metric| metric.name == "success" && metric.value == 0.0));
    }
}
