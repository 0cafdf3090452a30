//! Whether congestion marks can be used on this path (RFC 9000, section 13.4).
//!
//! Data packets say that they understand marks. Some paths drop such packets, some mark every one of
//! them: both would be taken for congestion that never ends.

use core::time::Duration;
use hikyaku_units::Instant;

/// What the ECN field of a packet's IP header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marking {
    /// Its sender understands marks.
    Ect0,
    /// A router that is congested is to drop it.
    NotEct,
}

/// What is known of marks on this path.
#[derive(Clone, Debug, Default)]
pub(crate) struct EcnValidation {
    state: State,
    /// Data packets lost before one arrived.
    lost: u64,
    round: Round,
    /// Rounds in a row in which all were marked although none had waited.
    strikes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// No packet that understands marks has arrived yet.
    #[default]
    Testing,
    Capable,
    Failed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began: Option<Instant>,
    acked: u64,
    marked: u64,
}

/// What one acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Full data packets that arrived, and that were lost.
    pub(crate) arrived: u64,
    pub(crate) lost: u64,
    /// Packets of all kinds newly known to have arrived, and new marks among them.
    pub(crate) acked: u64,
    pub(crate) marked: u64,
    /// What packets wait for each other on the path.
    pub(crate) queue: Duration,
}

/// What follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Unchanged,
    /// Marks are of no use here: what was heard of the path so far says nothing.
    Broken,
}

/// So many data packets lost, and none arrived: it is because of what they say. A first train has as many.
const ALL_LOST: u64 = 32;
/// Control packets among those acknowledged are never marked.
const ALL_MARKED: f64 = 0.9;
const LEAST_PACKETS: u64 = 20;
/// A router that marks all it sends has a queue. Fewer rounds than this may be those of a burst.
const NO_QUEUE: Duration = Duration::from_millis(1);
const STRIKES: u32 = 4;

impl EcnValidation {
    /// What data packets are to say.
    // spec: ecn-1
    pub(crate) fn marking(&self) -> Marking {
        if self.state == State::Failed { Marking::NotEct } else { Marking::Ect0 }
    }

    pub(crate) fn on_report(&mut self, now: Instant, rtt: Duration, report: &Report) -> Verdict {
        match self.state {
            State::Failed => return Verdict::Unchanged,
            State::Testing if report.arrived > 0 => self.state = State::Capable,
            State::Testing => {
                self.lost += report.lost;
                if self.lost >= ALL_LOST {
                    return self.fail();
                }
            }
            State::Capable => {}
        }
        self.round.acked += report.acked;
        self.round.marked += report.marked;
        let began = *self.round.began.get_or_insert(now);
        if now - began >= rtt && self.round.acked >= LEAST_PACKETS {
            let round = core::mem::take(&mut self.round);
            let all = round.marked as f64 >= ALL_MARKED * round.acked as f64;
            self.strikes = if all && report.queue < NO_QUEUE { self.strikes + 1 } else { 0 };
            if self.strikes >= STRIKES {
                return self.fail();
            }
        }
        Verdict::Unchanged
    }

    const fn fail(&mut self) -> Verdict {
        self.state = State::Failed;
        Verdict::Broken
    }
}

#[cfg(test)]
mod tests;
