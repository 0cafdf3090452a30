//! Probes of a path with less data in flight: whether the base delay is lower than assumed, and whether the path itself
//! loses packets.
//!
//! A standing queue hides the base delay, and a flow that arrives later takes the queue for a part of the base. Lasting
//! loss by overflow looks like loss of the path. One round with less data in flight distinguishes both. If the base
//! turns out lower, all flows at the bottleneck measure the same dip at the same time and probe again after the same
//! interval. So the probes of flows synchronise, and then the queue becomes empty.

use crate::law::TARGET_MIN;
use core::time::Duration;
use hikyaku_units::Instant;
use libm::{fmax, fmin};

/// The time and depth of probes.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    stage: Stage,
    last: Instant,
    /// The first packet that was sent with less data in flight.
    first: u64,
    /// The lost packets met no queue.
    has_room: bool,
    /// The rate while acknowledgements of the probe are outstanding.
    then: Then,
    /// The base delay when the last round ended, in nanoseconds from any origin.
    base: Option<i64>,
    /// The base turned out lower than assumed.
    was_wrong: bool,
    /// Consecutive rounds with loss, not counting the cuts between them.
    lossy: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Stage {
    Idle,
    /// Less data is in flight.
    Draining(Depth),
    /// Acknowledgements of the packets of the probe are outstanding.
    Listening(Depth, Then),
}

/// The rate while acknowledgements of a probe are outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// The rate of before.
    All,
    /// Less: the path may not carry the rate of before.
    Less,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Depth {
    /// The flow's data in the queue.
    Queue,
    /// A part of the data in flight.
    Part,
    /// All but this part of the window, which arrives in a round trip without a queue.
    Arrived(f64),
}

/// A completed round. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) now: Instant,
    /// The smallest delay, in nanoseconds from any origin, and the time of its packet.
    pub(crate) base: Option<(Instant, i64)>,
    pub(crate) queue: f64,
    pub(crate) round_trip: f64,
    /// The queue was short, so the lost packets did not overflow it.
    pub(crate) has_room: bool,
    /// Number of packets sent in total.
    pub(crate) sent: u64,
    /// The part of the window that arrives in a round trip without a queue.
    pub(crate) arrived: f64,
    /// Assumed loss rate of the path itself.
    pub(crate) ambient: f64,
    /// No probe has confirmed that assumption.
    pub(crate) is_doubted: bool,
    /// Loss above it; `None` in the rounds after a cut of the window.
    pub(crate) excess: Option<f64>,
}

impl Look {
    fn rarely(&self) -> Duration {
        Duration::from_secs_f64(ROUND_TRIPS * self.round_trip).max(EVERY)
    }
}

/// Age of the base delay at which it is measured again: less than the ten seconds of its window.
const EVERY: Duration = Duration::from_secs(7);
/// Interval until the next probe if a probe did not reach the base delay.
const AGAIN: Duration = Duration::from_secs(1);
/// Smallest interval between probes of the path's own loss, in round trips: on the longest paths more would cost too much.
const ROUND_TRIPS: f64 = 30.0;
/// Part of the window that a probe removes: a quarter of one flow ends an overflow of a hundredth for up to 25 flows.
const PART: f64 = 0.25;
/// Rate of a probe without a queue, as a part of the delivery rate: a policer that passes the delivery rate drops
/// no packet of it.
const BELOW: f64 = 0.95;
/// Smallest part of the window that remains.
const DEEPEST: f64 = 0.25;
/// Nanoseconds by which the base must fall to count as wrong: more than the clocks' drift.
const WRONG: i64 = 500_000;
/// Loss rate below which no probe is made.
const NEGLIGIBLE: f64 = 0.005;
/// Packets of a probe. It ends earlier after the interval between probes divided by [`LONGEST`].
const TELLING: u64 = 200;
const LONGEST: u32 = 16;
/// Loss rate of a single round that is enough for a probe.
const MUCH: f64 = 0.15;
/// Rounds with loss after which a probe is made: loss that continues after a cut may be the path's own.
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

    /// Whether no probe is in progress.
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// Whether the acknowledged packets were sent with a part less data in flight. An emptied queue alone is no
    /// measurement of loss.
    pub(crate) const fn is_after_less(&self) -> bool {
        matches!(self.stage, Stage::Listening(Depth::Part | Depth::Arrived(_), _))
    }

    /// Whether a probe reduces the rate without a pause, because no queue has to be emptied.
    pub(crate) const fn is_gentle(&self) -> bool {
        let is_for_loss = matches!(
            self.stage,
            Stage::Draining(Depth::Arrived(_)) | Stage::Listening(Depth::Arrived(_), _)
        );
        is_for_loss && self.has_room
    }

    /// The reduced window, if `queued` bytes of `window` are in the queue.
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

    /// Ends the probe, because the path has changed.
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

    /// Whether the probe has too few packets for a loss rate. It then lasts for several rounds.
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
        // The last probe removed too little: other flows keep the queue filled.
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
