//! Telling the loss that a path has anyway from the loss that we cause.
//!
//! Loss of its own the path has at every rate; loss by overflow comes when we send more than it
//! carries. The median of the last rounds is taken as the path's own, as far as it was shown to be: by trains of
//! start-up each faster than the last, or by a look at the path with less under way. What stands out of it by
//! more than chance is ours.

use crate::filters::quantile;
use crate::sample::Settled;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use libm::sqrt;

/// Rounds of memory. A new level of ambient loss is believed after half of them.
const ROUNDS: usize = 8;
/// Loss above this is no longer taken for the path's own: with nearly half of everything gone, to
/// send more is wrong whatever the cause.
const MAX_AMBIENT: f64 = 0.45;
/// More than this is not taken for the path's own before it has been looked into,
const UNPROVEN: f64 = 0.1;
/// and more than this is looked into, once so many packets have been seen.
const FIRST: u64 = 512;
const DOUBTFUL: f64 = 0.02;
/// Excess below this is never acted on.
const NEGLIGIBLE: f64 = 0.005;
/// Standard deviations that chance is granted: at ten rounds a second it deceives us once an hour.
const SIGMAS: f64 = 4.0;
/// Beside others to overlook an overflow is worse than to see one where none is.
const SIGMAS_SHARED: f64 = 2.0;

/// What one look is granted: who grants more sends more, loses more by that, and grants still more.
const SIGMAS_TESTED: f64 = 2.0;

/// What is known of the queue in which packets may have been lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// There was room.
    Free,
    /// It may have been full: what was lost is never taken for the path's own.
    Full,
    /// Others fill it until it overflows, and answer to every single overflow.
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
    /// The path's own loss is at most this, as a round with less under way has shown, or trains one faster
    /// than the other.
    most: Option<f64>,
}

impl LossModel {
    /// One to which all loss is the path's own, whatever is done to the queue.
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

    /// Closes a round in which less was under way, so that nothing overflowed: what was lost is the
    /// path's own, and it has no more than that.
    pub(crate) fn end_test(&mut self, enough: u64) {
        let n = self.arrived + self.lost;
        if n < enough.max(1) {
            return;
        }
        let p = self.lost as f64 / n as f64;
        // Where nearly nothing arrives, it is no question of the rate.
        if p < MAX_AMBIENT {
            self.most = Some(at_most(p, n, SIGMAS_TESTED));
            self.rounds.clear();
            self.learn(n, self.lost);
        }
        self.discard();
    }

    /// Packets of the round under way, and of them lost.
    pub(crate) const fn seen(&self) -> (u64, u64) {
        (self.arrived + self.lost, self.lost)
    }

    /// What was lost in the round under way, as a share.
    pub(crate) fn of_this_round(&self) -> f64 {
        let (packets, lost) = self.seen();
        lost as f64 / packets.max(1) as f64
    }

    /// None of it was the path's own, which has at most `most` until it is looked into again.
    pub(crate) fn disprove(&mut self, most: f64) {
        self.most = Some(most);
        self.rounds.clear();
        self.discard();
    }

    /// What has been counted was lost at quite different rates alike.
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

    /// Nothing is known of the path.
    pub(crate) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// Forgets the round under way.
    pub(crate) const fn discard(&mut self) {
        self.arrived = 0;
        self.lost = 0;
    }

    /// Packets behind the ambient loss.
    fn known(&self) -> u64 {
        self.rounds.iter().map(|round| round.0).sum()
    }

    /// The path's own loss, 0 to 0.45. Rounds of few packets say little of it: those below a
    /// quarter of the largest are left out of the median.
    pub fn ambient(&self) -> f64 {
        self.suspected().min(self.most.unwrap_or(UNPROVEN))
    }

    /// Whether more is lost than has been shown to be the path's own.
    pub(crate) fn is_doubted(&self) -> bool {
        let first = || if self.known() < FIRST { UNPROVEN } else { DOUBTFUL };
        self.suspected() > self.most.unwrap_or_else(first).max(DOUBTFUL)
    }

    /// The same, if nothing of it were ours.
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

/// What a path may lose by itself of which `p` of `n` packets were lost.
fn at_most(p: f64, n: u64, sigmas: f64) -> f64 {
    let n = n.max(1) as f64;
    p + sigmas * sqrt(p.max(1.0 / n) / n)
}

#[cfg(test)]
mod tests;
