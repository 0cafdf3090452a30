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
use libm::{fmax, fmin};

/// When to look, and how deep.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    stage: Stage,
    last: Instant,
    /// The first packet that was sent while less was under way.
    first: u64,
    /// What was lost met no queue.
    has_room: bool,
    /// What to do while we listen.
    then: Then,
    /// The base delay when the last round ended, in nanoseconds from any origin.
    base: Option<i64>,
    /// The base has turned out to be lower than it was taken for.
    was_wrong: bool,
    /// Rounds with loss that does not go away, cuts between them.
    lossy: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    Idle,
    /// Less is under way.
    Draining(Depth),
    /// What was sent meanwhile arrives, or does not.
    Listening(Depth, Then),
}

/// What is sent while we listen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// As much as before.
    All,
    /// Less: it is not known whether the path carries it.
    Less,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Depth {
    /// What we have in the queue.
    Queue,
    /// A part of all that is under way.
    Part,
    /// No more is sent than this share of the window, which arrives in a round trip without a queue.
    Arrived(f64),
}

/// A round that is over, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) now: Instant,
    /// The smallest delay, in nanoseconds from any origin, and when it was seen.
    pub(crate) base: Option<(Instant, i64)>,
    pub(crate) queue: f64,
    pub(crate) round_trip: f64,
    /// No queue to speak of stood: what was lost did not overflow one.
    pub(crate) has_room: bool,
    /// Packets that were sent so far.
    pub(crate) sent: u64,
    /// What arrives in a round trip without a queue, as a share of the window.
    pub(crate) arrived: f64,
    /// What is taken for the path's own loss.
    pub(crate) ambient: f64,
    /// Nothing has shown yet that so much is.
    pub(crate) is_doubted: bool,
    /// Loss beyond it, if the window was not just cut for some.
    pub(crate) excess: Option<f64>,
}

impl Look {
    fn rarely(&self) -> Duration {
        Duration::from_secs_f64(ROUND_TRIPS * self.round_trip).max(EVERY)
    }
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
/// Where no queue stands, no more is sent than this share of what arrived: a policer that lets that much
/// through drops nothing of it.
const BELOW: f64 = 0.95;
/// So much of the window is left at the least.
const DEEPEST: f64 = 0.25;
/// A base that falls by more than clocks drift apart in the meantime was wrong.
const WRONG: i64 = 500_000;
/// Loss below this need not be looked into.
const NEGLIGIBLE: f64 = 0.005;
/// So many packets are sent while less is under way, or for so much of the time until the next look.
const TELLING: u64 = 200;
const LONGEST: u32 = 16;
/// So much at once need not last.
const MUCH: f64 = 0.15;
/// Loss that is still there after a cut may be the path's own.
const LASTING: u32 = 2;

impl Probe {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            stage: Stage::Idle,
            last: now,
            first: 0,
            has_room: true,
            then: Then::All,
            base: None,
            was_wrong: false,
            lossy: 0,
        }
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
        matches!(self.stage, Stage::Listening(Depth::Part | Depth::Arrived(_), _))
    }

    /// Whether less is sent without a pause that would let what is under way drain: there is no queue to empty.
    pub(crate) const fn is_gentle(&self) -> bool {
        let is_for_loss = matches!(
            self.stage,
            Stage::Draining(Depth::Arrived(_)) | Stage::Listening(Depth::Arrived(_), _)
        );
        is_for_loss && self.has_room
    }

    /// What is left of a window of which `queued` bytes are in the queue.
    pub(crate) fn window(&self, window: f64, queued: f64) -> f64 {
        match self.stage {
            Stage::Idle | Stage::Listening(_, Then::All) => window,
            Stage::Draining(depth) | Stage::Listening(depth, Then::Less) => match depth {
                Depth::Queue => fmax(window - queued, window / 2.0),
                Depth::Part => fmax(window - fmax(queued, PART * window), window / 2.0),
                Depth::Arrived(share) => window * fmax(fmin(BELOW * share, 1.0 - PART), DEEPEST),
            },
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
            if excess > MUCH && look.has_room {
                self.lossy = LASTING;
            }
        }
        self.stage = match self.stage {
            Stage::Draining(Depth::Arrived(_)) if self.is_too_short(look) => return,
            Stage::Draining(depth) => Stage::Listening(depth, self.then),
            Stage::Listening(..) => Stage::Idle,
            Stage::Idle => self.next(look).map_or(Stage::Idle, Stage::Draining),
        };
        if self.is_draining() {
            let is_doubted = (look.is_doubted || self.lossy >= LASTING) && look.has_room;
            self.then = if is_doubted { Then::Less } else { Then::All };
            self.first = look.sent;
            (self.last, self.was_wrong, self.lossy) = (look.now, false, 0);
            self.has_room = look.has_room;
        }
    }

    /// Few packets say nothing of loss: where rounds are of few, less is sent in several.
    fn is_too_short(&self, look: &Look) -> bool {
        let is_few = look.sent - self.first < TELLING;
        is_few && look.now - self.last < look.rarely() / LONGEST
    }

    // spec: rate-2
    fn next(&self, look: &Look) -> Option<Depth> {
        let again = AGAIN.max(Duration::from_secs_f64(look.round_trip * 20.0));
        let is_unseen = look.queue > TARGET_MIN
            && look.now - self.last > again
            && look.base.is_some_and(|(seen, _)| look.now - seen > EVERY);
        // What was drained was not enough: something fills the queue however short it is.
        let was_in_vain = look.now - self.last < EVERY;
        let is_due = look.is_doubted || look.now - self.last > look.rarely();
        let is_lossy = look.ambient > NEGLIGIBLE && is_due;
        if is_lossy || self.lossy >= LASTING {
            return Some(Depth::Arrived(look.arrived));
        }
        let depth = if self.was_wrong || was_in_vain { Depth::Part } else { Depth::Queue };
        is_unseen.then_some(depth)
    }
}

#[cfg(test)]
mod tests;
