//! CoDel (RFC 8289): active queue management that drops or marks packets once the waiting time has
//! stayed above a target for a whole interval, and then at a growing rate until it falls below.
//!
//! The RFC decides when a packet leaves the queue; this model decides when it is offered. The queue
//! is first in, first out, so the departure of an offered packet, its waiting time and the
//! decisions before it are known. Two differences remain. The RFC does not drop if the queue behind
//! the packet is shorter than one packet; that is not known yet, so the queue before it is used.
//! And packets that are queued when the rate changes keep the decision already made.

use crate::bottleneck::Retiming;
use core::time::Duration;
use hikyaku_units::Instant;

/// The parameters of the active queue management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelSpec {
    /// The acceptable standing waiting time.
    pub target: Duration,
    /// How long the target may be exceeded: the round-trip time of the slower flows.
    pub interval: Duration,
    /// What happens to chosen packets of ECN-capable senders.
    pub signal: Signal,
}

/// The congestion signal for a chosen packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// It is dropped.
    Drop,
    /// It is marked if it is ECN-capable, and dropped otherwise.
    Mark,
}

/// Whether a packet is ECN-capable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// It carries ECT(0) or ECT(1).
    Capable,
    /// It does not.
    Not,
}

/// The decision for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    Mark,
    Drop,
}

/// A packet at the time when it would leave the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub(crate) at: Instant,
    pub(crate) waited: Duration,
    /// Bytes in the queue before it.
    pub(crate) ahead: u64,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
}

/// The state of CoDel for one queue.
#[derive(Debug)]
pub(crate) struct Codel {
    spec: CodelSpec,
    /// While waiting times are above the target: when that will have lasted for an interval
    /// (`first_above_time` in the RFC).
    due: Option<Instant>,
    next_drop: Instant,
    /// The packets chosen since dropping began, and that count when dropping last began (`count`
    /// and `lastcount` in the RFC).
    count: u32,
    last_count: u32,
    phase: Phase,
    longest: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Dropping,
    /// The packet before was the first to be dropped. The next one is sent in its place without a
    /// decision, as in the RFC.
    FirstDropped,
    /// The packet before was dropped. The decision for the next one is made at once.
    PreviousDropped,
}

/// If dropping resumes within this many intervals, it continues at the previous rate (RFC 8289,
/// section 5.5).
const RESUME_INTERVALS_MAX: u32 = 16;

impl CodelSpec {
    /// The defaults of the RFC: 5 ms and 100 ms.
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
            phase: Phase::Idle,
            longest: 0,
        }
    }

    pub(crate) fn spec(&self) -> CodelSpec {
        self.spec
    }

    /// Decides for one packet. Packets must be passed in order.
    pub(crate) fn decide(&mut self, leaving: &Leaving) -> Decision {
        let is_above_target = self.is_above_target(leaving);
        match self.phase {
            Phase::Idle if is_above_target => self.begin_dropping(leaving),
            Phase::Idle => Decision::Pass,
            Phase::FirstDropped => {
                self.phase = Phase::Dropping;
                Decision::Pass
            }
            Phase::Dropping | Phase::PreviousDropped if !is_above_target => {
                self.phase = Phase::Idle;
                Decision::Pass
            }
            Phase::PreviousDropped => {
                self.next_drop = self.control_law(self.next_drop);
                self.phase = Phase::Dropping;
                self.continue_dropping(leaving)
            }
            Phase::Dropping => self.continue_dropping(leaving),
        }
    }

    /// Moves scheduled decisions in the same way as a change of the rate moves departures.
    pub(crate) fn retime(&mut self, retiming: &Retiming) {
        self.next_drop = retiming.departs(self.next_drop);
        self.due = self.due.map(|due| retiming.departs(due));
    }

    /// Whether waiting times have been above the target for an interval (`ok_to_drop` in the RFC).
    fn is_above_target(&mut self, leaving: &Leaving) -> bool {
        self.longest = self.longest.max(leaving.bytes);
        if leaving.waited < self.spec.target || leaving.ahead <= u64::from(self.longest) {
            self.due = None;
            return false;
        }
        let due = *self.due.get_or_insert(leaving.at + self.spec.interval);
        leaving.at >= due
    }

    fn begin_dropping(&mut self, leaving: &Leaving) -> Decision {
        let is_recent = leaving.at < self.next_drop + self.spec.interval * RESUME_INTERVALS_MAX;
        let chosen = self.count.saturating_sub(self.last_count);
        self.count = if chosen > 1 && is_recent { chosen } else { 1 };
        self.last_count = self.count;
        self.next_drop = self.control_law(leaving.at);
        self.signal(leaving, Phase::FirstDropped)
    }

    fn continue_dropping(&mut self, leaving: &Leaving) -> Decision {
        if leaving.at < self.next_drop {
            return Decision::Pass;
        }
        self.count = self.count.saturating_add(1);
        let decision = self.signal(leaving, Phase::PreviousDropped);
        if decision == Decision::Mark {
            self.next_drop = self.control_law(self.next_drop);
        }
        decision
    }

    /// A marked packet is sent, so no other packet takes its place.
    fn signal(&mut self, leaving: &Leaving, if_dropped: Phase) -> Decision {
        if self.spec.signal == Signal::Mark && leaving.ecn == Ecn::Capable {
            self.phase = Phase::Dropping;
            Decision::Mark
        } else {
            self.phase = if_dropped;
            Decision::Drop
        }
    }

    /// The control law of the RFC: `at` plus the interval divided by the square root of the count.
    fn control_law(&self, at: Instant) -> Instant {
        let interval = self.spec.interval.as_nanos();
        let nanos = (interval * interval / u128::from(self.count.max(1))).isqrt();
        at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
