//! Drains that all flows make at the same time, by the calendar.
//!
//! A queue that many flows hold is emptied only if all of them drain it together. Then every flow measures the base
//! delay, and a flow that came later no longer takes the standing queue for it. A queue that remains during the drain
//! belongs to TCP flows, which fill every buffer.

use core::time::Duration;
use hikyaku_units::Instant;
use libm::{fmax, fmin};

/// Every five seconds: twice within the time for which a base delay is remembered.
const EVERY: Duration = Duration::from_secs(5);
/// The difference in delay between the nearest and the farthest sender of a bottleneck, within the supported range, and
/// as much again for clocks that differ. All drains then overlap.
const LENGTH: Duration = Duration::from_millis(250);
/// Reduction of the pacing rate in queues per drain, so that the queue is empty after half of the drain.
const SPARE: f64 = 2.0;
/// Bounds of the reduction. With less, a flow that takes a queue for the base delay would not see its error; more is not
/// needed.
const LEAST: f64 = 0.06;
const MOST: f64 = 0.5;
/// Seconds of queue below which the delay may come from the hosts and is no sign of other flows.
pub(crate) const TELLING: f64 = 0.002;

/// When to drain, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Commons {
    /// Nanoseconds of the calendar at `Instant::ZERO`.
    calendar: Option<u64>,
    stage: Stage,
    before: f64,
    lowest: f64,
    highest: f64,
    trough: Trough,
    depth: f64,
}

/// The queue of other flows: that measured from acknowledgements between the time at which the draining flows have no
/// packets in the queue and the time at which they refill it.
#[derive(Clone, Copy, Debug)]
struct Trough {
    end: Instant,
    sum: f64,
    count: u32,
    /// The lowest queue that packets met which were sent just before the middle of the drain.
    halfway: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Between,
    Draining {
        until: Instant,
    },
    /// The drained queue is refilled, so that the law continues from the same state.
    Refilling {
        until: Instant,
    },
    /// Acknowledgements of packets from the drain are outstanding.
    Listening {
        until: Instant,
    },
}

/// The result of a drain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Sight {
    /// The queue before the drain was below [`TELLING`].
    Nothing,
    /// The queue in seconds: before the drain, its minimum, and its mean in the second half, in which it should be empty.
    /// `kept` is the part that remained of the queue that one flow alone would have drained by the middle: a flow that
    /// drains alone and has three fifths of the path leaves two fifths then, and none at the end.
    Stayed { before: f64, lowest: f64, mean: f64, kept: f64 },
}

impl Commons {
    pub(crate) const fn new() -> Self {
        Self {
            calendar: None,
            stage: Stage::Between,
            before: 0.0,
            lowest: f64::INFINITY,
            highest: 0.0,
            trough: Trough::until(Instant::ZERO),
            depth: 0.0,
        }
    }

    /// A new state for a new path, with this calendar.
    pub(crate) fn afresh(&self) -> Self {
        Self { calendar: self.calendar, ..Self::new() }
    }

    /// Sets the calendar. Common drains are made only after this.
    pub(crate) const fn set_calendar(&mut self, at_zero: u64) {
        self.calendar = Some(at_zero);
    }

    /// Whether a drain is in progress or acknowledgements from it are outstanding.
    pub(crate) fn is_active(&self) -> bool {
        self.stage != Stage::Between
    }

    /// The queue before the drain, while it is drained and refilled.
    pub(crate) const fn before(&self) -> Option<f64> {
        match self.stage {
            Stage::Draining { .. } | Stage::Refilling { .. } => Some(self.before),
            Stage::Between | Stage::Listening { .. } => None,
        }
    }

    /// The factor of the pacing rate.
    pub(crate) fn share(&self) -> f64 {
        match self.stage {
            Stage::Draining { .. } => 1.0 - self.depth,
            Stage::Refilling { .. } => 1.0 + fmin(self.before / LENGTH.as_secs_f64(), self.depth),
            Stage::Between | Stage::Listening { .. } => 1.0,
        }
    }

    // spec: rate-3
    /// Begins or continues a drain if the calendar says so. `queue` is the recent standing queue, `latest` the queue that
    /// the last packets met, both in seconds.
    pub(crate) fn on_time(
        &mut self,
        now: Instant,
        round_trip: Duration,
        (queue, latest): (f64, f64),
    ) -> Option<Sight> {
        if self.is_active() {
            self.lowest = fmin(self.lowest, latest);
            self.highest = fmax(self.highest, latest);
            self.trough.on_queue(now, round_trip, latest);
        }
        match self.stage {
            Stage::Between => {
                // A drain that begins late would not overlap with those of other flows.
                if let Some(since) = self.since_slot(now).filter(|since| *since < LENGTH / 4) {
                    let until = now + (LENGTH - since);
                    self.stage = Stage::Draining { until };
                    self.trough = Trough::until(until);
                    (self.before, self.lowest, self.highest) = (queue, f64::INFINITY, 0.0);
                    self.depth = SPARE * queue / LENGTH.as_secs_f64();
                    self.depth = fmin(fmax(self.depth, LEAST), MOST);
                }
                None
            }
            Stage::Draining { until } => {
                if now >= until {
                    self.stage = Stage::Refilling { until: until + LENGTH };
                }
                None
            }
            Stage::Refilling { until } => {
                if now >= until {
                    self.stage = Stage::Listening { until: until + round_trip };
                }
                None
            }
            Stage::Listening { until } if now >= until => {
                self.stage = Stage::Between;
                Some(self.sight())
            }
            Stage::Listening { .. } => None,
        }
    }

    fn sight(&self) -> Sight {
        if self.before < TELLING {
            return Sight::Nothing;
        }
        // If simultaneous probes had just emptied the queue, it grows during the drain. Its maximum counts.
        let before = fmax(self.before, self.highest);
        let lowest = fmin(self.lowest, before);
        let due = fmin(before, self.depth * LENGTH.as_secs_f64() / 2.0);
        let halfway = if self.trough.halfway.is_finite() { self.trough.halfway } else { lowest };
        let kept = fmin(fmax(1.0 - (before - halfway) / due, 0.0), 1.0);
        Sight::Stayed { before, lowest, mean: fmax(self.trough.mean(), lowest), kept }
    }

    /// How long ago the last slot began.
    fn since_slot(&self, now: Instant) -> Option<Duration> {
        let calendar = self.calendar?.wrapping_add(now.as_nanos());
        Some(Duration::from_nanos(calendar % EVERY.as_nanos() as u64))
    }
}

impl Trough {
    const fn until(end: Instant) -> Self {
        Self { end, sum: 0.0, count: 0, halfway: f64::INFINITY }
    }

    fn on_queue(&mut self, now: Instant, round_trip: Duration, queue: f64) {
        let heard = now.before(round_trip);
        let half = self.end.before(LENGTH / 2);
        if (half..=self.end).contains(&heard) {
            self.sum += queue;
            self.count += 1;
        }
        let sent = heard.before(Duration::from_secs_f64(fmax(queue, 0.0)));
        if (half.before(LENGTH / 4)..=half).contains(&sent) {
            self.halfway = fmin(self.halfway, queue);
        }
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

#[cfg(test)]
mod tests;
