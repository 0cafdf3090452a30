//! What is reported of competitors.

use crate::compete::{Compete, CompetitorCount, Goodputs, Part, Standing, total};
use crate::message::Span;
use crate::plan::{Limit, Plan};
use crate::session::Outcome;
use serde::Serialize;

/// The competitors in an interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CompetitorInterval {
    /// Seconds since the part began.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) part: Part,
    pub(crate) flows: Vec<Share>,
    pub(crate) sum: Share,
}

/// What one or all of them got.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Share {
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
}

/// What came of all parts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CompeteEnd {
    /// The length of each part, and what was left out at its begin.
    pub(crate) part_seconds: f64,
    pub(crate) omitted_seconds: f64,
    /// The competitors in their order, then the measured.
    pub(crate) flows: Vec<FlowEnd>,
    pub(crate) jain: Option<f64>,
    /// Shares of what each side had alone.
    pub(crate) harm: Option<f64>,
    pub(crate) harm_of_equal_shares: Option<f64>,
    pub(crate) harm_to_measured: Option<f64>,
    pub(crate) together_bits_per_second: f64,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowEnd {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) alone_bits_per_second: f64,
    pub(crate) together_bits_per_second: f64,
    /// Together, over an equal share.
    pub(crate) share_of_equal: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Competitor,
    Measured,
}

/// An interval of the competitors.
pub(crate) fn competitors(count: &CompetitorCount) -> CompetitorInterval {
    let share = |bytes: u64| {
        let span = Span { start: count.start, end: count.end, bytes };
        Share { bytes, bits_per_second: span.bits_per_second() }
    };
    CompetitorInterval {
        start: count.start,
        end: count.end,
        part: count.part,
        flows: count.bytes.iter().map(|bytes| share(*bytes)).collect(),
        sum: share(count.bytes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes))),
    }
}

/// What came of it, if there were competitors and all parts ended as planned.
pub(super) fn end(outcome: &Outcome) -> Option<CompeteEnd> {
    let compete = outcome.plan.compete.as_ref()?;
    let ends = [Some(&outcome.local), outcome.remote.as_ref()];
    let standing = ends.into_iter().flatten().find_map(|end| end.standing.as_ref())?;
    Some(of_standing(standing, &outcome.plan, compete))
}

fn of_standing(standing: &Standing, plan: &Plan, compete: &Compete) -> CompeteEnd {
    let verdict = standing.verdict();
    let competitors = compete.flows().map(|group| (group.name(), Role::Competitor));
    let measured = (0..plan.streams).map(|_| ("this test".to_owned(), Role::Measured));
    let flows = standing.competitors.iter().chain(&standing.measured);
    let flows = competitors.chain(measured).zip(flows.zip(&verdict.shares));
    let flow = |((name, role), (goodputs, share)): ((String, Role), (&Goodputs, &f64))| FlowEnd {
        name,
        role,
        alone_bits_per_second: goodputs.alone,
        together_bits_per_second: goodputs.together,
        share_of_equal: *share,
    };
    CompeteEnd {
        part_seconds: match plan.limit {
            Limit::Seconds(seconds) => seconds,
            Limit::Bytes(_) => 0.0,
        },
        omitted_seconds: plan.omit,
        flows: flows.map(flow).collect(),
        jain: verdict.jain,
        harm: verdict.harm,
        harm_of_equal_shares: verdict.harm_of_equal_shares,
        harm_to_measured: verdict.harm_to_measured,
        together_bits_per_second: total(&standing.competitors).together
            + total(&standing.measured).together,
    }
}
