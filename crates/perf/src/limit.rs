//! Decides what limited a test, from measurements of both ends.

use crate::message::{EndReport, Received, Share, bits_per_second};
use crate::plan::Plan;
use crate::sample::{PathDelta, Phase};
use crate::session::{Interval, Outcome};
use hikyaku_units::Rate;
use serde::Serialize;
use std::fmt;

#[cfg(test)]
mod tests;

/// What limited a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The rate that the user asked for with `-b`, `--wire-rate` or a fixed-rate policy.
    Target,
    /// The receive window was full.
    Receiver,
    /// A thread was running or runnable nearly all the time.
    #[serde(rename = "CPU")]
    Cpu,
    /// The path: it had a queue or loss at the sender's estimate of its capacity.
    Link,
    /// None of the others: the application had too little to send, or the test was too short to
    /// reach the capacity of the path.
    #[default]
    Application,
}

impl LimitedBy {
    /// The word of a log, which has those of copies where the meaning is the same.
    pub(crate) const fn log_word(&self) -> &'static str {
        match self {
            Self::Target => "limit",
            Self::Receiver => "target",
            Self::Cpu => "processor",
            Self::Link => "link",
            Self::Application => "source",
        }
    }
}

/// Rate limits of the sender other than the path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Targets {
    /// Payload rate of all streams together.
    pub(crate) payload: Option<Rate>,
    pub(crate) wire: Option<Rate>,
}

/// The measurements from which the limiting factor of a test (`LimitedBy`) is determined.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Facts {
    /// Achieved rate divided by the target rate.
    pub(crate) target_share: Option<f64>,
    /// Fraction of the intervals that ended with a full receive window.
    pub(crate) blocked_share: f64,
    /// Fraction of the time that the busiest thread of both ends was running or runnable.
    pub(crate) busiest_share: f64,
    /// Fraction of the intervals in which the sender had an estimate of the path's capacity.
    pub(crate) cruise_share: f64,
    /// Mean over all counted intervals.
    pub(crate) queue_ms: f64,
    pub(crate) lost_packets: u64,
}

/// At this fraction of the target rate the target counts as reached.
const TARGET_REACHED_FRACTION: f64 = 0.97;
/// At this fraction of intervals with a full receive window the receiver is the limit.
const BLOCKED_INTERVALS_FRACTION: f64 = 0.3;
/// Above this fraction of the time a thread counts as busy.
const BUSY_TIME_FRACTION: f64 = 0.9;
/// From this fraction of intervals with a known capacity on, the link may be the limit.
const CRUISE_INTERVALS_FRACTION: f64 = 0.5;
/// In milliseconds. A smaller queue is scheduling jitter of two processes on one machine.
const QUEUE_MS_MIN: f64 = 0.5;
/// A receive window counts as full when this fraction of it is in use: another flight would not
/// fit.
const FULL_WINDOW_FRACTION: f64 = 0.85;

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

    /// The verdict. Its order matters: a target that is reached explains every other symptom, and a
    /// slow reader or a busy processor causes loss and queues, not the reverse.
    pub(crate) fn verdict(&self) -> LimitedBy {
        if self.target_share.is_some_and(|share| share >= TARGET_REACHED_FRACTION) {
            LimitedBy::Target
        } else if self.blocked_share >= BLOCKED_INTERVALS_FRACTION {
            LimitedBy::Receiver
        } else if self.busiest_share > BUSY_TIME_FRACTION {
            LimitedBy::Cpu
        } else if self.cruise_share >= CRUISE_INTERVALS_FRACTION
            && (self.queue_ms > QUEUE_MS_MIN || self.lost_packets > 0)
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

/// Whether a stream's receive window was full: bytes not yet read plus bytes in flight.
fn is_blocked(interval: &Interval) -> bool {
    interval.count.streams.iter().enumerate().any(|(index, count)| {
        let in_flight = interval.path.get(index).map_or(0, |delta| delta.sample.in_flight);
        count.window > 0
            && count.unread.saturating_add(in_flight) as f64
                >= count.window as f64 * FULL_WINDOW_FRACTION
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

/// The receiver's totals, from whichever end received.
pub(crate) fn received(outcome: &Outcome) -> Option<&Received> {
    let of = |end: &EndReport| end.received.is_some();
    let end = [Some(&outcome.local), outcome.remote.as_ref()].into_iter().flatten();
    end.filter(|end| of(end)).find_map(|end| end.received.as_ref())
}

/// Payload rate that the plan allows all streams together.
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
