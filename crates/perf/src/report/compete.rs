//! Reported figures of competing flows.

use crate::compete::{Compete, CompetitorCount, Goodputs, Part, Standing, total};
use crate::message::Span;
use crate::plan::{Limit, Plan};
use crate::session::Outcome;
use serde::Serialize;

/// The competing flows in one interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CompetitorInterval {
    /// Seconds since the part began.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) part: Part,
    pub(crate) flows: Vec<Share>,
    pub(crate) sum: Share,
}

/// Bytes and rate of one flow, or of all together.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Share {
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
}

/// The result of all parts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CompeteEnd {
    /// Length of each part, and the time omitted at the start of each.
    pub(crate) part_seconds: f64,
    pub(crate) omitted_seconds: f64,
    /// The competing flows in the order given, then the measured ones.
    pub(crate) flows: Vec<FlowEnd>,
    pub(crate) jain: Option<f64>,
    /// Harm as a fraction of the goodput alone, for each side.
    pub(crate) harm: Option<f64>,
    pub(crate) harm_of_equal_shares: Option<f64>,
    pub(crate) harm_to_measured: Option<f64>,
    pub(crate) together_bits_per_second: f64,
}

/// The result of one flow.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowEnd {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) alone_bits_per_second: f64,
    pub(crate) together_bits_per_second: f64,
    /// Goodput together, divided by an equal share.
    pub(crate) share_of_equal: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Competitor,
    Measured,
}

/// An interval of the competing flows.
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

/// The result, if there were competing flows and all parts ran to their end.
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
