//! The schedule by which the sender announces its floor and its round-trip time.

use core::num::NonZeroU32;
use core::time::Duration;
use hikyaku_cc::{ack_interval_beside, told_rtt};
use hikyaku_units::Instant;

const FLOORS_PER_ROUND_TRIP: u32 = 4;
const INTERVAL_MIN: Duration = Duration::from_millis(2);
/// Packets, and intervals, after which a floor with little news is sent. Earlier, a slow flow would send one packet more for each
/// of its own.
const PACKETS: u64 = 16;
const INTERVALS: u32 = 16;

/// The schedule of FLOOR frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floors {
    next: Instant,
    /// When the last one is too old.
    at_the_latest: Instant,
    /// The number of the first packet after the last one.
    after: u64,
    /// The interval of reports that the last one asked for.
    told: Option<Duration>,
}

/// The reason for a floor: the schedule, or a packet that has to have one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Want {
    WhenDue,
    Now,
}

impl Floors {
    pub(super) const fn new(now: Instant) -> Self {
        Self { next: now, at_the_latest: now, after: 0, told: None }
    }

    /// The round-trip time to announce, if a floor is due before the packet with this number. Floors with
    /// little news are left out where others send by the same thread.
    pub(super) fn due(
        &mut self,
        now: Instant,
        want: Want,
        packet_number: u64,
        srtt: Duration,
        sharers: NonZeroU32,
    ) -> Option<Duration> {
        let reports = ack_interval_beside(srtt, sharers);
        let is_other = self.told.is_none_or(|told| reports >= told * 2 || reports * 2 <= told);
        let is_old = is_other || now >= self.at_the_latest;
        // While answers are late, one floor after the other would make a busy receiver busier.
        let is_due = match sharers {
            NonZeroU32::MIN => now >= self.next,
            _ if want == Want::Now => true,
            _ if now < self.next => false,
            _ => packet_number >= self.after + PACKETS || (is_old && packet_number > self.after),
        };
        if !is_due {
            return None;
        }
        let interval = (srtt / FLOORS_PER_ROUND_TRIP).max(INTERVAL_MIN).max(reports);
        (self.next, self.at_the_latest) = (now + interval, now + interval * INTERVALS);
        (self.after, self.told) = (packet_number + 1, Some(reports));
        Some(told_rtt(srtt, sharers))
    }
}
