//! What a look at the path with less under way has shown of its loss.

use super::{Controller, MIN_PACKETS_FOR_LOSS};
use crate::law::TARGET_MIN;
use crate::path::RoundPath;
use hikyaku_units::Instant;
use libm::{fmax, fmin, sqrt};

/// A round before less was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Delivery rate in bytes a second.
    rate: f64,
    /// The best of this round and the one before: a host that stopped for a moment is not the path.
    best: f64,
    /// Seconds.
    queue: f64,
    /// The share that was lost, of how many packets.
    lost: f64,
    packets: u64,
}

/// Of what kind a round was that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Looked {
    /// One like all others.
    No,
    /// Less has been sent in it, but what arrived was sent before.
    Begun,
    /// What arrived was sent while less was under way, and more of it is to come.
    On,
    /// The last one: what is the path's own is known.
    Over,
    /// The last one: what was lost was not the path's own, and the window is what the path carries.
    Disproved,
}

/// A round of less in which so much of what arrived before arrives is one of a bottleneck that is still full,
/// if no queue of this share of a round trip was drained meanwhile.
const AS_BEFORE: f64 = 0.9;
pub(super) const NO_QUEUE: f64 = 0.1;
/// With less loss than this there is nothing to disprove.
const DOUBTFUL: f64 = 0.02;
/// Standard deviations that chance is granted.
const SIGMAS: f64 = 2.0;
/// A queue of which more than this is still there, though all of ours was drained, is filled by others.
const STAYED: f64 = 0.5;

impl Controller {
    /// Ends a round of a look.
    // spec: rate-2
    pub(super) fn look(&mut self, now: Instant, round: &RoundPath) -> Looked {
        if self.probe.is_draining() {
            return if self.before_less.is_none() { Looked::Begun } else { Looked::On };
        }
        if !self.probe.is_after_less() {
            self.before_less = None;
            return Looked::No;
        }
        let before = self.before_less.take();
        if core::mem::take(&mut self.loss_is_ours) {
            self.loss.discard();
            return Looked::Over;
        }
        if before.is_some_and(|before| self.disprove(now, &before, round)) {
            return Looked::Disproved;
        }
        // Loss beside others who keep the queue full is theirs as well as ours.
        let is_shared =
            before.is_some_and(|before| self.queue > fmax(STAYED * before.queue, 2.0 * TARGET_MIN));
        let ambient = self.loss.ambient();
        if is_shared && self.loss.of_this_round() > ambient {
            self.loss.discard();
        } else {
            self.loss.end_test(MIN_PACKETS_FOR_LOSS);
        }
        self.law.scale((1.0 - ambient) / (1.0 - self.loss.ambient()));
        Looked::Over
    }

    /// Less is under way. `before` is the delivery rate of the round before the last.
    pub(super) fn begin_look(&mut self, before: f64) {
        let rate = self.path.rate().unwrap_or(0.0);
        // What was sent earlier is settled only a while after the first of what was sent since has come.
        self.loss.count_from(self.round.end);
        self.before_less = Some(Before {
            rate,
            best: fmax(rate, before),
            queue: self.queue,
            lost: self.loss.of_this_round(),
            packets: self.loss.seen().0,
        });
    }

    /// Less was sent, and a smaller share of it was lost, or as much as before arrives: all that was lost met
    /// a bottleneck that has next to no queue, a policer, however much it was. What a path loses by itself is
    /// the same share of less.
    fn disprove(&mut self, now: Instant, before: &Before, round: &RoundPath) -> bool {
        let Some(rate) = round.rate else { return false };
        let is_short = before.queue < NO_QUEUE * self.round_trip();
        if before.lost < DOUBTFUL {
            return false;
        }
        let (packets, lost) = self.loss.seen();
        let share = lost as f64 / packets.max(1) as f64;
        let both = 1.0 / packets.max(1) as f64 + 1.0 / before.packets.max(1) as f64;
        let chance = SIGMAS * sqrt(before.lost * both);
        if share < fmin(before.lost / 2.0, before.lost - chance) {
            self.loss.end_test(MIN_PACKETS_FOR_LOSS);
        } else if is_short && rate >= AS_BEFORE * before.best {
            self.loss.disprove(DOUBTFUL);
        } else {
            return false;
        }
        // What is under way is still of the old window.
        self.loss_is_ours = true;
        // More was carried once; now it is not.
        self.path.give(now, rate);
        let bearable = if is_short { 0.0 } else { before.queue };
        self.law.on_overflow(bearable, rate, self.round_trip());
        self.law.bound(fmax(rate, before.rate));
        self.law.set_window(self.equilibrium(rate));
        true
    }
}
