//! Many files that wait for the disk of the server together.
//!
//! A server does one request after the other, so that a sync of each file is a wait for the disk for each file. The caller may
//! know a faster way ([`SyncDirs`]), which syncs the file systems of many files at once. Files that come while a sync runs
//! wait for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Brings the file systems of these directories to the disk: paths as the server takes them.
pub type SyncDirs = Box<dyn Fn(&BTreeSet<Vec<u8>>) -> Reached + Send + Sync>;

/// Whether the files of a directory are known to be on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// They are.
    Disk,
    /// That is not known: each of them is to be synced.
    Unknown,
}

/// Files that wait for a sync.
pub(crate) struct Settling {
    sync: SyncDirs,
    state: Mutex<State>,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    /// The directories for the next sync, its number, and those who wait for it.
    dirs: BTreeSet<Vec<u8>>,
    next: u64,
    waiting: u64,
    is_running: bool,
    /// The results of syncs, each with the number of those who have not taken it.
    results: BTreeMap<u64, (Reached, u64)>,
}

impl Settling {
    pub(crate) fn new(sync: SyncDirs) -> Self {
        Self { sync, state: Mutex::default(), has_ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the files that were written in these directories are on the disk.
    pub(crate) fn settle(&self, dirs: impl IntoIterator<Item = Vec<u8>>) -> Reached {
        let mut state = self.state();
        state.dirs.extend(dirs);
        state.waiting += 1;
        let own = state.next;
        loop {
            if let Some((reached, left)) = state.results.get_mut(&own) {
                let reached = *reached;
                *left -= 1;
                if *left == 0 {
                    state.results.remove(&own);
                }
                return reached;
            }
            if state.is_running {
                state = self.has_ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // This thread is the first that can begin the next sync.
            let dirs = std::mem::take(&mut state.dirs);
            let waiting = std::mem::take(&mut state.waiting);
            (state.is_running, state.next) = (true, own + 1);
            drop(state);
            let reached = (self.sync)(&dirs);
            state = self.state();
            state.is_running = false;
            state.results.insert(own, (reached, waiting));
            self.has_ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    #[test]
    fn files_that_come_during_a_sync_share_the_next_one() {
        let (calls, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(BTreeSet::new())));
        let (counted, noted) = (calls.clone(), seen.clone());
        let settling = Settling::new(Box::new(move |dirs| {
            counted.fetch_add(1, Ordering::Relaxed);
            noted.lock().unwrap().extend(dirs.iter().cloned());
            Reached::Disk
        }));
        thread::scope(|scope| {
            for number in 0..20_u8 {
                let settling = &settling;
                scope.spawn(move || {
                    for round in 0..50_u8 {
                        let dirs = [vec![b'd', number, round]];
                        assert_eq!(settling.settle(dirs), Reached::Disk);
                    }
                });
            }
        });
        assert!((1..=1000).contains(&calls.load(Ordering::Relaxed)));
        assert_eq!(seen.lock().unwrap().len(), 1000);
        assert!(settling.state().results.is_empty());
    }
}
