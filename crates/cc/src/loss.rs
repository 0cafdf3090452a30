//! Distinguishes ambient loss, which a path has at every rate, from overflow that the sender causes.
//!
//! The median loss of the last rounds is the ambient loss, as far as it was confirmed: by trains of the start-up, each
//! faster than the last, or by a probe with less data in flight. Loss above it by more than chance is excess loss, caused
//! by the sender.

use crate::filters::quantile;
use crate::sample::Settled;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use libm::sqrt;

/// Rounds of memory. A new level of ambient loss is believed after half of them.
const ROUNDS: usize = 8;
/// Largest ambient loss: if nearly half of all packets are lost, sending more is wrong whatever the cause.
const MAX_AMBIENT: f64 = 0.45;
/// Largest ambient loss before a probe has confirmed it.
const UNPROVEN: f64 = 0.1;
/// Packets counted before loss above [`DOUBTFUL`] makes a probe due; with fewer, only loss above [`UNPROVEN`] does.
const FIRST: u64 = 512;
/// Loss rate above which a probe is due.
const DOUBTFUL: f64 = 0.02;
/// Excess below this is never acted on.
const NEGLIGIBLE: f64 = 0.005;
/// Standard deviations of chance: at ten rounds a second, chance exceeds them once an hour.
const SIGMAS: f64 = 4.0;
/// Standard deviations beside other flows: there, a missed overflow is worse than a false one.
const SIGMAS_SHARED: f64 = 2.0;

/// Largest increase of the confirmed loss by one probe: a larger one would lead to a higher rate, more loss, and a further
/// increase.
const SIGMAS_TESTED: f64 = 2.0;

/// The state of the queue in which packets may have been lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// The queue had room.
    Free,
    /// The queue may have been full: the losses never count as ambient.
    Full,
    /// Other flows fill the queue until it overflows, and respond to each overflow.
    Shared,
}

/// The two kinds of loss on one path.
#[derive(Clone, Debug, Default)]
pub struct LossModel {
    /// (packets, lost) of the last rounds.
    rounds: VecDeque<(u64, u64)>,
    arrived: u64,
    lost: u64,
    /// Packets below this number are of no interest.
    from: u64,
    /// Upper bound of the ambient loss, confirmed by a probe or by trains of increasing rates.
    most: Option<f64>,
}

impl LossModel {
    /// A model that takes all loss for ambient loss.
    pub(crate) fn trusting() -> Self {
        Self { most: Some(MAX_AMBIENT), ..Self::default() }
    }

    pub(crate) const fn on_ack(&mut self, settled: Settled) {
        if settled.below > self.from {
            self.arrived += settled.arrived;
            self.lost += settled.lost;
        }
    }

    /// Only packets from this number on count from now on.
    pub(crate) const fn count_from(&mut self, packet: u64) {
        self.from = packet;
    }

    /// Closes a round of at least `enough` packets; gives the loss in excess of the ambient one.
    pub(crate) fn end_round(&mut self, enough: u64, queue: Queue) -> f64 {
        let n = self.arrived + self.lost;
        if n < enough.max(1) {
            return 0.0;
        }
        let p = self.lost as f64 / n as f64;
        let (ambient, known, lost) = (self.ambient(), self.known(), self.lost as f64);
        if queue == Queue::Free {
            self.learn(n, self.lost);
        }
        (self.arrived, self.lost) = (0, 0);
        if queue == Queue::Shared {
            let expected = ambient * n as f64;
            let is_more = lost > expected + SIGMAS_SHARED * sqrt(expected) + 1.0;
            return if is_more { p - ambient } else { 0.0 };
        }
        if known == 0 {
            return 0.0;
        }
        let variance = ambient.max(p / 4.0).max(1.0 / known as f64);
        let chance = SIGMAS * sqrt(variance * (1.0 / n as f64 + 1.0 / known as f64));
        let excess = p - ambient;
        if excess > chance.max(NEGLIGIBLE) { excess } else { 0.0 }
    }

    /// Closes a round of a probe, in which no queue overflowed: its loss is ambient loss, and bounds it.
    pub(crate) fn end_test(&mut self, enough: u64) {
        let n = self.arrived + self.lost;
        if n < enough.max(1) {
            return;
        }
        let p = self.lost as f64 / n as f64;
        // If nearly all packets are lost, the rate is not the cause.
        if p < MAX_AMBIENT {
            self.most = Some(at_most(p, n, SIGMAS_TESTED));
            self.rounds.clear();
            self.learn(n, self.lost);
        }
        self.discard();
    }

    /// Packets of the current round, and the lost ones among them.
    pub(crate) const fn seen(&self) -> (u64, u64) {
        (self.arrived + self.lost, self.lost)
    }

    /// Loss rate of the current round.
    pub(crate) fn of_this_round(&self) -> f64 {
        let (packets, lost) = self.seen();
        lost as f64 / packets.max(1) as f64
    }

    /// None of the loss is ambient: the bound is `most` until the next probe.
    pub(crate) fn disprove(&mut self, most: f64) {
        self.most = Some(most);
        self.rounds.clear();
        self.discard();
    }

    /// Confirms the counted loss: it was equal at very different rates.
    pub(crate) fn believe(&mut self) {
        self.most = Some(at_most(self.suspected(), self.known(), SIGMAS));
    }

    /// Counts a round in which nothing overflowed.
    pub(crate) fn learn(&mut self, packets: u64, lost: u64) {
        self.rounds.push_back((packets, lost));
        if self.rounds.len() > ROUNDS {
            self.rounds.pop_front();
        }
    }

    /// Whether no round has been counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Discards the current round.
    pub(crate) const fn discard(&mut self) {
        self.arrived = 0;
        self.lost = 0;
    }

    /// Packets behind the ambient loss.
    fn known(&self) -> u64 {
        self.rounds.iter().map(|round| round.0).sum()
    }

    /// The ambient loss, 0 to 0.45. The median ignores rounds with less than a quarter of the packets of the largest one.
    pub fn ambient(&self) -> f64 {
        self.suspected().min(self.most.unwrap_or(UNPROVEN))
    }

    /// Whether the loss is above the confirmed ambient loss.
    pub(crate) fn is_doubted(&self) -> bool {
        let first = || if self.known() < FIRST { UNPROVEN } else { DOUBTFUL };
        self.suspected() > self.most.unwrap_or_else(first).max(DOUBTFUL)
    }

    /// The ambient loss if the sender caused none of the losses.
    pub(crate) fn suspected(&self) -> f64 {
        let largest = self.rounds.iter().map(|round| round.0).max().unwrap_or(0);
        let mut shares: Vec<f64> = self
            .rounds
            .iter()
            .filter(|round| round.0 * 4 >= largest)
            .map(|&(n, lost)| lost as f64 / n as f64)
            .collect();
        quantile(&mut shares, 0.5).unwrap_or(0.0).min(MAX_AMBIENT)
    }
}

/// Upper limit of the ambient loss of a path that lost the part `p` of `n` packets.
fn at_most(p: f64, n: u64, sigmas: f64) -> f64 {
    let n = n.max(1) as f64;
    p + sigmas * sqrt(p.max(1.0 / n) / n)
}

#[cfg(test)]
mod tests;
