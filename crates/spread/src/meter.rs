//! The rate of one server: bytes of the last second in which it had work.
//!
//! A mean over a longer time would report the rate of before a stall for as long again. Time in which the
//! server could not send is not counted: time without an ask, and the first round trip after an ask that found
//! the server without work. Silence while work is asked is counted, so the rate falls as the silence lasts.

use core::time::Duration;
use hikyaku_units::{Instant, Rate};

/// The time of one bucket.
const BUCKET_TIME: Duration = Duration::from_millis(100);

/// The number of buckets: together one second.
const BUCKETS: usize = 10;

/// The shortest time from which a rate is taken. The bytes of a shorter time may be one burst.
const MEASURED_TIME_MIN: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    bytes: u64,
    time: Duration,
}

/// The meter of one server.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// The rate that holds until there is a measured one.
    begin: Rate,
    buckets: [Bucket; BUCKETS],
    current: usize,
    /// The end of the time that has been counted.
    counted_to: Instant,
}

impl Meter {
    /// A meter that reports `begin` until it has measured.
    pub(crate) fn new(begin: Rate) -> Self {
        Self { begin, buckets: [Bucket::default(); BUCKETS], current: 0, counted_to: Instant::ZERO }
    }

    /// Bytes arrived at `now`, of an ask whose first byte could be here at `due`.
    pub(crate) fn add(&mut self, bytes: u64, due: Instant, now: Instant) {
        let from = self.counted_to.max(due);
        self.counted_to = self.counted_to.max(now);
        let bucket = &mut self.buckets[self.current];
        bucket.bytes = bucket.bytes.saturating_add(bytes);
        bucket.time = bucket.time.saturating_add(now - from);
        if bucket.time >= BUCKET_TIME {
            self.current = (self.current + 1) % BUCKETS;
            self.buckets[self.current] = Bucket::default();
        }
    }

    /// The time until `now` is not counted.
    pub(crate) fn skip_to(&mut self, now: Instant) {
        self.counted_to = self.counted_to.max(now);
    }

    /// The rate. `due`: when a byte could be here at the earliest, if work is asked.
    pub(crate) fn rate(&self, due: Option<Instant>, now: Instant) -> Rate {
        let bytes = self.buckets.iter().fold(0u64, |sum, bucket| sum.saturating_add(bucket.bytes));
        let time: Duration = self.buckets.iter().map(|bucket| bucket.time).sum();
        let silence = due.map_or(Duration::ZERO, |due| now - self.counted_to.max(due));
        // A pause as short as the gaps between two arrivals is not significant.
        let silence = if silence > BUCKET_TIME { silence } else { Duration::ZERO };
        let whole = time + silence;
        if time < MEASURED_TIME_MIN && silence.is_zero() {
            return self.begin;
        }
        // One byte a second at least: the plan divides by the rate.
        let bytes = if time < MEASURED_TIME_MIN {
            (self.begin.bytes_per_sec() * MEASURED_TIME_MIN.as_secs_f64()) as u64
        } else {
            bytes
        };
        Rate::from_bytes_per_sec((bytes as f64 / whole.as_secs_f64()).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Rate = Rate::from_bits_per_sec(16_000_000);

    #[test]
    fn a_rate_is_of_the_last_second_with_work() {
        let mut meter = Meter::new(BEGIN);
        assert_eq!(meter.rate(None, Instant::ZERO), BEGIN);
        let mut add = |from: u64, to: u64, bytes, due| {
            (from..to).step_by(10).for_each(|at| {
                meter.add(bytes, Instant::from_millis(due), Instant::from_millis(at));
            });
            meter.rate(None, Instant::from_millis(to)).bytes_per_sec()
        };
        assert_eq!(add(10, 2_000, 10_000, 0), 1e6);
        // Without work from 2 s to 9 s, the rate stays; after a second with work it is the new one.
        assert_eq!(add(9_010, 11_000, 30_000, 9_000), 3e6);
    }

    #[test]
    fn silence_lowers_the_rate() {
        let mut meter = Meter::new(BEGIN);
        (1..=100).for_each(|at| meter.add(10_000, Instant::ZERO, Instant::from_millis(at * 10)));
        let rate = |at| meter.rate(Some(Instant::ZERO), Instant::from_millis(at)).bytes_per_sec();
        assert!(rate(1_050) > 0.9e6 && rate(2_000) < 0.51e6, "{} {}", rate(1_050), rate(2_000));
    }
}
