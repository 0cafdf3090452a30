//! Drains that all flows make at the same time, by the calendar.
//!
//! A queue that many hold is emptied only by all of them together. Then everybody sees the base delay,
//! so that nobody who came later goes on taking a standing queue for it. And what stays in the queue all
//! the same is held by others than us: by TCP, which fills what there is.

use core::time::Duration;
use hikyaku_units::Instant;
use libm::{fmax, fmin};

/// Every five seconds: twice within the time for which a base delay is remembered.
const EVERY: Duration = Duration::from_secs(5);
/// What the slowest and the fastest way from a sender to the bottleneck differ by, in our range, and as
/// much again for calendars that differ: then all are at it together.
const LENGTH: Duration = Duration::from_millis(250);
/// What is paced less meanwhile, so that the queue is empty when half of the time is over.
const SPARE: f64 = 2.0;
/// Less is not enough where a queue is taken for the base delay, more is not needed.
const LEAST: f64 = 0.06;
const MOST: f64 = 0.5;
/// A queue below this is what hosts make; it says nothing of others.
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

/// What stands while nothing of ours does: from when on the queue of all who drain is empty until it comes back,
/// as the acknowledgements tell it.
#[derive(Clone, Copy, Debug)]
struct Trough {
    end: Instant,
    sum: f64,
    count: u32,
    /// The least that packets met which were sent just before the half of the drain.
    halfway: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Between,
    Draining {
        until: Instant,
    },
    /// What was taken from the queue comes back, so that the law finds everything as it was.
    Refilling {
        until: Instant,
    },
    /// What was sent meanwhile is still to be heard of.
    Listening {
        until: Instant,
    },
}

/// What a drain showed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Sight {
    /// There was hardly a queue before.
    Nothing,
    /// Of the queue, in seconds, so much stayed at the least, and on average while all was to be gone. `kept` is
    /// the share that stayed of what should have been gone after half of the time, if nobody else were there:
    /// who is alone in draining and has three fifths of the path leaves two fifths, and nothing in the end.
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

    /// The same calendar, on a path of which nothing is known.
    pub(crate) fn afresh(&self) -> Self {
        Self { calendar: self.calendar, ..Self::new() }
    }

    /// Without it there are no common drains.
    pub(crate) const fn set_calendar(&mut self, at_zero: u64) {
        self.calendar = Some(at_zero);
    }

    /// Whether a drain is under way, or still to be heard of.
    pub(crate) fn is_active(&self) -> bool {
        self.stage != Stage::Between
    }

    /// The queue that is drained and given back, while it is.
    pub(crate) const fn before(&self) -> Option<f64> {
        match self.stage {
            Stage::Draining { .. } | Stage::Refilling { .. } => Some(self.before),
            Stage::Between | Stage::Listening { .. } => None,
        }
    }

    /// What is left of a rate.
    pub(crate) fn share(&self) -> f64 {
        match self.stage {
            Stage::Draining { .. } => 1.0 - self.depth,
            Stage::Refilling { .. } => 1.0 + fmin(self.before / LENGTH.as_secs_f64(), self.depth),
            Stage::Between | Stage::Listening { .. } => 1.0,
        }
    }

    // spec: rate-3
    /// Looks at the calendar. `queue` is what has stood lately, `latest` what the last packets met,
    /// both in seconds.
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
                // Half a drain is no use.
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
        // Had it just been emptied, by a look of many at the same time, it comes back meanwhile: what counts is
        // the most that there was.
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
