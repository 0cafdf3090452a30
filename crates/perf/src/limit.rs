//! What held a test back, decided from facts of both ends.

use crate::message::{EndReport, Received, Share, bits_per_second};
use crate::plan::Plan;
use crate::sample::{PathDelta, Phase};
use crate::session::{Interval, Outcome};
use hikyaku_units::Rate;
use serde::Serialize;
use std::fmt;

#[cfg(test)]
mod tests;

/// What held a test back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LimitedBy {
    /// The rate that the user asked for.
    Target,
    /// The receive window was full.
    Receiver,
    /// A thread wanted a processor nearly all the time.
    #[serde(rename = "CPU")]
    Cpu,
    /// A queue or loss on the path.
    Link,
    /// There was nothing to send, or no time to find out how much more there could be.
    Application,
}

/// What a sender may be held to, beside the path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Targets {
    /// Of all streams together.
    pub(crate) payload: Option<Rate>,
    pub(crate) wire: Option<Rate>,
}

/// What is known of a test.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Facts {
    /// The rate reached over the rate allowed.
    pub(crate) target_share: Option<f64>,
    /// The share of the intervals that ended with the window full.
    pub(crate) blocked_share: f64,
    /// The share of the time that the busiest thread of both ends wanted a processor.
    pub(crate) busiest_share: f64,
    /// The share of the intervals in which the sender knew the path's capacity.
    pub(crate) cruise_share: f64,
    /// Of the whole test.
    pub(crate) queue_ms: f64,
    pub(crate) lost_packets: u64,
}

const REACHED: f64 = 0.97;
const BLOCKED: f64 = 0.3;
const BUSY: f64 = 0.9;
const CRUISING: f64 = 0.5;
/// Less of a queue than this is the jitter of two processes on one machine.
const QUEUE_MS: f64 = 0.5;
/// A window is full when so much of it is in use: what comes next would not fit.
const FULL: f64 = 0.85;

impl Facts {
    pub(crate) fn of(outcome: &Outcome, targets: Targets) -> Self {
        let counted: Vec<&Interval> = outcome
            .intervals
            .iter()
            .filter(|interval| interval.count.share == Share::Counted)
            .collect();
        let sums: Vec<PathDelta> =
            counted.iter().filter_map(|interval| PathDelta::sum(&interval.path)).collect();
        let ends = [Some(&outcome.local), outcome.remote.as_ref()];
        let busiest = ends.iter().flatten().filter_map(|end| end.busiest.as_ref());
        Self {
            target_share: target_share(outcome, &sums, targets),
            blocked_share: share(&counted, |interval| is_blocked(interval)),
            busiest_share: busiest.map(|(_, share)| *share).fold(0.0, f64::max),
            cruise_share: share(&sums, |delta| delta.sample.phase != Phase::Startup),
            queue_ms: mean(sums.iter().map(|delta| delta.sample.queue_ms)),
            lost_packets: sums
                .iter()
                .fold(0, |sum, delta| sum.saturating_add(delta.sample.lost_packets)),
        }
    }

    /// The verdict. A target that is reached explains everything; a reader that does not read, and
    /// a processor that cannot do more, explain loss and queues and not the other way round.
    pub(crate) fn verdict(&self) -> LimitedBy {
        if self.target_share.is_some_and(|share| share >= REACHED) {
            LimitedBy::Target
        } else if self.blocked_share >= BLOCKED {
            LimitedBy::Receiver
        } else if self.busiest_share > BUSY {
            LimitedBy::Cpu
        } else if self.cruise_share >= CRUISING
            && (self.queue_ms > QUEUE_MS || self.lost_packets > 0)
        {
            LimitedBy::Link
        } else {
            LimitedBy::Application
        }
    }
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Target => "target",
            Self::Receiver => "receiver",
            Self::Cpu => "CPU",
            Self::Link => "link",
            Self::Application => "application",
        })
    }
}

/// Whether a stream's receive window was in use as a whole, by what is unread and what is on its
/// way.
fn is_blocked(interval: &Interval) -> bool {
    interval.count.streams.iter().enumerate().any(|(index, count)| {
        let in_flight = interval.path.get(index).map_or(0, |delta| delta.sample.in_flight);
        count.window > 0
            && count.unread.saturating_add(in_flight) as f64 >= count.window as f64 * FULL
    })
}

fn target_share(outcome: &Outcome, sums: &[PathDelta], targets: Targets) -> Option<f64> {
    let received = received(outcome)?.counted.bits_per_second();
    let seconds: f64 = sums.iter().map(|delta| delta.seconds).sum();
    let wire = sums.iter().fold(0u64, |sum, delta| sum.saturating_add(delta.sample.wire_bytes));
    let wire = bits_per_second(wire, seconds);
    let of = |reached: f64, target: Option<Rate>| {
        target.map(|target| reached / target.bits_per_sec().max(1) as f64)
    };
    let shares = [of(received, targets.payload), of(wire, targets.wire)];
    shares.into_iter().flatten().reduce(f64::max)
}

/// What the receiver counted, at whichever end it is.
pub(crate) fn received(outcome: &Outcome) -> Option<&Received> {
    let of = |end: &EndReport| end.received.is_some();
    let end = [Some(&outcome.local), outcome.remote.as_ref()].into_iter().flatten();
    end.filter(|end| of(end)).find_map(|end| end.received.as_ref())
}

/// What the plan allows all streams together.
pub(crate) fn payload_target(plan: &Plan) -> Option<Rate> {
    Some(Rate::from_bits_per_sec(plan.target?.saturating_mul(u64::from(plan.streams))))
}

fn share<T>(of: &[T], is: impl Fn(&T) -> bool) -> f64 {
    if of.is_empty() {
        return 0.0;
    }
    of.iter().filter(|item| is(item)).count() as f64 / of.len() as f64
}

fn mean(of: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = of.clone().count().max(1);
    of.sum::<f64>() / count as f64
}
