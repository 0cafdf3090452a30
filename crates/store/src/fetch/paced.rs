//! A limit of the rate of a sender whose protocol has none: this end reads no faster, and the windows of TCP hold the sender back.

use hikyaku_transfer::Limit;
use hikyaku_units::Rate;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The limit of one channel, for its [`Fetcher`](crate::Fetcher).
pub struct Paced {
    limit: Mutex<Arc<Limit>>,
    is_closed: AtomicBool,
    /// Nanoseconds of all waits.
    paused: AtomicU64,
}

impl Default for Paced {
    /// Without a limit.
    fn default() -> Self {
        let limit = Mutex::new(Arc::new(Limit::new(None)));
        Self { limit, is_closed: AtomicBool::new(false), paused: AtomicU64::new(0) }
    }
}

impl fmt::Debug for Paced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl Paced {
    /// Limits the rate of all bytes that come from here on.
    pub fn limit(&self, rate: Option<Rate>) {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Limit::new(rate));
    }

    /// Waits for the time slot of `bytes` received bytes, or until the channel is closed.
    pub fn wait(&self, bytes: u64) {
        let limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.pausing(|| limit.wait(bytes, || self.is_closed()));
    }

    /// Waits for another limit of this end.
    pub fn pausing(&self, wait: impl FnOnce()) {
        let begin = Instant::now();
        wait();
        let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.paused.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The time of all waits.
    pub fn paused(&self) -> Duration {
        Duration::from_nanos(self.paused.load(Ordering::Relaxed))
    }

    /// The channel is closed: nothing waits any more.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whether the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requests_of_a_channel_share_its_limit_and_end_with_it() {
        let (paced, begin) = (Paced::default(), Instant::now());
        paced.limit(Some(Rate::from_bits_per_sec(8_000_000)));
        paced.wait(300_000);
        paced.wait(300_000);
        paced.wait(1);
        assert!(begin.elapsed() > Duration::from_millis(400));
        assert!(paced.paused() > Duration::from_millis(400));
        paced.close();
        paced.wait(1_000_000_000);
        paced.wait(1);
        assert!(paced.is_closed());
    }
}
