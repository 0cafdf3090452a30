//! Counters of a link. All of them only grow, so the difference of two readings describes the time
//! between them.

use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// Totals since the link was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets offered.
    pub segments: u64,
    /// Bytes of IP offered.
    pub bytes: u64,
    /// Packets delivered or to be delivered, including corrupted ones and excluding duplicates.
    pub delivered: u64,
    /// Bytes of IP of these packets.
    pub delivered_bytes: u64,
    /// Packets lost by the loss model.
    pub lost: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets dropped by the active queue management.
    pub aqm_dropped: u64,
    /// Packets dropped by the policer.
    pub policed: u64,
    /// Packets dropped because they exceed the MTU.
    pub too_big: u64,
    /// Packets lost in an outage.
    pub cut: u64,
    /// Packets delivered with a corrupted bit.
    pub corrupted: u64,
    /// Packets delivered twice.
    pub duplicated: u64,
    /// Packets delayed so that others overtake them.
    pub reordered: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
    /// Packets of cross traffic that were sent.
    pub background: u64,
    /// Packets of cross traffic that the queue dropped.
    pub background_dropped: u64,
    /// The largest queue.
    pub largest_queue: DataSize,
    /// The longest time from offer to departure.
    pub largest_wait: Duration,
    /// The integral of the queue over time, in byte-nanoseconds.
    pub queue_integral: u128,
    /// The integral of the waiting time over time, in square nanoseconds.
    pub wait_integral: u128,
    /// The time up to which the integrals are complete.
    pub until: Instant,
}

impl Counters {
    /// The mean queue between the readings `earlier` and `self`.
    pub fn mean_queue_since(&self, earlier: &Self) -> DataSize {
        let sum = self.queue_integral - earlier.queue_integral;
        let bytes = sum.checked_div((self.until - earlier.until).as_nanos()).unwrap_or(0);
        DataSize::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The mean waiting time of the queue between the readings `earlier` and `self`.
    pub fn mean_wait_since(&self, earlier: &Self) -> Duration {
        let sum = self.wait_integral - earlier.wait_integral;
        let nanos = sum.checked_div((self.until - earlier.until).as_nanos()).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
