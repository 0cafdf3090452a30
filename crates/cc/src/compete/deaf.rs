//! Whether other flows respond to loss, and the rate of one more flow that does not.
//!
//! BBR, version 1, overflows a short queue every eight round trips, whatever it loses. A flow that responds to every
//! overflow ends with nothing beside it. So a flow that has a small part of what the path has carried, and keeps losing
//! packets, sends like one more BBR flow (draft-cardwell-iccrg-bbr-congestion-control-00, 4.1 and 4.3.4): its recent
//! delivery rate, and a quarter more in one round of eight; but never more than three tenths of what the path has
//! carried. Many flows that do respond can look the same, and lose that much to it. A single BBR flow that has most of the
//! path causes little loss for a long time, and is recognised by its probes, which lengthen the queue.

use crate::filters::quantile;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use libm::{fmax, fmin};

/// Rounds that are judged. Flows that respond to loss overflow a queue once in many of them.
const ROUNDS: usize = 24;
/// Rounds with loss that are needed; twice as many while no other flow has been detected.
const LOSSY: usize = 3;
/// Loss rate from which on other flows may not respond to loss: CUBIC then has a window of some 20 packets (RFC 9438, 5.1).
const DEAF: f64 = 0.004;
/// Loss rate from which on the queue may be full all the time, so that loss does not depend on its length.
const FULL: f64 = 0.03;
/// Loss rate below which the other flows respond, or have ended.
const HEARING: f64 = 0.002;
/// Part of the largest rate below which a flow is starved.
const LITTLE: f64 = 0.2;
/// Largest rate beside flows that do not respond, as a part of the largest rate that the path has carried. Start-up beside
/// BBR finds 12 to 83 % of the path: in the lab, beside four flows at 1 Gbit/s with half a bandwidth-delay product, this
/// part is 35 to 120 % of an equal share. With twice as much they kept two thirds of what one more BBR flow leaves.
const FAIR_PART: f64 = 0.3;
/// Factor by which loss with long queues exceeds that with short ones if overflow is the cause.
const OVERFLOWED: u64 = 3;
/// Part of the queue that a probe of a BBR flow with most of the path adds: every eight round trips, for a round or two.
/// TCP that responds to loss fills the queue slowly and empties it at once.
const PULSE: f64 = 0.2;
/// Rounds before and after a probe with which it is compared.
const ASIDE: usize = 3;
/// The shorter of the queues before and after is at least this part of the longer one: a queue that grew and overflowed
/// is no probe.
const ALIKE: f64 = 0.5;
/// Probes among the judged rounds that are no coincidence, and the number that is enough later, since one may be cut off at
/// an end of the rounds.
const PULSES: usize = 3;
const STILL: usize = 2;
/// Packets that a loss rate needs.
const ENOUGH_PACKETS: u64 = 100;
/// Rounds of which the largest rate is the rate that can be delivered.
const LATELY: usize = 10;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Data in flight at most, in products of rate and round trip.
const WINDOW: f64 = 2.0;

/// Smallest share of the path that is measured well enough.
const TELLING: f64 = 0.1;
/// Drains of whose estimates of the path's total rate the median is taken. If other flows grow during a drain, its estimate
/// is three times too high: with the maximum, this flow took the whole path beside one BBR flow.
const DRAINS: usize = 6;
/// Quantile for the median: of two values in the middle the smaller one.
const MIDDLE: f64 = 0.49;

/// Deliveries and losses of the last rounds, and conclusions about other flows.
#[derive(Clone, Debug)]
pub(crate) struct Neighbours {
    rounds: VecDeque<Heard>,
    /// This flow is starved, and the sign that other flows cause it.
    starved: Option<Sign>,
    /// The phase of the cycle, if other flows do not respond to loss.
    phase: Option<usize>,
    /// The largest rate that the path has carried for this flow.
    capacity: f64,
    /// Estimates of the path's total rate from the last drains.
    carries: VecDeque<f64>,
}

/// A sign that other flows do not respond to loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sign {
    /// Overflows continue.
    Loss,
    /// The queue changes like one with the probes of a BBR flow.
    Probes,
}

/// A round, in packets, seconds, bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    /// Packets, and the lost ones among them.
    pub(crate) seen: (u64, u64),
    pub(crate) queue: f64,
    pub(crate) rate: f64,
}

/// Whether other flows have been detected.
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

    /// Whether other flows seem not to respond to loss: this flow is starved and keeps losing packets.
    pub(crate) const fn starve_us(&self) -> bool {
        self.starved.is_some() || self.phase.is_some()
    }

    /// Whether probes in the queue are the sign of it.
    pub(crate) fn pulse(&self) -> bool {
        self.starved == Some(Sign::Probes)
    }

    /// Notes a rate, in bytes a second, that the path has carried.
    pub(crate) fn carried(&mut self, rate: f64) {
        self.capacity = fmax(self.capacity, rate);
    }

    /// The largest rate that the path has carried for this flow.
    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity
    }

    /// A drain at `rate` has left the part `kept` of the queue that this flow alone would have drained. The rest is its
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

    /// Estimate of the path's total rate for all flows.
    pub(crate) fn bottleneck(&self) -> f64 {
        let mut carries: Vec<f64> = self.carries.iter().copied().collect();
        fmax(quantile(&mut carries, MIDDLE).unwrap_or(0.0), self.capacity)
    }

    // spec: rate-6
    /// Judges other flows after each round.
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

    /// Whether nearly all losses are in the rounds with the longer queues. Losses of the path itself are in all rounds.
    fn is_overflow(&self) -> bool {
        let mut queues: Vec<f64> = self.rounds.iter().map(|round| round.queue).collect();
        let Some(middle) = quantile(&mut queues, 0.5) else { return false };
        let lost = |is_long: bool| -> u64 {
            let those = self.rounds.iter().filter(|round| (round.queue > middle) == is_long);
            those.map(|round| round.seen.1).sum()
        };
        lost(true) > OVERFLOWED * lost(false)
    }

    /// The number of short peaks of the queue.
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

    /// The rate in bytes a second and the maximum data in flight, beside flows that do not respond to loss.
    pub(crate) fn pace(&self, round_trip: f64) -> Option<(f64, f64)> {
        let phase = self.phase?;
        let rate = fmin(self.lately(), FAIR_PART * self.capacity);
        Some((CYCLE[phase] * rate, WINDOW * rate * round_trip))
    }

    /// The largest rate of the last rounds.
    fn lately(&self) -> f64 {
        self.rounds.iter().rev().take(LATELY).map(|round| round.rate).fold(0.0, fmax)
    }
}
