//! A limit of the rate of all connections together.

use hikyaku_http::Stop;
use hikyaku_units::{DataSize, Rate};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes may come in bursts of this time's worth.
const BURST: Duration = Duration::from_millis(100);
/// A read is not made smaller than this many bytes.
const READ_BYTES_MIN: usize = 4 << 10;

/// Makes those wait who read too fast.
#[derive(Debug)]
pub(crate) struct Limit {
    rate: Option<Rate>,
    /// The instant at which the bytes so far are within the rate.
    paid: Mutex<Instant>,
}

impl Limit {
    /// `None`: no limit.
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self { rate, paid: Mutex::new(Instant::now()) }
    }

    /// How many bytes to read at once, of `most`.
    pub(crate) fn read_bytes(&self, most: usize) -> usize {
        let Some(rate) = self.rate else { return most };
        let burst = usize::try_from(rate.in_time(BURST).bytes()).unwrap_or(usize::MAX);
        most.min(burst.max(READ_BYTES_MIN))
    }

    /// Waits for the time of the bytes that were read.
    pub(crate) fn wait(&self, bytes: usize, stop: &Stop) {
        if let Some(time) = self.pay(bytes, Instant::now()) {
            stop.sleep(time);
        }
    }

    fn pay(&self, bytes: usize, now: Instant) -> Option<Duration> {
        let time = self.rate?.time_for(DataSize::from_bytes(bytes as u64));
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        // Unused time is lost, except for a burst.
        *paid = (*paid).max(now.checked_sub(BURST).unwrap_or(now)) + time;
        Some(paid.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_paid_for_by_time() {
        let limit = Limit::new(Some(Rate::from_bits_per_sec(8_000_000)));
        let now = Instant::now() + Duration::from_secs(10);
        let pay = |bytes, now| limit.pay(bytes, now).unwrap().as_millis();
        assert_eq!(pay(100_000, now), 0);
        assert_eq!(pay(1_000_000, now), 1000);
        assert_eq!(pay(500_000, now), 1500);
        assert_eq!(pay(100_000, now + Duration::from_secs(60)), 0);
        assert_eq!(Limit::new(None).pay(1 << 30, now), None);
    }

    #[test]
    fn reads_are_small_where_the_rate_is() {
        let reads = |bits| Limit::new(Some(Rate::from_bits_per_sec(bits))).read_bytes(1 << 18);
        assert_eq!(reads(8_000_000_000), 1 << 18);
        assert_eq!(reads(8_000_000), 100_000);
        assert_eq!(reads(1000), READ_BYTES_MIN);
    }
}
