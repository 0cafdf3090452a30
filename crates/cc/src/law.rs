//! The rate law: an inflight window steered so that a small, fixed queue stands at the bottleneck.
//!
//! While a queue stands, the bottleneck is busy, the delivery rate `d` is the flow's share of it, and the
//! flow's part of the queue is its data in flight beyond `d r`. So the window moves by `g d (q* - q)` a round, with
//! `q` the queueing delay and `q*` its target: FAST TCP's law (Wei et al., 2006). Flows at one
//! bottleneck converge to equal rates, whatever their round-trip times and whatever the path loses
//! by itself. The target shrinks with the root of the rate (Kumar et al., Swift, 2020), so that N
//! flows hold a queue like the root of N, not like N.
//!
//! While no queue stands, `d` is only the rate of sending. Then the window grows until a queue appears: first by the bytes
//! of a target queue, then by larger steps.
//!
//! The window is the integral part of the control. Its proportional part is in the pacing rate (see
//! the controller): the queue is itself the integral of the rate, and two integrals ring.

use crate::pacer::{GIGABIT, batch_time};
use core::num::NonZeroU32;
use core::time::Duration;
use hikyaku_units::Rate;
use libm::{exp2, fmax, fmin, pow, sqrt};

/// Part of the distance to the equilibrium that one round corrects. It is small because the pacer's damping corrects the
/// same error.
const GAIN: f64 = 0.15;
/// Share of the queue's excess over the target that a round trip takes away by pacing. With the
/// round trip's delay in the feedback, more than half rings.
pub(crate) const DAMPING: f64 = 0.35;
/// Target queue at 1 Gbit/s: 1.5 ms. Three times the half-millisecond batches, so that bursts do not
/// drown it; a tenth of what the smallest buffer in our range holds.
const TARGET_AT_1G: f64 = 0.0015;
const TARGET_MAX: f64 = 0.015;
/// Seconds of delay that hosts cause on every path. Taking them for a queue would stop a fast sender.
pub(crate) const TARGET_MIN: f64 = 0.0003;
/// On fast paths the target does not shrink below what covers a host that is not scheduled for a
/// while, as long as a buffer of the usual size holds twice as much.
const TARGET_LEAST: f64 = 0.001;
const LEAST_BYTES: f64 = 1.25e6;
/// On a path of a few milliseconds the target is at most half the round trip, or what eight packets
/// take: more would only be delay. (All flows at one bottleneck want the same target for the same
/// rate, so this must not concern paths on which they meet long ones.)
const TARGET_SHARE: f64 = 0.5;
const TARGET_BYTES: f64 = 8.0 * 1500.0;
/// After an overflow the ceiling is half of the queue that overflowed. It doubles within this number of seconds without an
/// overflow.
const CEILING_DOUBLES: f64 = 10.0;
/// A queue longer than this number of targets is an overload: the window is set to the delivery rate's at once.
const OVERLOAD: f64 = 6.0;
/// Seconds of queue that a step of growth causes at most if the capacity has not grown; at most a sixteenth of the round
/// trip, and never more than the ceiling.
const BOOST_QUEUE: f64 = 0.010;
const BOOST_SHARE: f64 = 1.0 / 16.0;
const BOOST_LEAST: f64 = 0.0001;
/// After this number of steps without a queue the capacity must have changed: further steps may be larger, up to a
/// quarter of the window, like the start of a connection.
const PATIENCE: i32 = 2;
const BOOST_MOST: f64 = 0.25;
/// Factor between consecutive steps, every second round. Doubling in each round would be as fast, but a round measures
/// packets that left before the last step, so growth would always go one step too far.
const STEP_GROWTH: f64 = 4.0;
const MOST_STEPS: i32 = 8;
/// Smallest part of the distance to the known rate of the path that one step covers.
const KNOWN_SHARE: f64 = 0.5;
/// Part of the target above which the delay at the end of a round counts as a queue: where a step made the rate a
/// hundredth too high, the queue needs several rounds to build up.
const RISING: f64 = 0.4;
/// Lowest factor of the window after an overflow: the rate of one round may be that of a busy host.
const LOSS_CUT: f64 = 0.7;
/// Factor around a rate with loss, below and above it, within which growth is careful.
const BESIDE: f64 = 1.05;
const CAREFUL: f64 = 0.01;
/// Part of the window that must arrive in a round trip for a further step. With less, a host is the bottleneck, and a
/// larger window only makes its bursts longer.
const ANSWERED: f64 = 0.93;
/// Upper bound of the window, in bytes that arrive in a round trip: more than any step of growth adds.
const BEYOND: f64 = 1.5;
/// Lowest factor of the window after loss with a short queue.
const CAUTIOUS_CUT: f64 = 0.85;

/// One round, as the law sees it. Seconds, bytes, bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Standing queue.
    pub(crate) queue: f64,
    /// Largest queueing delay.
    pub(crate) peak: f64,
    /// Queueing delay at its end.
    pub(crate) latest: f64,
    pub(crate) rate: f64,
    /// The largest recent rate that other flows have not taken.
    pub(crate) known_rate: f64,
    /// The largest recent rate.
    pub(crate) largest_rate: f64,
    pub(crate) base_rtt: f64,
    /// Duration of the round.
    pub(crate) lasted: f64,
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
    /// Steps of growth since a queue was last seen.
    steps: i32,
    /// The arrivals do not contain the effect of the last step yet.
    unanswered: bool,
    /// The window is smaller than that of the known rate.
    below_known: bool,
    /// The longest queue, in seconds, that is known not to overflow.
    ceiling: f64,
    /// A rate at which packets were lost without a queue, until a higher rate is carried.
    bound: Option<f64>,
    /// Factor of the target queue.
    held: f64,
    /// Rounds without a queue in which others grow first.
    waits: u32,
}

impl Law {
    pub(crate) const fn new(window: f64) -> Self {
        let ceiling = f64::INFINITY;
        Self {
            window,
            steps: 0,
            unanswered: false,
            below_known: false,
            ceiling,
            bound: None,
            held: 1.0,
            waits: 0,
        }
    }

    /// This law with another factor of the target queue.
    pub(crate) const fn holding(mut self, share: f64) -> Self {
        self.held = share;
        self
    }

    pub(crate) const fn window(&self) -> f64 {
        self.window
    }

    pub(crate) const fn set_window(&mut self, window: f64) {
        self.window = window;
        self.steps = 0;
    }

    /// Leaves free capacity to other flows for a number of rounds.
    pub(crate) const fn wait(&mut self, rounds: u32) {
        self.waits = rounds;
    }

    /// Takes free capacity at once: it was left for this flow, so growth skips the small steps.
    pub(crate) const fn hurry(&mut self) {
        self.steps = PATIENCE;
    }

    /// Multiplies the window, for another loss rate of the path.
    pub(crate) const fn scale(&mut self, factor: f64) {
        self.window *= factor;
    }

    /// Notes that no more than this rate was carried.
    pub(crate) const fn bound(&mut self, rate: f64) {
        self.bound = Some(rate);
    }

    /// The queue to hold at this rate.
    pub(crate) fn target(&self, rate: f64, jitter: f64, base_rtt: f64) -> f64 {
        let target = fmax(self.held * target_queue(rate, jitter, base_rtt), TARGET_MIN);
        fmin(target, self.ceiling)
    }

    /// The queue overflowed when it held `peak` seconds.
    pub(crate) fn on_overflow(&mut self, peak: f64, rate: f64, base_rtt: f64) {
        // A queue of two batches is no standing queue, so the ceiling does not go below it.
        let rtt = Duration::from_secs_f64(base_rtt);
        let batch = batch_time(rtt, Rate::from_bytes_per_sec(rate), NonZeroU32::MIN).as_secs_f64();
        let least = fmax(TARGET_BYTES / 2.0 / fmax(rate, 1.0), 2.0 * batch);
        self.ceiling = fmin(self.ceiling, fmax(peak / 2.0, least));
    }

    /// Bounds the window by Little's law: of a larger one, more packets would have been lost than the path loses. (On a
    /// short path the window is mostly the target queue: at a low rate a few packets take longer than the round trip.)
    pub(crate) fn limit(&mut self, round: &Round) {
        let queue =
            fmax(round.queue, self.target(round.largest_rate, round.jitter, round.base_rtt));
        let under_way = round.largest_rate * (round.base_rtt + queue);
        if under_way > 0.0 {
            self.window = fmin(self.window, BEYOND * under_way / (1.0 - round.ambient_loss));
        }
    }

    pub(crate) fn on_round(&mut self, round: &Round) {
        if round.excess_loss > 0.0 {
            self.on_overflow(round.peak, round.rate, round.base_rtt);
        } else {
            // A standing queue without an overflow is below the ceiling, whatever the last overflow made of it.
            self.ceiling *= exp2(fmin(round.lasted, 1.0) / CEILING_DOUBLES);
            self.ceiling = fmax(self.ceiling, round.queue);
        }
        let target = self.target(round.rate, round.jitter, round.base_rtt);
        let sent = round.rate / (1.0 - round.ambient_loss);
        if round.excess_loss > 0.0 {
            // A buffer on the path is smaller than the target queue: aim at half of the queue.
            let bearable = fmin(target, round.queue / 2.0);
            let wanted = sent * (round.base_rtt + bearable);
            self.steps = 0;
            // Loss without a queue is probably no overflow: the window is reduced less.
            let is_sudden = round.peak < target / 2.0;
            let least = if is_sudden { CAUTIOUS_CUT } else { LOSS_CUT };
            self.bound = is_sudden.then_some(round.rate);
            self.window = fmin(self.window, fmax(wanted, self.window * least));
        } else if round.queue > target / 2.0 {
            self.steps = 0;
            let change = GAIN * sent * (target - round.queue);
            if round.queue > OVERLOAD * target {
                // So far above the target the window itself is wrong, not its last few percent.
                self.window =
                    fmin(self.window, fmax(sent * (round.base_rtt + target), self.window / 8.0));
            } else if round.window_was_used || change < 0.0 {
                self.window += fmax(change, -self.window / 2.0);
            }
        } else if round.latest > RISING * target {
            // The last step has begun to fill the queue: from here on by small ones.
            self.steps = 0;
            if round.window_was_used {
                self.window += GAIN * sent * (target - round.latest);
            }
        } else if core::mem::take(&mut self.unanswered) {
            // The next round contains the effect of the last step.
        } else if self.waits > 0 {
            self.waits -= 1;
        } else if round.window_was_used {
            self.window += self.growth(target, round);
        }
    }

    fn growth(&mut self, target: f64, round: &Round) -> f64 {
        let sent = round.rate / (1.0 - round.ambient_loss);
        let step = sent * target;
        // Below a rate that the path has carried, steps may be large; above it they begin small again.
        let known = round.known_rate / (1.0 - round.ambient_loss) * round.base_rtt;
        let below = known - self.window;
        if core::mem::replace(&mut self.below_known, below > step) && below <= step {
            self.steps = 0;
        }
        // Near a rate with loss, steps stay small until the window has passed it.
        if let Some(bound) = self.bound {
            let beside = self.window / (bound / (1.0 - round.ambient_loss) * round.base_rtt);
            if beside > BESIDE {
                self.bound = None;
            } else if beside > 1.0 / BESIDE {
                (self.steps, self.unanswered) = (0, true);
                return fmax(GAIN * step, CAREFUL * self.window);
            }
        }
        // Without a queue, damping keeps this part of the target out of the pacing rate.
        if sent * (round.base_rtt + (1.0 - DAMPING) * target) < ANSWERED * self.window {
            self.steps = 0;
        }
        let wanted = GAIN * step * pow(STEP_GROWTH, f64::from(self.steps));
        let share = fmax(BOOST_SHARE * round.base_rtt, BOOST_LEAST);
        let calm = fmin(fmin(BOOST_QUEUE, share), self.ceiling);
        let bold = pow(STEP_GROWTH, f64::from((self.steps - PATIENCE).max(0)));
        let seconds = fmin(calm * bold, BOOST_MOST * round.base_rtt);
        let most = seconds * self.window / round.base_rtt;
        self.steps = (self.steps + 1).min(MOST_STEPS);
        self.unanswered = true;
        let growth = fmin(wanted, fmax(most, step));
        if self.below_known { fmax(fmin(growth, below), KNOWN_SHARE * below) } else { growth }
    }
}

/// The queue, in seconds, that a flow of `rate` holds: by its rate, but not so little that the
/// path's own jitter drowns it, nor more than a tenth of the round trip for that.
pub(crate) fn target_queue(rate: f64, jitter: f64, base_rtt: f64) -> f64 {
    let by_rate = TARGET_AT_1G * sqrt(GIGABIT / fmax(rate, 1.0));
    let above_jitter = fmax(fmin(6.0 * jitter, 0.005), 2.0 * jitter);
    let above_jitter = fmin(above_jitter, base_rtt / 10.0);
    let by_path = fmax(TARGET_SHARE * base_rtt, TARGET_BYTES / fmax(rate, 1.0));
    let by_path = fmax(by_path, TARGET_MIN);
    let least = fmax(TARGET_MIN, fmin(TARGET_LEAST, LEAST_BYTES / fmax(rate, 1.0)));
    let wanted = fmax(fmin(by_rate, TARGET_MAX), fmax(least, above_jitter));
    fmin(wanted, by_path)
}

#[cfg(test)]
mod tests;
