//! Bytes of uploads that were given to the kernel, or are confirmed, for a display. A draft takes more than these.

use crate::ftp::Ftp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counters of the uploads of a store.
#[derive(Default)]
pub(crate) struct Sent(Mutex<Counters>);

#[derive(Default)]
struct Counters {
    /// Bytes of uploads that have ended.
    ended: u64,
    under_way: Vec<Arc<AtomicU64>>,
}

/// The counter of an upload, until it is dropped.
pub(crate) struct Counter<'s> {
    sent: &'s Sent,
    pub(crate) bytes: Arc<AtomicU64>,
}

impl Sent {
    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counter of another upload.
    pub(crate) fn counter(&self) -> Counter<'_> {
        let bytes = Arc::<AtomicU64>::default();
        self.lock().under_way.push(Arc::clone(&bytes));
        Counter { sent: self, bytes }
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        let mut counters = self.sent.lock();
        counters.ended += self.bytes.load(Ordering::Relaxed);
        counters.under_way.retain(|other| !Arc::ptr_eq(other, &self.bytes));
    }
}

impl Ftp {
    /// Bytes of all uploads that were given to the kernel.
    pub fn sent_bytes(&self) -> u64 {
        let counters = self.sent().lock();
        let under_way = counters.under_way.iter().map(|bytes| bytes.load(Ordering::Relaxed));
        counters.ended + under_way.sum::<u64>()
    }
}
