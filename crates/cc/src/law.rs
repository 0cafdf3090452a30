//! The rate law: an inflight window steered so that a small, fixed queue stands at the bottleneck.
//!
//! While a queue stands, the bottleneck is busy, the delivery rate `d` is our share of it, and the
//! queue is what we have in flight beyond `d r`. So the window moves by `g d (q* - q)` a round, with
//! `q` the queueing delay and `q*` its target: FAST TCP's law (Wei et al., 2006). Flows at one
//! bottleneck converge to equal rates, whatever their round-trip times and whatever the path loses
//! by itself. The target shrinks with the root of the rate (Kumar et al., Swift, 2020), so that N
//! flows hold a queue like the root of N, not like N.
//!
//! While no queue stands, `d` only says what we sent. Then the window grows, at first by what a
//! target queue holds, twice as much each further round, until a queue shows.
//!
//! The window is the integral part of the control. Its proportional part is in the pacing rate (see
//! the controller): the queue is itself the integral of the rate, and two integrals ring.

use libm::{exp2, fmax, fmin, sqrt};

/// Share of the way to the equilibrium that is gone in one round: small, beside the damping of the
/// pacer, for the same reason.
const GAIN: f64 = 0.15;
/// Target queue at 1 Gbit/s: 1.5 ms. Three times the half-millisecond batches, so that bursts do not
/// drown it; a tenth of what the smallest buffer in our range holds.
const TARGET_AT_1G: f64 = 0.0015;
const GIGABIT: f64 = 125e6;
const TARGET_MAX: f64 = 0.015;
const TARGET_MIN: f64 = 0.0003;
/// Growth in one round adds at most this much queue if the capacity has not grown after all, and at
/// most a sixteenth of the round trip: two rounds of it pass before the first answer.
const BOOST_QUEUE: f64 = 0.010;
const BOOST_SHARE: f64 = 1.0 / 16.0;
const BOOST_LEAST: f64 = 0.0005;

/// One round, as the law sees it. Seconds, bytes, bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) queue: f64,
    pub(crate) rate: f64,
    pub(crate) base_rtt: f64,
    pub(crate) jitter: f64,
    pub(crate) ambient_loss: f64,
    pub(crate) excess_loss: f64,
    /// The sender used its window: only then may the window grow.
    pub(crate) window_was_used: bool,
}

/// The window and its growth.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    window: f64,
    calm_rounds: i32,
}

impl Law {
    pub(crate) const fn new(window: f64) -> Self {
        Self { window, calm_rounds: 0 }
    }

    pub(crate) const fn window(&self) -> f64 {
        self.window
    }

    pub(crate) const fn set_window(&mut self, window: f64) {
        self.window = window;
        self.calm_rounds = 0;
    }

    pub(crate) fn on_round(&mut self, round: &Round) {
        let target = target_queue(round.rate, round.jitter, round.base_rtt);
        let sent = round.rate / (1.0 - round.ambient_loss);
        if round.excess_loss > 0.0 {
            // Something on the path bears less queue than we would hold: aim at half of it.
            let bearable = fmin(target, round.queue / 2.0);
            let wanted = sent * (round.base_rtt + bearable) * (1.0 - fmin(round.excess_loss, 0.1));
            self.calm_rounds = 0;
            self.window = fmin(self.window, fmax(wanted, self.window / 2.0));
        } else if round.queue > target / 2.0 {
            self.calm_rounds = 0;
            let change = GAIN * sent * (target - round.queue);
            if round.window_was_used || change < 0.0 {
                self.window += fmax(change, -self.window / 2.0);
            }
        } else if round.window_was_used {
            self.window += self.growth(sent * target, round);
        }
    }

    fn growth(&mut self, step: f64, round: &Round) -> f64 {
        self.calm_rounds = (self.calm_rounds + 1).min(12);
        let wanted = GAIN * step * exp2(f64::from(self.calm_rounds - 1));
        let share = fmax(BOOST_SHARE * round.base_rtt, BOOST_LEAST);
        let most = fmin(BOOST_QUEUE, share) * self.window / round.base_rtt;
        fmin(wanted, fmax(most, step))
    }
}

/// The queue, in seconds, that a flow of `rate` holds: by its rate, but not so little that the
/// path's own jitter drowns it, nor more than a tenth of the round trip for that.
pub(crate) fn target_queue(rate: f64, jitter: f64, base_rtt: f64) -> f64 {
    let by_rate = TARGET_AT_1G * sqrt(GIGABIT / fmax(rate, 1.0));
    let above_jitter = fmin(6.0 * jitter, fmin(0.005, base_rtt / 10.0));
    fmax(fmin(by_rate, TARGET_MAX), fmax(TARGET_MIN, above_jitter))
}

#[cfg(test)]
mod tests;
