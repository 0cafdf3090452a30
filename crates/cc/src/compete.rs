//! The window beside flows that fill every queue: what one more of their kind would take.
//!
//! Beside TCP a small queue cannot be held: TCP fills what there is, and who gives way for a queue gives
//! way for good. So while others hold the queue, the window is that of one CUBIC flow (RFC 9438): it
//! shrinks when the queue overflows, and then grows by the clock, not by round trips.

pub(crate) mod deaf;

use hikyaku_units::Instant;
use libm::{cbrt, fmax, fmin};

/// RFC 9438, 4.1 and 4.6.
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// RFC 9438, 4.3: what keeps pace with Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Before the first overflow has said what is too much: so much more a round trip.
const BEGIN: f64 = 1.1;
/// No step of a round is larger (RFC 9438, 4.4).
const STEP: f64 = 1.5;

/// The window of one more.
#[derive(Clone, Debug)]
pub(crate) struct Compete {
    window: f64,
    cut: Option<Cut>,
    /// Bytes a second, where others do not answer to loss.
    pace: Option<f64>,
}

/// A round beside others. Seconds, bytes, bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) now: Instant,
    /// With the queue.
    pub(crate) round_trip: f64,
    pub(crate) packet: f64,
    /// What to send at, and to have under way, where others do not answer to loss.
    pub(crate) among_deaf: Option<(f64, f64)>,
    /// Something overflowed.
    pub(crate) overflowed: bool,
    /// The window was what held the sender back.
    pub(crate) is_used: bool,
}

/// The last overflow.
#[derive(Clone, Copy, Debug)]
struct Cut {
    at: Instant,
    /// The window before it.
    most: f64,
    /// What was left of it.
    left: f64,
}

impl Compete {
    pub(crate) const fn new(window: f64) -> Self {
        Self { window, cut: None, pace: None }
    }

    /// The rate to send at, if it is not what the window gives.
    pub(crate) const fn pace(&self) -> Option<f64> {
        self.pace
    }

    /// A round is over.
    pub(crate) fn on_round(&mut self, round: &Beside) {
        let before = self.pace.take();
        if let Some((pace, window)) = round.among_deaf {
            (self.pace, self.window, self.cut) = (Some(pace), window, None);
        } else if before.is_some() || round.overflowed {
            self.on_overflow(round.now);
        } else if round.is_used {
            self.grow(round.now, round.round_trip, round.packet);
        }
    }

    pub(crate) const fn window(&self) -> f64 {
        self.window
    }

    /// The queue overflowed.
    fn on_overflow(&mut self, now: Instant) {
        let (most, left) = (self.window, BETA * self.window);
        // RFC 9438, 4.7: who has less than before makes room for others.
        let before = self.cut.map_or(0.0, |cut| cut.most);
        let most = if most < before { most * (1.0 + BETA) / 2.0 } else { most };
        self.cut = Some(Cut { at: now, most, left });
        self.window = left;
    }

    /// A round without an overflow is over; packets have `packet` bytes.
    fn grow(&mut self, now: Instant, round_trip: f64, packet: f64) {
        let wanted = match self.cut {
            None => BEGIN * self.window,
            Some(cut) => {
                let passed = (now - cut.at).as_secs_f64();
                let k = cbrt(fmax(cut.most - cut.left, 0.0) / packet / C);
                let beyond = passed + round_trip - k;
                let by_clock = C * beyond * beyond * beyond * packet + cut.most;
                let by_rounds = cut.left + ALPHA * passed / fmax(round_trip, 1e-4) * packet;
                fmax(by_clock, by_rounds)
            }
        };
        self.window = fmax(self.window, fmin(wanted, STEP * self.window));
    }
}

#[cfg(test)]
mod tests;
