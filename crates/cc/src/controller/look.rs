//! The result of a probe with less data in flight for the loss of a path.

use super::{Controller, MIN_PACKETS_FOR_LOSS};
use crate::law::TARGET_MIN;
use crate::path::RoundPath;
use hikyaku_units::Instant;
use libm::{fmax, fmin, sqrt};

/// A round before the probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Delivery rate in bytes a second.
    rate: f64,
    /// The best of this round and the one before: a host that stopped for a moment is not the path.
    best: f64,
    /// Seconds.
    queue: f64,
    /// The loss rate, and the number of packets.
    lost: f64,
    packets: u64,
}

/// The kind of a completed round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Looked {
    /// A round without a probe.
    No,
    /// The probe was sent in it, but the arrived packets were sent before.
    Begun,
    /// The arrived packets belong to the probe, and more of them are expected.
    On,
    /// The last round of a probe that measured the ambient loss.
    Over,
    /// The last round of a probe that found no ambient loss. The window is set to the rate of the path.
    Disproved,
}

/// Part of the earlier delivery rate from which on the bottleneck is still busy during a probe, unless a queue of this part
/// of a round trip was drained.
const AS_BEFORE: f64 = 0.9;
pub(super) const NO_QUEUE: f64 = 0.1;
/// Loss rate below which a probe has no result.
const DOUBTFUL: f64 = 0.02;
/// Standard deviations of chance.
const SIGMAS: f64 = 2.0;
/// Part of a queue that remains after this flow's part was drained, from which on other flows fill the queue.
const STAYED: f64 = 0.5;

impl Controller {
    /// Ends a round of a probe.
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
        // Beside other flows that keep the queue full, all flows cause the loss.
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

    /// Begins a probe. `before` is the delivery rate of the round before the last.
    pub(super) fn begin_look(&mut self, before: f64) {
        let rate = self.path.rate().unwrap_or(0.0);
        // Packets sent before the probe are judged some time after the first packet of the probe has arrived.
        self.loss.count_from(self.round.end);
        self.before_less = Some(Before {
            rate,
            best: fmax(rate, before),
            queue: self.queue,
            lost: self.loss.of_this_round(),
            packets: self.loss.seen().0,
        });
    }

    /// Whether the losses were drops of a policer, a bottleneck with almost no queue: with the lower rate of the probe the
    /// loss rate fell, or the delivery rate stayed. Ambient loss is an equal part of a lower rate.
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
        // The data in flight are still those of the old window.
        self.loss_is_ours = true;
        // The path carried more before, and no longer does.
        self.path.give(now, rate);
        let bearable = if is_short { 0.0 } else { before.queue };
        self.law.on_overflow(bearable, rate, self.round_trip());
        self.law.bound(fmax(rate, before.rate));
        self.law.set_window(self.equilibrium(rate));
        true
    }
}
