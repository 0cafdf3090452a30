//! Lines about competitors.

use super::{line, rate, size, time};
use crate::compete::Part;
use crate::report::{CompeteEnd, CompetitorInterval, FlowEnd};

/// What they got in an interval; as the measured, by seconds since their part began.
pub(in crate::output) fn competitors(report: &CompetitorInterval) -> String {
    let mut text = String::new();
    let who = match report.part {
        Part::Alone => "competitors, alone",
        Part::Together => "competitors",
    };
    line(
        &mut text,
        format_args!(
            "{:>15}  {:>10}  {:>13}  {} {who}",
            time(report.start, report.end),
            size(report.sum.bytes),
            rate(report.sum.bits_per_second),
            report.flows.len(),
        ),
    );
    text
}

/// What came of all parts.
pub(super) fn end(end: &CompeteEnd) -> String {
    let mut text = "- - -\n".to_owned();
    line(
        &mut text,
        format_args!(
            "competitors alone, all together, this test alone: {} s each, the first {} s of each left \
             out",
            end.part_seconds, end.omitted_seconds
        ),
    );
    let [alone, together, share] = ["alone", "together", "equal shares"];
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
            "harm to the competitors: {} of what they have alone (with equal shares {}); to this \
             test: {}",
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
