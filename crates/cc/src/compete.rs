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
/// So much more a round trip, where no overflow has said what is too much.
const BEGIN: f64 = 1.1;
/// Beside one flow that overflows nothing this share of the path is ours. One of BBR that knows how short the path is holds
/// a base round trip of a queue at the most: in the lab, in a queue of two, 13 - 40 of 40 ms.
const BESIDE_ONE: f64 = 0.5;
/// And this where the queue is longer: there are several, each of which takes for its own rate what it had when others
/// paused (four: 47 - 63 ms), or one that takes the queue that we hold for a longer path.
const AMONG_MANY: f64 = 1.0 / 3.0;
/// By an eighth.
const LONG: f64 = 1.125;
/// No step of a round is larger (RFC 9438, 4.4).
const STEP: f64 = 1.5;

/// The window of one more.
#[derive(Clone, Debug)]
pub(crate) struct Compete {
    window: f64,
    growth: Growth,
    /// Bytes a second, where others do not answer to loss.
    pace: Option<f64>,
    /// When the queue last overflowed, of all the times that others were seen.
    overflowed: Option<Instant>,
    /// The share that the last drain left of what should have been gone at its half.
    kept: f64,
}

/// A round beside others. Seconds, bytes, bytes a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) now: Instant,
    /// With the queue.
    pub(crate) round_trip: f64,
    pub(crate) packet: f64,
    /// A window that leaves others enough, however many they are.
    pub(crate) modest: f64,
    /// A window that is not to be passed fast.
    pub(crate) plenty: f64,
    /// What to send at, and to have under way, where others do not answer to loss.
    pub(crate) among_deaf: Option<(f64, f64)>,
    /// Something overflowed.
    pub(crate) overflowed: bool,
    /// The window was what held the sender back.
    pub(crate) is_used: bool,
}

/// A common drain beside others that overflow nothing. Seconds, shares.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drained {
    pub(crate) now: Instant,
    /// Before it.
    pub(crate) queue: f64,
    /// The round trip without one.
    pub(crate) base: f64,
    /// Of what should have been gone at its half this was still there: that much of the path is theirs.
    pub(crate) kept: f64,
    /// Our rate, of what the path carries for all.
    pub(crate) had: f64,
}

/// How the window grows.
#[derive(Clone, Copy, Debug)]
enum Growth {
    /// Until something overflows: it never has. Since there was plenty by the clock.
    Begun(Option<Cut>),
    /// Back to what an overflow at this window left. Meanwhile there was nobody, or so it looked.
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
    /// What was left of it.
    left: f64,
}

impl Compete {
    pub(crate) const fn new(window: f64) -> Self {
        Self { window, growth: Growth::Begun(None), pace: None, overflowed: None, kept: 1.0 }
    }

    /// The others are back. They have not changed: a flow that was pushed to the wall by each new begin
    /// would be pushed there every ten seconds, for who has half of the path sees nobody else.
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

    /// The rate to send at, if it is not what the window gives.
    pub(crate) const fn pace(&self) -> Option<f64> {
        self.pace
    }

    /// A round is over.
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

    /// Gives what is beyond what is due. Two drains in a row must say that it is ours, for pauses of theirs fall into every
    /// other of them; and no more is ours than our rate is of what the path carries.
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
            // Who has given way to others until next to nothing was left meets their overflows, and would
            // take that little for what the path bears.
            Growth::Begun(_) if most < BETA * round.modest => Growth::Resumed(round.modest),
            Growth::Resumed(to) if most < BETA * to => Growth::Resumed(to),
            // RFC 9438, 4.7: who has less than before makes room for others.
            Growth::Cubic(cut) if most < cut.most => {
                Growth::Cubic(Cut { at: round.now, most: most * (1.0 + BETA) / 2.0, left })
            }
            _ => Growth::Cubic(Cut { at: round.now, most, left }),
        };
    }

    /// A round without an overflow is over.
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
    /// The share of the path that is ours.
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
