//! The clock that the controller goes by.

use hikyaku_units::Instant;
use libm::fmax;

/// A round is one round trip, told by packet numbers, and never so short that a handful of
/// arrivals would decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundClock {
    pub(crate) end: u64,
    pub(crate) began: Instant,
    /// Something other than the controller held the sender back.
    pub(crate) starved: bool,
    pub(crate) most_in_flight: u64,
    /// A common drain was seen in it.
    pub(crate) touched: bool,
    pub(crate) acked: u64,
    /// The same in bytes.
    pub(crate) acked_bytes: u64,
    pub(crate) marked: u64,
}

impl RoundClock {
    pub(crate) const fn new(end: u64, began: Instant) -> Self {
        Self {
            end,
            began,
            starved: false,
            most_in_flight: 0,
            touched: false,
            acked: 0,
            acked_bytes: 0,
            marked: 0,
        }
    }

    /// Bytes a second that were acknowledged, by our own clock.
    pub(crate) fn acked_rate(&self, now: Instant) -> f64 {
        self.acked_bytes as f64 / fmax((now - self.began).as_secs_f64(), 1e-6)
    }

    /// The share of packets that arrived with a congestion mark.
    pub(crate) fn marks(&self) -> f64 {
        self.marked as f64 / self.acked.max(1) as f64
    }
}
