//! Messages for the user, bounded in number and length whatever the other end sends.

use hikyaku_fs::cut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of shown messages; further ones are counted. With the lines at the end of a copy that is at most a
/// thousand lines.
// spec: copy-tell-1
const MOST_TOLD: u64 = 990;
/// Maximum of bytes of a list that wait to be read.
const MOST_WAITING: usize = 4 << 20;

/// The number of messages of all kinds.
#[derive(Default)]
pub(super) struct Quota(AtomicU64);

/// Whether a message is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Telling {
    Told,
    /// It is the first one that is only counted.
    FirstUntold,
    Untold,
}

impl Quota {
    /// Counts one more.
    pub(super) fn next(&self) -> Telling {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            number if number < MOST_TOLD => Telling::Told,
            MOST_TOLD => Telling::FirstUntold,
            _ => Telling::Untold,
        }
    }
}

/// Messages that wait to be shown.
pub(super) struct Messages<T>(Mutex<Vec<T>>);

impl<T> Default for Messages<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Messages<T> {
    /// A message that the quota lets pass, and whose texts are cut.
    pub(super) fn add(&self, message: T) {
        lock(&self.0).push(message);
    }

    /// Takes the messages that were not shown yet.
    pub(super) fn take(&self) -> Vec<T> {
        std::mem::take(&mut lock(&self.0))
    }
}

/// A list that the user asked for. It is shown completely, at the pace of its reader.
#[derive(Default)]
pub(super) struct Listing {
    waiting: Mutex<Waiting>,
    taken: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<String>,
    bytes: usize,
    /// The list has a reader.
    is_read: bool,
}

impl Listing {
    /// Adds a line. Waits while the list is full. Without a reader, as on the far side, further lines are dropped.
    pub(super) fn add(&self, line: String) {
        let line = cut(line);
        let is_full = |waiting: &mut Waiting| waiting.is_read && waiting.bytes > MOST_WAITING;
        let waited = self.taken.wait_while(lock(&self.waiting), is_full);
        let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
        if waiting.bytes <= MOST_WAITING {
            waiting.bytes += line.len() + size_of::<String>();
            waiting.lines.push(line);
        }
    }

    /// Takes the lines that were not read yet.
    pub(super) fn take(&self) -> Vec<String> {
        let mut waiting = lock(&self.waiting);
        let lines = std::mem::take(&mut *waiting);
        waiting.is_read = true;
        self.taken.notify_all();
        lines.lines
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted() {
        let quota = Quota::default();
        assert!((0..MOST_TOLD).all(|_| quota.next() == Telling::Told));
        assert_eq!(quota.next(), Telling::FirstUntold);
        assert_eq!([quota.next(), quota.next()], [Telling::Untold; 2]);
    }

    #[test]
    fn a_list_is_told_whole_where_it_is_read_and_takes_little_where_it_is_not() {
        let listing = Listing::default();
        for n in 0..300_000 {
            listing.add(n.to_string());
        }
        let first = listing.take();
        assert!(first.iter().map(|line| line.len() + 24).sum::<usize>() <= MOST_WAITING + 100);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (0..300_000).for_each(|n| listing.add(n.to_string())));
            let mut read = 0;
            while !writer.is_finished() {
                read += listing.take().len();
                std::thread::yield_now();
            }
            assert_eq!(read + listing.take().len(), 300_000);
        });
    }
}
