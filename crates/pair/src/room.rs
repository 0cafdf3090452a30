//! A budget of bytes for queued data: a thread that queues more blocks until enough of them are released.

use crate::sync::{Condvar, Mutex};
use std::sync::PoisonError;

/// The size of the budget, and the bytes of it that are taken.
pub(crate) struct Room {
    size: usize,
    taken: Mutex<usize>,
    given: Condvar,
}

impl Room {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, taken: Mutex::new(0), given: Condvar::new() }
    }

    /// Waits until this number of bytes is free, and takes them. An item that is larger than the room takes all of it.
    pub(crate) fn take(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0 && *taken + bytes > self.size {
            taken = self.given.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
    }

    /// Gives them back.
    pub(crate) fn give(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(bytes);
        self.given.notify_all();
    }
}
