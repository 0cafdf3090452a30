//! The conduct of each server during a download.

use hikyaku_http::Waited;
use std::time::{Duration, Instant};

/// How a source is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    pub(crate) fate: Fate,
    /// Failures in a row without a byte between. Those of requests that were sent beside each other are one.
    pub(crate) failures: u32,
    /// When the last of them was counted.
    pub(crate) failed: Instant,
    pub(crate) not_before: Instant,
    /// The time that it has asked for since its last byte.
    pub(crate) waited: Waited,
    /// Connections over which bytes come.
    pub(crate) flowing: usize,
}

/// Whether a source is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Used,
    /// It failed or lied.
    Dropped,
}

impl Standing {
    pub(crate) fn new(now: Instant) -> Self {
        let (fate, waited) = (Fate::Used, Waited::default());
        Self { fate, failures: 0, failed: now, not_before: now, waited, flowing: 0 }
    }

    /// A request that was begun at this instant failed, and the next one may be sent after `wait` of the number of
    /// failures.
    pub(crate) fn fail(&mut self, begun: Instant, now: Instant, wait: impl Fn(u32) -> Duration) {
        if begun >= self.failed {
            self.failures += 1;
            self.failed = now;
        }
        self.not_before = now + wait(self.failures);
    }

    /// Bytes have come.
    pub(crate) fn succeed(&mut self) {
        self.failures = 0;
        self.waited = Waited::default();
    }

    pub(crate) fn may_be_asked(&self, now: Instant) -> bool {
        self.fate == Fate::Used && now >= self.not_before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_units::RetryPolicy;

    #[test]
    fn failures_beside_each_other_are_one() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut standing = Standing::new(begin);
        let wait = |failures| RetryPolicy::of_web(Duration::from_secs(1)).wait(failures);
        for _ in 0..10 {
            standing.fail(at(1), at(2), wait);
        }
        assert_eq!((standing.failures, standing.not_before), (1, at(3)));
        standing.fail(at(3), at(4), wait);
        assert_eq!((standing.failures, standing.not_before), (2, at(6)));
    }
}
