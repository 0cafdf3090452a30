//! Looking at a path with less on it: is its base delay what we take it for, is its loss its own?
//!
//! A queue that always stands hides the base delay, and who comes later takes what stands for the base.
//! Loss by overflow looks like the path's own if it lasts. Both are told by one round with less under way.
//! A base that turns out to be lower than we thought was not ours alone to see: everybody at the
//! bottleneck sees the same dip at the same time and looks again the same time later, so that flows come
//! to look together, and then the queue is empty.

use crate::law::TARGET_MIN;
use core::time::Duration;
use hikyaku_units::Instant;
use libm::fmax;

/// When to look, and how deep.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    stage: Stage,
    last: Instant,
    /// The base delay when the last round ended, in nanoseconds from any origin.
    base: Option<i64>,
    /// The base has turned out to be lower than it was taken for.
    was_wrong: bool,
    /// Rounds with loss that does not go away, cuts between them.
    lossy: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Idle,
    /// Less is under way.
    Draining(Depth),
    /// What was sent meanwhile arrives, or does not.
    Listening(Depth),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Depth {
    /// What we have in the queue.
    Queue,
    /// A part of all that is under way.
    Part,
}

/// A round that is over, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) now: Instant,
    /// The smallest delay, in nanoseconds from any origin, and when it was seen.
    pub(crate) base: Option<(Instant, i64)>,
    pub(crate) queue: f64,
    pub(crate) round_trip: f64,
    /// What is taken for the path's own loss.
    pub(crate) ambient: f64,
    /// Loss beyond it, if the window was not just cut for some.
    pub(crate) excess: Option<f64>,
}

/// The base delay is looked at afresh when it has not been seen for this long: less than the ten
/// seconds after which it would be forgotten.
const EVERY: Duration = Duration::from_secs(7);
/// A base that was looked for and not seen is looked for again after so long.
const AGAIN: Duration = Duration::from_secs(1);
/// The path's own loss is looked into as often, but not oftener than once in so many round trips: on the
/// longest paths it would cost too much.
const ROUND_TRIPS: f64 = 30.0;
/// What is taken off: if one of many flows takes off a quarter, an overflow of a hundredth goes away
/// for up to 25 of them.
const PART: f64 = 0.25;
/// A base that falls by more than clocks drift apart in the meantime was wrong.
const WRONG: i64 = 500_000;
/// Loss below this need not be looked into.
const NEGLIGIBLE: f64 = 0.005;
/// Loss that is still there after a cut may be the path's own.
const LASTING: u32 = 2;

impl Probe {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { stage: Stage::Idle, last: now, base: None, was_wrong: false, lossy: 0 }
    }

    pub(crate) const fn is_draining(&self) -> bool {
        matches!(self.stage, Stage::Draining(_))
    }

    /// Whether the path is not looked into.
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Whether what is told now was sent while a good part less was under way: an emptied queue alone says
    /// nothing of loss.
    pub(crate) const fn is_after_less(&self) -> bool {
        matches!(self.stage, Stage::Listening(Depth::Part))
    }

    /// What is left of a window of which `queued` bytes are in the queue.
    pub(crate) fn window(&self, window: f64, queued: f64) -> f64 {
        match self.stage {
            Stage::Draining(Depth::Queue) => fmax(window - queued, window / 2.0),
            Stage::Draining(Depth::Part) => {
                fmax(window - fmax(queued, PART * window), window / 2.0)
            }
            Stage::Idle | Stage::Listening(_) => window,
        }
    }

    /// Forgets what it was about: the path is another.
    pub(crate) const fn stop(&mut self) {
        self.stage = Stage::Idle;
    }

    pub(crate) fn on_round(&mut self, look: &Look) {
        let base = look.base.map(|(_, delay)| delay);
        if let (Some(before), Some(base)) = (self.base, base) {
            self.was_wrong |= before.saturating_sub(base) > WRONG;
        }
        self.base = base;
        if let Some(excess) = look.excess {
            self.lossy = if excess > 0.0 { self.lossy + 1 } else { 0 };
        }
        self.stage = match self.stage {
            Stage::Draining(depth) => Stage::Listening(depth),
            Stage::Listening(_) => Stage::Idle,
            Stage::Idle => self.next(look).map_or(Stage::Idle, Stage::Draining),
        };
        if self.is_draining() {
            (self.last, self.was_wrong, self.lossy) = (look.now, false, 0);
        }
    }

    // spec: rate-2
    fn next(&self, look: &Look) -> Option<Depth> {
        let again = AGAIN.max(Duration::from_secs_f64(look.round_trip * 20.0));
        let is_unseen = look.queue > TARGET_MIN
            && look.now - self.last > again
            && look.base.is_some_and(|(seen, _)| look.now - seen > EVERY);
        // What was drained was not enough: something fills the queue however short it is.
        let was_in_vain = look.now - self.last < EVERY;
        let rarely = Duration::from_secs_f64(ROUND_TRIPS * look.round_trip).max(EVERY);
        let is_lossy = look.ambient > NEGLIGIBLE && look.now - self.last > rarely;
        if is_lossy || self.lossy >= LASTING || (is_unseen && (self.was_wrong || was_in_vain)) {
            return Some(Depth::Part);
        }
        is_unseen.then_some(Depth::Queue)
    }
}

#[cfg(test)]
mod tests;
