//! The rate law: an inflight window steered so that a small, fixed queue stands at the bottleneck.
//!
//! Once a round trip the window moves by
//!
//! ```text
//! W += g (alpha - W price / (r + price)),   alpha = q* x,   price = q + lambda e
//! ```
//!
//! with `x` the delivery rate, `r` the base round-trip time, `q` the queueing delay and `e` the loss
//! in excess of the path's own. In equilibrium `x price = alpha`: the queue is `q*`, whatever the
//! round-trip time and whatever the path loses by itself. The form is FAST TCP's (Wei et al., 2006)
//! with a square-root target (Kumar et al., Swift, 2020), so that N flows hold a queue that grows
//! like the root of N, not like N.

use libm::{exp2, fmax, fmin, sqrt};

/// Share of the way to the equilibrium that is gone in one round. At 1 the delay of one round trip
/// in the feedback makes it ring.
const GAIN: f64 = 0.5;
/// Target queue at 1 Gbit/s: 1.5 ms. Three times the half-millisecond batches, so that bursts do not
/// drown it; a tenth of what the smallest buffer in our range holds.
const TARGET_AT_1G: f64 = 0.0015;
const GIGABIT: f64 = 125e6;
const TARGET_MAX: f64 = 0.015;
const TARGET_MIN: f64 = 0.0003;
/// One percent of excess loss weighs as much as 10 ms of queue.
const LOSS_PRICE: f64 = 1.0;
/// The boost adds at most this much queue in one round if the capacity has not grown after all.
const BOOST_QUEUE: f64 = 0.010;

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
        let target = target_queue(round.rate, round.jitter);
        let price = round.queue + LOSS_PRICE * round.excess_loss;
        let alpha = target * round.rate / (1.0 - round.ambient_loss);
        let paid = self.window * price / (round.base_rtt + price);
        let mut change = GAIN * (alpha - paid);
        if price < target / 4.0 && round.window_was_used {
            change += self.boost(alpha, round);
        } else {
            self.calm_rounds = 0;
        }
        if round.window_was_used || change < 0.0 {
            self.window += fmax(change, -self.window / 2.0);
        }
    }

    /// The longer the queue stays empty, the surer it is that the path carries more: the extra step
    /// doubles from round to round.
    fn boost(&mut self, alpha: f64, round: &Round) -> f64 {
        self.calm_rounds = (self.calm_rounds + 1).min(12);
        let wanted = GAIN * alpha * (exp2(f64::from(self.calm_rounds)) - 1.0);
        let most = fmax(BOOST_QUEUE * round.rate, self.window / 25.0);
        fmin(wanted, fmin(most, self.window / 8.0))
    }
}

/// The queue, in seconds, that a flow of `rate` holds.
pub(crate) fn target_queue(rate: f64, jitter: f64) -> f64 {
    let by_rate = TARGET_AT_1G * sqrt(GIGABIT / fmax(rate, 1.0));
    let floor = fmin(fmax(TARGET_MIN, 2.0 * jitter), 0.005);
    fmax(fmin(by_rate, TARGET_MAX), floor)
}

#[cfg(test)]
mod tests;
