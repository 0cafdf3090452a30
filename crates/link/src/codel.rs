//! CoDel (RFC 8289): a queue that drops, or marks, when nobody has waited less than a target for a whole
//! interval; then more and more often, until somebody has.
//!
//! The RFC decides when a segment leaves the queue. A link answers when one is offered; but nothing that
//! is offered later can overtake, so when it will leave is known, and with it how long it waits and what
//! those before it have met. Two things differ. That the queue behind a segment is shorter than one
//! segment, in which case the RFC spares it, is not known yet: what stands before it is taken instead.
//! And what waits when the rate changes keeps the answer that it has.

use crate::bottleneck::Retiming;
use core::time::Duration;
use hikyaku_units::Instant;

/// How a queue is managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelSpec {
    /// The wait that may stand.
    pub target: Duration,
    /// For how long it may be exceeded: a round trip of the slower flows.
    pub interval: Duration,
    /// What happens to those whose senders understand marks.
    pub signal: Signal,
}

/// What a managed queue does to a segment that it chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It drops it.
    Drop,
    /// It marks it if its sender understands that, else it drops it.
    Mark,
}

/// Whether the sender of a segment understands marks of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// It does.
    Capable,
    /// It does not.
    Not,
}

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    Mark,
    Drop,
}

/// A segment at the moment when it would leave the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) at: Instant,
    pub(crate) waited: Duration,
    /// Bytes that stood before it.
    pub(crate) ahead: u64,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
}

/// The state of a managed queue.
#[derive(Debug)]
pub(crate) struct Codel {
    spec: CodelSpec,
    /// If waits stay above the target, when that has lasted for an interval.
    due: Option<Instant>,
    next_drop: Instant,
    /// Segments chosen since the queue began to choose, and how many there were when it last began.
    count: u32,
    last_count: u32,
    phase: Phase,
    longest: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Calm,
    Choosing,
    /// The segment before was dropped at the begin of choosing: the next one takes its place.
    JustBegun,
    /// The segment before was dropped: whether more must go is asked at once.
    JustDropped,
}

/// Who begins to choose again so soon goes on where it was.
const REMEMBERED: u32 = 16;

impl CodelSpec {
    /// As the RFC has it: 5 ms, 100 ms.
    pub const fn usual(signal: Signal) -> Self {
        let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
        Self { target, interval, signal }
    }
}

impl Codel {
    pub(crate) fn new(spec: CodelSpec) -> Self {
        Self {
            spec,
            due: None,
            next_drop: Instant::ZERO,
            count: 0,
            last_count: 0,
            phase: Phase::Calm,
            longest: 0,
        }
    }

    pub(crate) fn spec(&self) -> CodelSpec {
        self.spec
    }

    /// Decides on the segments one after another.
    pub(crate) fn decide(&mut self, leaving: &Leaving) -> Decision {
        let is_bad = self.is_bad(leaving);
        match self.phase {
            Phase::Calm if is_bad => self.begin(leaving),
            Phase::Calm => Decision::Pass,
            Phase::JustBegun => {
                self.phase = Phase::Choosing;
                Decision::Pass
            }
            Phase::Choosing | Phase::JustDropped if !is_bad => {
                self.phase = Phase::Calm;
                Decision::Pass
            }
            Phase::JustDropped => {
                self.next_drop = self.after(self.next_drop);
                self.phase = Phase::Choosing;
                self.go_on(leaving)
            }
            Phase::Choosing => self.go_on(leaving),
        }
    }

    /// Moves what is to happen as a change of rate moves what waits.
    pub(crate) fn retime(&mut self, retiming: &Retiming) {
        self.next_drop = retiming.departs(self.next_drop);
        self.due = self.due.map(|due| retiming.departs(due));
    }

    /// Whether waits have been above the target for an interval.
    fn is_bad(&mut self, leaving: &Leaving) -> bool {
        self.longest = self.longest.max(leaving.bytes);
        if leaving.waited < self.spec.target || leaving.ahead <= u64::from(self.longest) {
            self.due = None;
            return false;
        }
        let due = *self.due.get_or_insert(leaving.at + self.spec.interval);
        leaving.at >= due
    }

    fn begin(&mut self, leaving: &Leaving) -> Decision {
        let is_recent = leaving.at < self.next_drop + self.spec.interval * REMEMBERED;
        let chosen = self.count.saturating_sub(self.last_count);
        self.count = if chosen > 1 && is_recent { chosen } else { 1 };
        self.last_count = self.count;
        self.next_drop = self.after(leaving.at);
        self.signal(leaving, Phase::JustBegun)
    }

    fn go_on(&mut self, leaving: &Leaving) -> Decision {
        if leaving.at < self.next_drop {
            return Decision::Pass;
        }
        self.count = self.count.saturating_add(1);
        let decision = self.signal(leaving, Phase::JustDropped);
        if decision == Decision::Mark {
            self.next_drop = self.after(self.next_drop);
        }
        decision
    }

    /// A marked segment is sent, so nothing takes its place.
    fn signal(&mut self, leaving: &Leaving, if_dropped: Phase) -> Decision {
        if self.spec.signal == Signal::Mark && leaving.ecn == Ecn::Capable {
            self.phase = Phase::Choosing;
            Decision::Mark
        } else {
            self.phase = if_dropped;
            Decision::Drop
        }
    }

    /// The interval over the root of the count later.
    fn after(&self, at: Instant) -> Instant {
        let interval = self.spec.interval.as_nanos();
        let nanos = (interval * interval / u128::from(self.count.max(1))).isqrt();
        at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
