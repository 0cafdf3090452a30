//! What a link has done so far. All of it only grows, so two readings can be subtracted.

use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// Sums since the link was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments offered.
    pub segments: u64,
    /// Bytes of IP offered.
    pub bytes: u64,
    /// Segments promised to arrive, damaged ones included, second copies not.
    pub delivered: u64,
    /// Their bytes of IP.
    pub delivered_bytes: u64,
    /// Segments lost by the loss model.
    pub lost: u64,
    /// Segments that the full queue turned away.
    pub overflowed: u64,
    /// Segments that the managed queue dropped.
    pub aqm_dropped: u64,
    /// Segments that the policer dropped.
    pub policed: u64,
    /// Segments longer than the MTU.
    pub too_big: u64,
    /// Segments lost in an outage.
    pub cut: u64,
    /// Segments delivered damaged.
    pub corrupted: u64,
    /// Segments delivered twice.
    pub duplicated: u64,
    /// Segments held back so that others overtake them.
    pub reordered: u64,
    /// Segments marked with congestion experienced.
    pub marked: u64,
    /// The largest queue so far.
    pub largest_queue: DataSize,
    /// The longest time from offer to departure so far.
    pub largest_wait: Duration,
    /// The integral of the queue over time, in byte-nanoseconds.
    pub queue_integral: u128,
    /// The integral of the waiting time over time, in square nanoseconds.
    pub wait_integral: u128,
    /// Up to when the integrals are complete.
    pub until: Instant,
}

impl Counters {
    /// The mean queue over the time between `earlier` and `self`.
    pub fn mean_queue_since(&self, earlier: &Self) -> DataSize {
        let sum = self.queue_integral - earlier.queue_integral;
        let bytes = sum.checked_div((self.until - earlier.until).as_nanos()).unwrap_or(0);
        DataSize::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The mean time that the queue stood for, between `earlier` and `self`.
    pub fn mean_wait_since(&self, earlier: &Self) -> Duration {
        let sum = self.wait_integral - earlier.wait_integral;
        let nanos = sum.checked_div((self.until - earlier.until).as_nanos()).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
