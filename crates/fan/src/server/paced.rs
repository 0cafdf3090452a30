//! The rate of a server that cannot be told one: what reads from it waits.

use hikyaku_transfer::Limit;
use hikyaku_units::Rate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The limit of one server. Clones share it.
#[derive(Clone)]
pub(super) struct Paced {
    pace: Arc<Mutex<Arc<Limit>>>,
    is_closed: Arc<AtomicBool>,
}

impl Default for Paced {
    /// Without a limit.
    fn default() -> Self {
        let pace = Arc::new(Mutex::new(Arc::new(Limit::new(None))));
        Self { pace, is_closed: Arc::default() }
    }
}

impl Paced {
    /// Limits the requests that begin from here on.
    pub(super) fn cap(&self, rate: Option<Rate>) {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(Limit::new(rate));
    }

    /// What a request that begins has to keep to.
    pub(super) fn pace(&self) -> Arc<Limit> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until so many bytes may come, or nothing more is wanted of the server.
    pub(super) fn wait(&self, pace: &Limit, bytes: u64) {
        pace.wait(bytes, || self.is_closed());
    }

    /// Nothing more is wanted of the server.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn all_requests_of_a_server_share_its_limit_and_end_with_it() {
        let (paced, begin) = (Paced::default(), Instant::now());
        paced.cap(Some(Rate::from_bits_per_sec(8_000_000)));
        let other = paced.clone();
        paced.wait(&paced.pace(), 300_000);
        other.wait(&other.pace(), 300_000);
        paced.wait(&paced.pace(), 1);
        assert!(begin.elapsed() > Duration::from_millis(400));
        other.close();
        paced.wait(&paced.pace(), 1_000_000_000);
        paced.wait(&paced.pace(), 1);
        assert!(paced.is_closed());
    }
}
