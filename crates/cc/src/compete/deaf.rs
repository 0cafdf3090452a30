//! Whether others answer to loss at all, and what one more of those that do not would send.
//!
//! BBR, version 1, overflows a short queue every eight round trips whatever it loses: who answers to every
//! overflow there has nothing in the end. So whoever has next to nothing of what the path has carried, and
//! goes on losing packets, sends as one more BBR flow would
//! (draft-cardwell-iccrg-bbr-congestion-control-00, 4.1 and 4.3.4): what was delivered lately, and a
//! quarter more for one round in eight; but never more than three tenths of what it has carried. So
//! much is taken from those who do answer, if there are so many of them that it looks the same. Where one of them
//! has most of the path little is lost for long; it shows in how its probes lengthen the queue.

use crate::filters::quantile;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use libm::{fmax, fmin};

/// Rounds that are looked at. Flows that answer to loss overflow a queue once in many of them.
const ROUNDS: usize = 24;
/// In so many of them, at least, there was loss; twice as many as long as nobody else has been seen.
const LOSSY: usize = 3;
/// Loss of so much and more: with it CUBIC has a window of some twenty packets (RFC 9438, 5.1).
const DEAF: f64 = 0.004;
/// Where this much is lost the queue may be full all the time, so that loss does not go by its length.
const FULL: f64 = 0.03;
/// With less than this they answer, or are gone.
const HEARING: f64 = 0.002;
/// Of what the path has carried, this is next to nothing.
const LITTLE: f64 = 0.2;
/// And this is enough. Beside flows of BBR start-up finds 12 - 83 % of the path, as they are just then: in the lab,
/// beside four at 1 Gbit/s with half a bandwidth-delay product, this is 35 - 120 % of an equal share. With twice as
/// much they kept two thirds of what one more of them leaves.
const FAIR_PART: f64 = 0.3;
/// So much more is lost where the queue is long, if it is lost because it is.
const OVERFLOWED: u64 = 3;
/// A flow of BBR that has most of the path looks for more every eight round trips: this share of the queue, or
/// more, is there for a round or two, and gone then. TCP that answers to loss fills it slowly, and empties it at
/// once.
const PULSE: f64 = 0.2;
/// So many rounds before and after it are compared with.
const ASIDE: usize = 3;
/// Before and after are alike in that the one is at least this share of the other: a queue that grew and overflowed is
/// not longer for a moment.
const ALIKE: f64 = 0.5;
/// So many of them in all rounds are no chance; and so many are still heard where one is cut off at an end of them.
const PULSES: usize = 3;
const STILL: usize = 2;
/// Fewer packets say nothing.
const ENOUGH_PACKETS: u64 = 100;
/// The largest of so many rounds is what can be delivered.
const LATELY: usize = 10;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Products of rate and round trip that may be under way.
const WINDOW: f64 = 2.0;

/// A smaller share of the path is measured too coarsely.
const TELLING: f64 = 0.1;
/// So many drains tell in their middle what the path carries for all. Where others grow in a drain it seems to be three
/// times as much: the most of all drains let us take all beside one flow of BBR.
const DRAINS: usize = 6;
/// Of two in the middle the smaller.
const MIDDLE: f64 = 0.49;

/// What the last rounds delivered and lost.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    rounds: VecDeque<Heard>,
    /// We have next to nothing, and what says that it is their doing.
    starved: Option<Sign>,
    /// The phase of the cycle, if they are deaf.
    phase: Option<usize>,
    /// The most that the path has carried for us.
    capacity: f64,
    /// What it carries for all, as the last drains have shown it.
    carries: VecDeque<f64>,
}

/// What says that others do not answer to loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sign {
    /// What overflows is lost all the time.
    Loss,
    /// The queue goes as the probes of one flow of BBR make it go.
    Probes,
}

/// A round, in packets, seconds, bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Packets, and of them lost.
    pub(crate) seen: (u64, u64),
    pub(crate) queue: f64,
    pub(crate) rate: f64,
}

/// Whether others have been seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Company {
    #[default]
    None,
    Others,
}

impl Neighbours {
    pub(crate) const fn new() -> Self {
        Self {
            rounds: VecDeque::new(),
            starved: None,
            phase: None,
            capacity: 0.0,
            carries: VecDeque::new(),
        }
    }

    /// Whether it looks as if they were deaf: next to nothing is left for us, and what there is suffers.
    pub(crate) const fn starve_us(&self) -> bool {
        self.starved.is_some() || self.phase.is_some()
    }

    /// Whether it looks so by how the queue goes.
    pub(crate) fn pulse(&self) -> bool {
        self.starved == Some(Sign::Probes)
    }

    /// The path has carried so many bytes a second.
    pub(crate) fn carried(&mut self, rate: f64) {
        self.capacity = fmax(self.capacity, rate);
    }

    /// The most that it has carried.
    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity
    }

    /// A drain at this rate has left this share of what should have been gone, were we alone: the rest is our
    /// share of the path.
    pub(crate) fn kept(&mut self, rate: f64, kept: f64) {
        let carries = rate / (1.0 - kept);
        if 1.0 - kept > TELLING && carries > self.capacity {
            self.carries.push_back(carries);
            if self.carries.len() > DRAINS {
                self.carries.pop_front();
            }
        }
    }

    /// What the path carries for all who are on it, as far as that has been seen.
    pub(crate) fn bottleneck(&self) -> f64 {
        let mut carries: Vec<f64> = self.carries.iter().copied().collect();
        fmax(quantile(&mut carries, MIDDLE).unwrap_or(0.0), self.capacity)
    }

    // spec: rate-6
    /// A round is over.
    pub(crate) fn on_round(&mut self, heard: Heard, company: Company) {
        self.rounds.push_back(heard);
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
        if self.rounds.len() < ROUNDS {
            return;
        }
        let all: u64 = self.rounds.iter().map(|round| round.seen.0).sum();
        let lost: u64 = self.rounds.iter().map(|round| round.seen.1).sum();
        let share = if all < ENOUGH_PACKETS { 0.0 } else { lost as f64 / all as f64 };
        let lossy = self.rounds.iter().filter(|round| round.seen.1 > 0).count();
        let has_little = self.lately() < LITTLE * self.capacity;
        let lasts = lossy >= if company == Company::Others { LOSSY } else { 2 * LOSSY };
        let is_full = company == Company::Others && share > FULL;
        let pulses = self.pulses();
        self.starved = match has_little {
            true if pulses >= PULSES => Some(Sign::Probes),
            true if share > DEAF && lasts && (is_full || self.is_overflow()) => Some(Sign::Loss),
            _ => None,
        };
        self.phase = match (company, self.phase) {
            (Company::None, _) => None,
            (Company::Others, None) => self.starved.map(|_| 0),
            (Company::Others, Some(phase)) => {
                (share > HEARING || pulses >= STILL).then_some((phase + 1) % CYCLE.len())
            }
        };
    }

    /// Whether next to all is lost in the rounds with the longer queues. What the path loses by itself is lost
    /// in any round.
    fn is_overflow(&self) -> bool {
        let mut queues: Vec<f64> = self.rounds.iter().map(|round| round.queue).collect();
        let Some(middle) = quantile(&mut queues, 0.5) else { return false };
        let lost = |is_long: bool| -> u64 {
            let those = self.rounds.iter().filter(|round| (round.queue > middle) == is_long);
            those.map(|round| round.seen.1).sum()
        };
        lost(true) > OVERFLOWED * lost(false)
    }

    /// How often the queue was longer for a moment.
    fn pulses(&self) -> usize {
        let least = |range: core::ops::Range<usize>| {
            self.rounds.range(range).map(|round| round.queue).fold(f64::INFINITY, fmin)
        };
        let (mut pulses, mut at) = (0, 1);
        while at + 1 < self.rounds.len() {
            let queue = self.rounds[at].queue;
            let before = least(at.saturating_sub(ASIDE)..at);
            let after = least(at + 1..(at + 1 + ASIDE).min(self.rounds.len()));
            let rest = fmax(before, after);
            if rest < (1.0 - PULSE) * queue && fmin(before, after) > ALIKE * rest {
                pulses += 1;
                at += ASIDE;
            } else {
                at += 1;
            }
        }
        pulses
    }

    /// Bytes a second to send, and the bytes that may be under way, if they are deaf.
    pub(crate) fn pace(&self, round_trip: f64) -> Option<(f64, f64)> {
        let phase = self.phase?;
        let rate = fmin(self.lately(), FAIR_PART * self.capacity);
        Some((CYCLE[phase] * rate, WINDOW * rate * round_trip))
    }

    /// What has been delivered in one of the last rounds, at the most.
    fn lately(&self) -> f64 {
        self.rounds.iter().rev().take(LATELY).map(|round| round.rate).fold(0.0, fmax)
    }
}
