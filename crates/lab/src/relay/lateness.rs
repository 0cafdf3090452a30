//! Lateness of the relay: the difference between the time when a packet was due and the time when
//! it was written.

use hikyaku_units::Instant;
use std::time::Duration;

/// A 99th percentile above this means that the machine is too slow for the link.
pub(crate) const LATE_P99: Duration = Duration::from_millis(2);
/// A single packet later than this means the same.
pub(crate) const LATE_MAX: Duration = Duration::from_millis(20);

/// Number of buckets for each power of two.
const BUCKETS_PER_OCTAVE: u32 = 8;
const BUCKETS: usize = 40 * BUCKETS_PER_OCTAVE as usize;

/// A histogram of durations from a nanosecond to many minutes, with a resolution of one eighth.
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
    /// Counts a packet that was due at `due` and written at `at`.
    #[inline]
    pub(crate) fn record(&mut self, due: Instant, at: Instant) {
        let late = at - due;
        self.counts[bucket(late.as_nanos() as u64)] += 1;
        self.total += 1;
        self.max = self.max.max(late);
    }

    /// Number of packets counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The largest lateness.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The lateness that a fraction `share` (0 to 1) of the packets did not exceed, rounded up by
    /// at most one eighth.
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
    if nanos < u64::from(BUCKETS_PER_OCTAVE) {
        return nanos as usize;
    }
    let power = nanos.ilog2();
    let fine = (nanos >> (power - BUCKETS_PER_OCTAVE.ilog2())) as u32 - BUCKETS_PER_OCTAVE;
    (((power - BUCKETS_PER_OCTAVE.ilog2() + 1) * BUCKETS_PER_OCTAVE + fine) as usize)
        .min(BUCKETS - 1)
}

fn upper(index: usize) -> u64 {
    let index = index as u32 + 1;
    if index <= BUCKETS_PER_OCTAVE {
        return u64::from(index);
    }
    u64::from(BUCKETS_PER_OCTAVE + index % BUCKETS_PER_OCTAVE) << (index / BUCKETS_PER_OCTAVE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_an_eighth_of_its_value_wide() {
        for nanos in (0..10_000).chain([1_000_000, 123_456_789]) {
            let upper = upper(bucket(nanos));
            assert!(upper > nanos && upper <= nanos + nanos / 8 + 1, "{nanos} in {upper}");
        }
    }

    #[test]
    fn quantiles_are_rounded_up_by_an_eighth_at_most() {
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
