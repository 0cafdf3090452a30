//! How many files a receiver has open at once: each file has a place from its begin until it has its name, and
//! waits for one before it begins.

use crate::session::MOST_OBJECTS;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Places.
pub(crate) struct Slots {
    limit: usize,
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A place. Dropping it releases it.
pub(crate) struct Slot(Arc<Slots>);

/// Descriptors that are no files': sockets, the channel of ssh, the journal, directories of a walk beside it.
const OTHERS: usize = 64;
/// Descriptors of one place: the file, its directory, and the directory of one that was written before.
const EACH: usize = 3;
/// More of them wait for the disk together without being any faster.
const MOST: usize = 12_288;
/// Minimum number of places: more than the files that can wait for data of their objects. Then one of the open files becomes
/// complete without a further message of the sender, which is blocked meanwhile.
const LEAST: usize = MOST_OBJECTS as usize + 4;

/// The places that this process may have.
pub(crate) fn places() -> usize {
    (open_files().saturating_sub(OTHERS) / EACH).clamp(LEAST, MOST)
}

/// The number of files that this process may have open. The first call raises the soft limit to the hard one.
fn open_files() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let now = getrlimit(Resource::Nofile);
        let most = Rlimit { current: now.maximum, maximum: now.maximum };
        let limit =
            if setrlimit(Resource::Nofile, most).is_ok() { now.maximum } else { now.current };
        limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX)).max(64)
    })
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: Mutex::new(0), freed: Condvar::new() })
    }

    pub(crate) const fn limit(&self) -> usize {
        self.limit
    }

    /// A place, if there is one within this time.
    pub(crate) fn take(self: &Arc<Self>, patience: Duration) -> Option<Slot> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut usize| *taken >= self.limit;
        let waited = self.freed.wait_timeout_while(taken, patience, is_full);
        let (mut taken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && *taken >= self.limit {
            return None;
        }
        *taken += 1;
        Some(Slot(self.clone()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(1);
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_file_is_over() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take(Duration::ZERO), slots.take(Duration::ZERO));
        assert!(first.is_some() && second.is_some());
        assert!(slots.take(Duration::from_millis(1)).is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slots.take(Duration::from_secs(60)).is_some());
            drop(first);
            assert!(waiting.join().unwrap());
        });
    }
}
