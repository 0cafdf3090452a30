//! The window beside flows that fill every queue: that of one more flow of their kind.
//!
//! Beside TCP a small queue cannot be held: TCP fills every buffer, and a flow that reduces its rate because of a queue
//! never gets it back. So while other flows hold the queue, the window is that of one CUBIC flow (RFC 9438): it shrinks
//! when the queue overflows, and then grows by the clock, not by round trips.

pub(crate) mod deaf;

use hikyaku_units::Instant;
use libm::{cbrt, fmax, fmin};

/// RFC 9438, 4.1 and 4.6.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// RFC 9438, 4.3: growth at the pace of Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Factor of growth a round trip before the first overflow.
const BEGIN: f64 = 1.1;
/// Share of this flow beside one flow that causes no overflow. A BBR flow that knows the base delay holds a queue of at
/// most one base round trip: in the lab, in a buffer of two, 13 to 40 ms of 40 ms.
const BESIDE_ONE: f64 = 0.5;
/// Share of this flow if the queue is longer: either several flows hold it, each of which overestimates its rate by that in
/// the pauses of the others (four flows: 47 to 63 ms), or one flow takes this flow's queue for a longer path.
const AMONG_MANY: f64 = 1.0 / 3.0;
/// Queue in base round trips above which it counts as longer.
const LONG: f64 = 1.125;
/// Largest factor of growth in a round (RFC 9438, 4.4).
const STEP: f64 = 1.5;

/// The window of one more flow.
#[derive(Clone, Debug)]
pub(crate) struct Compete {
    window: f64,
    growth: Growth,
    /// Bytes a second beside flows that do not respond to loss.
    pace: Option<f64>,
    /// The last overflow, earlier competitions included.
    overflowed: Option<Instant>,
    /// Missing part of the expected decrease at the middle of the last drain.
    kept: f64,
}

/// A round beside others. Seconds, bytes, bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) now: Instant,
    /// Including the queue.
    pub(crate) round_trip: f64,
    pub(crate) packet: f64,
    /// A window that leaves any number of other flows enough.
    pub(crate) modest: f64,
    /// The window above which growth is slow.
    pub(crate) plenty: f64,
    /// Rate and data in flight beside flows that do not respond to loss.
    pub(crate) among_deaf: Option<(f64, f64)>,
    /// A queue overflowed.
    pub(crate) overflowed: bool,
    /// The window was the limit of the sender.
    pub(crate) is_used: bool,
}

/// A common drain beside flows that cause no overflow. Seconds, shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drained {
    pub(crate) now: Instant,
    /// The queue before the drain.
    pub(crate) queue: f64,
    /// The round trip without a queue.
    pub(crate) base: f64,
    /// Missing part of the expected decrease at the middle of the drain: the share of the other flows.
    pub(crate) kept: f64,
    /// Rate of this flow, as a part of the path's total rate.
    pub(crate) had: f64,
}

/// How the window grows.
#[derive(Clone, Copy, Debug)]
enum Growth {
    /// Until the first overflow. From a window of `plenty` on, by the clock since then.
    Begun(Option<Cut>),
    /// Back to the window of an overflow in an earlier competition. In between no other flow was detected.
    Resumed(f64),
    /// By the clock.
    Cubic(Cut),
}

/// The last overflow.
#[derive(Clone, Copy, Debug)]
struct Cut {
    at: Instant,
    /// The window before it.
    most: f64,
    /// The window after it.
    left: f64,
}

impl Compete {
    pub(crate) const fn new(window: f64) -> Self {
        Self { window, growth: Growth::Begun(None), pace: None, overflowed: None, kept: 1.0 }
    }

    /// Continues this competition after a pause. A new one would start from a small window, every ten seconds, because a
    /// flow with half of the path detects no other flow.
    pub(crate) const fn resumed(&self, window: f64) -> Self {
        let growth = match self.growth {
            Growth::Cubic(cut) => Growth::Resumed(cut.most),
            other => other,
        };
        Self { growth, overflowed: self.overflowed, ..Self::new(window) }
    }

    /// When the queue last overflowed beside others, if it ever has.
    pub(crate) const fn last_overflow(&self) -> Option<Instant> {
        self.overflowed
    }

    /// The sending rate, if the window does not determine it.
    pub(crate) const fn pace(&self) -> Option<f64> {
        self.pace
    }

    /// Adjusts the window after a round.
    pub(crate) fn on_round(&mut self, round: &Beside) {
        let before = self.pace.take();
        if let Some((pace, window)) = round.among_deaf {
            let overflowed = if round.overflowed { Some(round.now) } else { self.overflowed };
            *self = Self { pace: Some(pace), overflowed, ..Self::new(window) };
        } else if round.overflowed || before.is_some() && self.overflowed.is_some() {
            self.on_overflow(round);
        } else if round.is_used {
            self.grow(round);
        }
    }

    pub(crate) const fn window(&self) -> f64 {
        self.window
    }

    /// Yields the part of the path above the fair share. The flow's share is the smaller one of two consecutive drains,
    /// since pauses of other flows coincide with every second drain, and at most its part of the path's total rate.
    pub(crate) fn make_room(&mut self, drained: &Drained) {
        let kept = fmax(drained.kept, core::mem::replace(&mut self.kept, drained.kept));
        let ours = fmin(1.0 - kept, drained.had);
        let due = drained.due();
        if ours <= due {
            return;
        }
        let most = fmax(due / ours, BETA) * self.window;
        self.window = most;
        self.growth = Growth::Cubic(Cut { at: drained.now, most, left: BETA * most });
    }

    /// The queue overflowed.
    fn on_overflow(&mut self, round: &Beside) {
        let (most, left) = (self.window, BETA * self.window);
        self.window = left;
        self.overflowed = Some(round.now);
        self.growth = match self.growth {
            // A flow that reduced its rate almost to zero meets overflows of the others, and must not take its small
            // window for the one that the path carries.
            Growth::Begun(_) if most < BETA * round.modest => Growth::Resumed(round.modest),
            Growth::Resumed(to) if most < BETA * to => Growth::Resumed(to),
            // RFC 9438, 4.7: a flow with a smaller window than before releases more of it.
            Growth::Cubic(cut) if most < cut.most => {
                Growth::Cubic(Cut { at: round.now, most: most * (1.0 + BETA) / 2.0, left })
            }
            _ => Growth::Cubic(Cut { at: round.now, most, left }),
        };
    }

    /// Grows after a round without an overflow.
    fn grow(&mut self, round: &Beside) {
        let wanted = match self.growth {
            Growth::Begun(_) if self.window < round.plenty => {
                self.growth = Growth::Begun(None);
                fmin(BEGIN * self.window, round.plenty)
            }
            Growth::Begun(since) => {
                let (most, left) = (self.window, self.window);
                let since = since.unwrap_or(Cut { at: round.now, most, left });
                self.growth = Growth::Begun(Some(since));
                since.window(round)
            }
            Growth::Resumed(to) if BEGIN * self.window < BETA * to => BEGIN * self.window,
            Growth::Resumed(most) => {
                let cut = Cut { at: round.now, most, left: fmax(self.window, BETA * most) };
                self.growth = Growth::Cubic(cut);
                cut.left
            }
            Growth::Cubic(cut) => cut.window(round),
        };
        self.window = fmax(self.window, fmin(wanted, STEP * self.window));
    }
}

impl Drained {
    /// The fair share of this flow.
    fn due(&self) -> f64 {
        if self.queue > LONG * self.base { AMONG_MANY } else { BESIDE_ONE }
    }
}

impl Cut {
    /// The window a round trip after this round.
    fn window(&self, round: &Beside) -> f64 {
        let passed = (round.now - self.at).as_secs_f64();
        let k = cbrt(fmax(self.most - self.left, 0.0) / round.packet / C);
        let beyond = passed + round.round_trip - k;
        let by_clock = C * beyond * beyond * beyond * round.packet + self.most;
        let by_rounds = self.left + ALPHA * passed / fmax(round.round_trip, 1e-4) * round.packet;
        fmax(by_clock, by_rounds)
    }
}

#[cfg(test)]
mod tests;
