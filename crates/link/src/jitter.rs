//! Jitter: a varying delay that does not reorder packets.
//!
//! Drawing a delay for each packet and then restoring the order would hold a dense flow at the
//! largest delay. Instead the extra delay is a function of time: a random value at every multiple
//! of twice the maximum, with linear interpolation between them. Its slope is at most one half, so
//! the order is kept, and the rate of a flow at most doubles.

use crate::dice::rng;
use core::time::Duration;
use hikyaku_units::Instant;

/// The varying extra delay.
#[derive(Debug)]
pub(crate) struct Jitter {
    largest: u64,
    seed: u64,
    /// The interval of the last call, and the values at its two ends.
    stretch: u64,
    levels: (f64, f64),
}

impl Jitter {
    pub(crate) fn new(largest: Duration, seed: u64) -> Self {
        let mut jitter = Self { largest: 0, seed, stretch: 0, levels: (0.0, 0.0) };
        jitter.set(largest);
        jitter
    }

    pub(crate) fn set(&mut self, largest: Duration) {
        self.largest = u64::try_from(largest.as_nanos()).unwrap_or(u64::MAX / 4);
        self.stretch = u64::MAX;
    }

    /// The extra delay of a packet that departs at `at`.
    #[inline]
    pub(crate) fn at(&mut self, at: Instant) -> Duration {
        if self.largest == 0 {
            return Duration::ZERO;
        }
        let length = self.largest * 2;
        let stretch = at.as_nanos() / length;
        if stretch != self.stretch {
            self.stretch = stretch;
            self.levels = (self.level(stretch), self.level(stretch + 1));
        }
        let along = (at.as_nanos() % length) as f64 / length as f64;
        let level = self.levels.0 + (self.levels.1 - self.levels.0) * along;
        Duration::from_nanos((level * self.largest as f64) as u64)
    }

    fn level(&self, knot: u64) -> f64 {
        rng(self.seed, knot).f64()
    }
}
