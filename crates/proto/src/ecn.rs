//! Validation that ECN works on this path (RFC 9000, section 13.4).
//!
//! Data packets are sent with an ECN-capable codepoint. Some paths drop such packets, and some mark
//! all of them. Without validation, congestion control would take either for permanent congestion.

use core::time::Duration;
use hikyaku_units::Instant;

/// The ECN field of a packet's IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marking {
    /// ECN-capable: a congested router may mark the packet.
    Ect0,
    /// Not ECN-capable: a congested router drops the packet.
    NotEct,
}

/// The state of ECN on this path.
#[derive(Clone, Debug, Default)]
pub(crate) struct EcnValidation {
    state: State,
    /// Data packets lost before the first one arrived.
    lost: u64,
    round: Round,
    /// Consecutive round trips in which all packets were marked although no queue was measured.
    strikes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// No ECN-capable packet has been acknowledged yet.
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

/// What one acknowledgement reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Full-size data packets that are newly known to have arrived, or to be lost.
    pub(crate) arrived: u64,
    pub(crate) lost: u64,
    /// Packets of all kinds newly known to have arrived, and newly reported congestion marks.
    pub(crate) acked: u64,
    pub(crate) marked: u64,
    /// The queueing delay of the path.
    pub(crate) queue: Duration,
}

/// The result of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Unchanged,
    /// ECN has failed on this path, so what was measured with it must be discarded.
    Broken,
}

/// After this many lost data packets and none received, the cause is taken to be the ECN codepoint.
/// The first train has as many packets.
const LOST_PACKETS_UNTIL_FAILED: u64 = 32;
/// The fraction of marked packets above which all data packets are taken to be marked. It is below
/// 1 because control packets, which are not ECN-capable, are acknowledged as well.
const MARKED_FRACTION_MIN: f64 = 0.9;
const ROUND_PACKETS_MIN: u64 = 20;
/// A router that marks because of congestion has a queue longer than this.
const QUEUE_DELAY_MIN: Duration = Duration::from_millis(1);
const STRIKES_UNTIL_FAILED: u32 = 4;

impl EcnValidation {
    /// The codepoint for data packets.
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
                if self.lost >= LOST_PACKETS_UNTIL_FAILED {
                    return self.fail();
                }
            }
            State::Capable => {}
        }
        self.round.acked += report.acked;
        self.round.marked += report.marked;
        let began = *self.round.began.get_or_insert(now);
        if now - began >= rtt && self.round.acked >= ROUND_PACKETS_MIN {
            let round = core::mem::take(&mut self.round);
            let all = round.marked as f64 >= MARKED_FRACTION_MIN * round.acked as f64;
            self.strikes = if all && report.queue < QUEUE_DELAY_MIN { self.strikes + 1 } else { 0 };
            if self.strikes >= STRIKES_UNTIL_FAILED {
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
