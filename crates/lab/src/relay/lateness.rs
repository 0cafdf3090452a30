//! How late the relay is: the time from when a packet should have arrived to when it did.

use hikyaku_units::Instant;
use std::time::Duration;

/// Above this, a 99th percentile says that the host was too slow for the link.
pub(crate) const LATE_P99: Duration = Duration::from_millis(2);
/// Above this, a single packet says so.
pub(crate) const LATE_MAX: Duration = Duration::from_millis(20);

/// Buckets within each power of two.
const FINE: u32 = 8;
const BUCKETS: usize = 40 * FINE as usize;

/// A histogram with buckets an eighth wide, from a nanosecond to many minutes.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    /// Counts a packet due at `due` and written at `at`.
    #[inline]
    pub(crate) fn record(&mut self, due: Instant, at: Instant) {
        let late = at - due;
        self.counts[bucket(late.as_nanos() as u64)] += 1;
        self.total += 1;
        self.max = self.max.max(late);
    }

    /// How many packets have been counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The latest of all.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// What `share` (0 to 1) of the packets did not exceed, rounded up by at most an eighth.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (self.total as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return Duration::from_nanos(upper(index)).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < u64::from(FINE) {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let fine = (nanos >> (power - FINE.ilog2())) as u32 - FINE;
    (((power - FINE.ilog2() + 1) * FINE + fine) as usize).min(BUCKETS - 1)
}

fn upper(index: usize) -> u64 {
    let index = index as u32 + 1;
    if index <= FINE {
        return u64::from(index);
    }
    u64::from(FINE + index % FINE) << (index / FINE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_an_eighth_wide() {
        for nanos in (0..10_000).chain([1_000_000, 123_456_789]) {
            let upper = upper(bucket(nanos));
            assert!(upper > nanos && upper <= nanos + nanos / 8 + 1, "{nanos} in {upper}");
        }
    }

    #[test]
    fn quantiles() {
        let mut lateness = Lateness::default();
        for micros in 1..=1000 {
            lateness.record(Instant::ZERO, Instant::from_micros(micros));
        }
        let p99 = lateness.quantile(0.99).as_micros();
        assert!((990..=1000).contains(&p99), "{p99}");
        assert_eq!(lateness.max(), Duration::from_millis(1));
        assert_eq!(lateness.count(), 1000);
    }
}
