//! `--csv`: a line for each interval, and one for the whole test.

use crate::report::{End, IntervalReport};

/// The first line.
pub(super) const HEAD: &str = "kind,start,end,bytes,bits_per_second,wire_bits_per_second,rtt_ms,\
                               queue_ms,lost_percent\n";

/// The line of an interval: all streams together.
pub(super) fn interval(report: &IntervalReport) -> String {
    let Some(sum) = report.total() else { return String::new() };
    let path = sum.path.as_ref();
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    format!(
        "interval,{:.3},{:.3},{},{:.0},{},{},{},{}\n",
        sum.start,
        sum.end,
        sum.bytes,
        sum.bits_per_second,
        number(path.map(|path| path.wire_bits_per_second)),
        number(path.map(|path| path.rtt_ms)),
        number(path.map(|path| path.queue_ms)),
        number(path.map(|path| path.lost_percent)),
    )
}

/// The line of the test.
pub(super) fn end(end: &End) -> String {
    let Some(sum) = &end.sum_received else { return String::new() };
    format!(
        "test,{:.3},{:.3},{},{:.0},{:.3},{:.3},{:.3},{:.3}\n",
        sum.start,
        sum.end,
        sum.bytes,
        sum.bits_per_second,
        end.wire_bits_per_second,
        end.rtt_ms,
        end.queue_ms,
        end.lost_percent,
    )
}
