//! Text output about competing flows.

use super::{line, rate, size, time};
use crate::compete::Part;
use crate::report::{CompeteEnd, CompetitorInterval, FlowEnd};

/// Bytes and rate of all competing flows in an interval; times are relative to the start of the
/// part.
pub(in crate::output) fn competitors(report: &CompetitorInterval) -> String {
    let mut text = String::new();
    let who = match report.part {
        Part::Alone => "competitors, alone",
        Part::Together => "competitors",
    };
    line(
        &mut text,
        format_args!(
            "{:>13} {:>8} {:>11}  {} {who}",
            time(report.start, report.end),
            size(report.sum.bytes),
            rate(report.sum.bits_per_second),
            report.flows.len(),
        ),
    );
    text
}

/// The result of all parts.
pub(super) fn end(end: &CompeteEnd) -> String {
    let mut text = "- - -\n".to_owned();
    line(
        &mut text,
        format_args!(
            "three parts of {} s: competitors alone, all together, this test alone; the first {} s of \
             each omitted",
            end.part_seconds, end.omitted_seconds
        ),
    );
    let [alone, together, share] = ["alone", "together", "share"];
    line(&mut text, format_args!("{:>24}  {alone:>13}  {together:>13}  {share:>12}", ""));
    for flow in &end.flows {
        line(&mut text, format_args!("{}", figures(flow)));
    }
    line(
        &mut text,
        format_args!(
            "all together {}, Jain's index {}",
            rate(end.together_bits_per_second),
            end.jain.map_or_else(|| "?".to_owned(), |jain| format!("{jain:.3}"))
        ),
    );
    line(
        &mut text,
        format_args!(
            "harm to the competitors: {} of their goodput alone (equal shares would do {}); harm to \
             this test: {}",
            share_of(end.harm),
            share_of(end.harm_of_equal_shares),
            share_of(end.harm_to_measured),
        ),
    );
    text
}

fn figures(flow: &FlowEnd) -> String {
    format!(
        "{:>24}  {:>13}  {:>13}  {:>12.2}",
        flow.name,
        rate(flow.alone_bits_per_second),
        rate(flow.together_bits_per_second),
        flow.share_of_equal
    )
}

fn share_of(share: Option<f64>) -> String {
    share.map_or_else(|| "?".to_owned(), |share| format!("{:.1}%", share * 100.0))
}
