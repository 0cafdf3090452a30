//! The files that one session has open at gfmd at once.
//!
//! gfmd lets a process have `max_open_files` of them (gfarm2.conf(5), 1,024 by default), over all nodes. Requests for many
//! small files therefore share this many places; what else is open at the same time (a file for each connection to a node, and
//! those that are written) has the rest.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Small files that are open at once, over all requests and nodes.
const OPEN_FILES_MAX: usize = 256;
/// Files of one request that are opened together: enough that the two round trips to gfmd count little.
pub(crate) const TOGETHER_MAX: usize = 128;

/// The places of the files that are open.
#[derive(Debug)]
pub(crate) struct Opens {
    free: Mutex<usize>,
    changed: Condvar,
}

/// Places that a request has. They are free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    of: &'a Opens,
    pub(crate) count: usize,
}

impl Default for Opens {
    fn default() -> Self {
        Self { free: Mutex::new(OPEN_FILES_MAX), changed: Condvar::new() }
    }
}

impl Opens {
    /// As many places as are free, at least one and at most `wanted`. It waits while none is free.
    pub(crate) fn take(&self, wanted: usize) -> Places<'_> {
        let mut free = self.free();
        while *free == 0 {
            free = self.changed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        let count = wanted.clamp(1, *free);
        *free -= count;
        Places { of: self, count }
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        *self.of.free() += self.count;
        self.of.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requests_together_have_no_more_places_than_there_are() {
        let opens = Opens::default();
        let mut held = Vec::new();
        while held.iter().map(|places: &Places<'_>| places.count).sum::<usize>() < OPEN_FILES_MAX {
            held.push(opens.take(100));
        }
        assert_eq!(*opens.free(), 0);
        drop(held.pop());
        assert!(opens.take(OPEN_FILES_MAX).count < OPEN_FILES_MAX);
        drop(held);
        assert_eq!(opens.take(usize::MAX).count, OPEN_FILES_MAX);
    }
}
