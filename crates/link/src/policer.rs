//! A policer: a token bucket that fills at a rate up to a burst size. A packet takes tokens of its
//! size, or is dropped. Nothing is queued.

use crate::bottleneck::FRAMING;
use hikyaku_units::{DataSize, Instant, Rate};

/// The parameters of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoliceSpec {
    /// The sustained rate, framing included.
    pub rate: Rate,
    /// The burst size, framing included.
    pub burst: DataSize,
}

/// The token bucket.
#[derive(Debug)]
pub(crate) struct Policer {
    spec: Option<PoliceSpec>,
    /// Tokens in units of 10^-9 bits, so that rounding errors do not accumulate.
    tokens: u128,
    filled: Instant,
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Policer {
    pub(crate) fn new(spec: Option<PoliceSpec>) -> Self {
        Self { spec, tokens: spec.map_or(0, full_tokens), filled: Instant::ZERO }
    }

    /// Changes rate and burst size at `now`. The tokens are kept up to the new burst size; a bucket
    /// that did not exist before starts full.
    pub(crate) fn set(&mut self, now: Instant, spec: Option<PoliceSpec>) {
        if spec == self.spec {
            return;
        }
        self.fill(now);
        let new = spec.map_or(0, full_tokens);
        self.tokens = if self.spec.is_none() { new } else { self.tokens.min(new) };
        self.spec = spec;
    }

    /// Whether a packet passes.
    #[inline]
    pub(crate) fn admits(&mut self, now: Instant, bytes: u32) -> bool {
        if self.spec.is_none() {
            return true;
        }
        self.fill(now);
        let cost = (u128::from(bytes) + u128::from(FRAMING)) * 8 * NANOS_PER_SECOND;
        let left = self.tokens.checked_sub(cost);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    fn fill(&mut self, now: Instant) {
        let Some(spec) = self.spec else {
            self.filled = now;
            return;
        };
        let earned = u128::from(spec.rate.bits_per_sec()) * (now - self.filled).as_nanos();
        self.tokens = (self.tokens + earned).min(full_tokens(spec));
        self.filled = now;
    }
}

fn full_tokens(spec: PoliceSpec) -> u128 {
    u128::from(spec.burst.bytes()) * 8 * NANOS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: PoliceSpec = PoliceSpec {
        rate: Rate::from_bits_per_sec(8_000_000),
        burst: DataSize::from_bytes(10_000),
    };
    /// The IP size of a packet of 1,000 bytes with framing: one millisecond at the rate of `SPEC`.
    const SEGMENT: u32 = 1000 - FRAMING;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut policer = Policer::new(Some(SPEC));
        let now = Instant::from_millis(50);
        let passed = (0..100).filter(|_| policer.admits(now, SEGMENT)).count();
        assert_eq!(passed, 10);
        // Ten offers each millisecond, of which one passes.
        for millis in 51..1051 {
            let now = Instant::from_millis(millis);
            assert_eq!((0..10).filter(|_| policer.admits(now, SEGMENT)).count(), 1, "{millis}");
        }
        // Unused tokens fill the bucket up to the burst size only.
        let passed =
            (0..100).filter(|_| policer.admits(Instant::from_millis(9000), SEGMENT)).count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn rounding_errors_do_not_accumulate_in_the_policer() {
        let rate = Rate::from_bits_per_sec(999_999_937);
        let mut policer = Policer::new(Some(PoliceSpec { rate, ..SPEC }));
        let passed = (0..10_000_000_u64)
            .filter(|index| policer.admits(Instant::from_nanos(index * 777), SEGMENT))
            .count() as f64;
        let expected = (999_999_937.0 / 8.0 * 7.77 + 10_000.0) / 1000.0;
        assert!((passed - expected).abs() < 2.0, "{passed} {expected}");
    }

    #[test]
    fn a_change_applies_from_its_time_on() {
        let mut policer = Policer::new(None);
        let now = Instant::from_millis(1);
        assert!((0..1000).all(|_| policer.admits(now, SEGMENT)));
        policer.set(now, Some(SPEC));
        assert_eq!((0..100).filter(|_| policer.admits(now, SEGMENT)).count(), 10);
        let double = PoliceSpec { rate: Rate::from_bits_per_sec(16_000_000), ..SPEC };
        policer.set(now, Some(double));
        let later = Instant::from_millis(4);
        assert_eq!((0..100).filter(|_| policer.admits(later, SEGMENT)).count(), 6);
        // A smaller burst size discards tokens.
        let later = Instant::from_millis(100);
        policer.set(later, Some(PoliceSpec { burst: DataSize::from_bytes(3000), ..SPEC }));
        assert_eq!((0..100).filter(|_| policer.admits(later, SEGMENT)).count(), 3);
    }
}
