//! How many connections a driver has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of connections of a driver, of which some have not reached it.
#[derive(Default)]
pub(crate) struct Load {
    /// The number that the driver has published.
    there: AtomicUsize,
    /// Those that are about to be made.
    coming: AtomicUsize,
}

/// A connection that is about to be made. It counts until it is dropped; then the driver counts it.
pub(crate) struct Coming(Arc<Load>);

impl Load {
    pub(crate) fn count(&self) -> usize {
        self.there.load(Ordering::Relaxed) + self.coming.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, there: usize) {
        self.there.store(there, Ordering::Relaxed);
    }
}

impl Coming {
    pub(crate) fn to(load: &Arc<Load>) -> Self {
        load.coming.fetch_add(1, Ordering::Relaxed);
        Self(load.clone())
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.coming.fetch_sub(1, Ordering::Relaxed);
    }
}
