//! Packets that the receiver does not report on, neither as received nor as missing, although it
//! reports on later ones.
//!
//! An unreported packet is not lost, but a record is held for it. An honest receiver reports on
//! every packet soon, because each of its ACKs also covers a part of the older packets. So the
//! sender probes the receiver, as after its last packet, and then declares the packets lost that
//! are still unreported.

use core::time::Duration;
use hikyaku_units::Instant;

/// Whether unreported packets have been detected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Unreported {
    #[default]
    None,
    /// Detected at `since`, so it concerns packets sent until then. `probes` probes have been sent
    /// since.
    Since { since: Instant, probes: u32 },
}

/// What is due for the unreported packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// A probe to the receiver.
    Probe,
    /// All unreported packets sent until then are to be declared lost.
    End(Instant),
}

// spec: loss-6
/// A packet is unreported if one sent this much later has arrived: this many round trips, and at
/// least one second.
const UNREPORTED_ROUND_TRIPS: u32 = 8;
const UNREPORTED_AFTER_MIN: Duration = Duration::from_secs(1);
const PROBES_MAX: u32 = 3;
/// Time to wait for the answer to a probe: this many round trips, and at least half a second.
const ANSWER_ROUND_TRIPS: u32 = 2;
const ANSWER_WAIT_MIN: Duration = Duration::from_millis(500);

impl Unreported {
    /// Handles an ACK. The oldest unreported packet was sent at `oldest`, the newest that is known
    /// to have arrived at `newest`.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        (oldest, newest): (Option<Instant>, Option<Instant>),
        srtt: Duration,
    ) {
        let (Some(oldest), Some(newest)) = (oldest, newest) else {
            *self = Self::None;
            return;
        };
        match *self {
            // All packets concerned have been reported; those left were sent later.
            Self::Since { since, .. } if oldest > since => *self = Self::None,
            Self::Since { .. } => {}
            Self::None if newest - oldest > unreported_after(srtt) => {
                *self = Self::Since { since: now, probes: 0 };
            }
            Self::None => {}
        }
    }

    /// The path is down, so the receiver cannot be probed.
    pub(crate) const fn on_outage(&mut self) {
        *self = Self::None;
    }

    /// What is due next, and when.
    pub(crate) fn next(&self, srtt: Duration) -> Option<(Instant, Due)> {
        let Self::Since { since, probes } = *self else { return None };
        let at = since + (srtt * ANSWER_ROUND_TRIPS).max(ANSWER_WAIT_MIN) * (probes + 1);
        Some((at, if probes < PROBES_MAX { Due::Probe } else { Due::End(since) }))
    }

    /// Records of packets sent before this time do not block the removal of later records.
    pub(crate) fn passed_over(&self, newest: Instant, srtt: Duration) -> Option<Instant> {
        match self {
            Self::None => None,
            Self::Since { .. } => Some(newest.before(unreported_after(srtt))),
        }
    }

    /// Records that a probe was sent.
    pub(crate) fn on_probe_sent(&mut self, now: Instant, srtt: Duration) {
        let is_due = matches!(self.next(srtt), Some((at, Due::Probe)) if at <= now);
        if let Self::Since { probes, .. } = self
            && is_due
        {
            *probes += 1;
        }
    }

    /// Records that the unreported packets were declared lost.
    pub(crate) const fn on_end(&mut self) {
        *self = Self::None;
    }
}

/// The minimum time between an unreported packet and a later one that has arrived.
fn unreported_after(srtt: Duration) -> Duration {
    (srtt * UNREPORTED_ROUND_TRIPS).max(UNREPORTED_AFTER_MIN)
}
