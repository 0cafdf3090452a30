//! A policer: a bucket of tokens that fills at a rate up to a burst. A segment takes its size in tokens
//! or is dropped; nothing waits.

use crate::bottleneck::FRAMING;
use hikyaku_units::{DataSize, Instant, Rate};

/// What a policer admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoliceSpec {
    /// In the long run, framing included, as the rate of a link.
    pub rate: Rate,
    /// At once, framing included.
    pub burst: DataSize,
}

/// The bucket.
#[derive(Debug)]
pub(crate) struct Policer {
    spec: Option<PoliceSpec>,
    /// In bit-nanoseconds a second, so that no rounding adds up.
    tokens: u128,
    filled: Instant,
}

const SECOND: u128 = 1_000_000_000;

impl Policer {
    pub(crate) fn new(spec: Option<PoliceSpec>) -> Self {
        Self { spec, tokens: spec.map_or(0, full), filled: Instant::ZERO }
    }

    /// Another rate and burst from `now` on. What is in the bucket stays, as far as it holds it; a new
    /// one is full.
    pub(crate) fn set(&mut self, now: Instant, spec: Option<PoliceSpec>) {
        if spec == self.spec {
            return;
        }
        self.fill(now);
        let new = spec.map_or(0, full);
        self.tokens = if self.spec.is_none() { new } else { self.tokens.min(new) };
        self.spec = spec;
    }

    /// Whether a segment passes.
    #[inline]
    pub(crate) fn admits(&mut self, now: Instant, bytes: u32) -> bool {
        if self.spec.is_none() {
            return true;
        }
        self.fill(now);
        let price = (u128::from(bytes) + u128::from(FRAMING)) * 8 * SECOND;
        let left = self.tokens.checked_sub(price);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    fn fill(&mut self, now: Instant) {
        let Some(spec) = self.spec else {
            self.filled = now;
            return;
        };
        let come = u128::from(spec.rate.bits_per_sec()) * (now - self.filled).as_nanos();
        self.tokens = (self.tokens + come).min(full(spec));
        self.filled = now;
    }
}

fn full(spec: PoliceSpec) -> u128 {
    u128::from(spec.burst.bytes()) * 8 * SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: PoliceSpec = PoliceSpec {
        rate: Rate::from_bits_per_sec(8_000_000),
        burst: DataSize::from_bytes(10_000),
    };
    /// A thousand bytes with their framing: one millisecond of the rate.
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
        // What nobody takes fills the bucket, and no more.
        let passed =
            (0..100).filter(|_| policer.admits(Instant::from_millis(9000), SEGMENT)).count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn nothing_is_lost_by_rounding() {
        let rate = Rate::from_bits_per_sec(999_999_937);
        let mut policer = Policer::new(Some(PoliceSpec { rate, ..SPEC }));
        let passed = (0..10_000_000_u64)
            .filter(|index| policer.admits(Instant::from_nanos(index * 777), SEGMENT))
            .count() as f64;
        let expected = (999_999_937.0 / 8.0 * 7.77 + 10_000.0) / 1000.0;
        assert!((passed - expected).abs() < 2.0, "{passed} {expected}");
    }

    #[test]
    fn a_change_holds_from_then_on() {
        let mut policer = Policer::new(None);
        let now = Instant::from_millis(1);
        assert!((0..1000).all(|_| policer.admits(now, SEGMENT)));
        policer.set(now, Some(SPEC));
        assert_eq!((0..100).filter(|_| policer.admits(now, SEGMENT)).count(), 10);
        let double = PoliceSpec { rate: Rate::from_bits_per_sec(16_000_000), ..SPEC };
        policer.set(now, Some(double));
        let later = Instant::from_millis(4);
        assert_eq!((0..100).filter(|_| policer.admits(later, SEGMENT)).count(), 6);
        // A smaller bucket holds less.
        let later = Instant::from_millis(100);
        policer.set(later, Some(PoliceSpec { burst: DataSize::from_bytes(3000), ..SPEC }));
        assert_eq!((0..100).filter(|_| policer.admits(later, SEGMENT)).count(), 3);
    }
}
