//! Locks of byte ranges of files, as fcntl(2) has them: each owner has at most one lock of a byte, and a new one replaces it.
//!
//! The locks are of this daemon only: they keep its clients from each other, and no other program.

use crate::message::{Patience, Wish};
use hikyaku_store::Identity;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(test)]
mod tests;

/// The locks of all clients of a daemon.
#[derive(Default)]
pub struct Locks {
    files: Mutex<HashMap<Identity, File>>,
}

/// A program of a client: the session, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Owner {
    pub(crate) session: u64,
    pub(crate) number: u64,
}

/// The first and the last byte.
pub(crate) type Range = (u64, u64);

/// Hears whether a lock was had.
pub(crate) type Told = Box<dyn FnOnce(Outcome) + Send>;

/// What has become of a wish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Had,
    /// Somebody else has a lock.
    Busy,
    /// The owner has as many locks as it may have.
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Shared,
    Exclusive,
}

#[derive(Default)]
struct File {
    locks: Vec<Lock>,
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lock {
    owner: Owner,
    mode: Mode,
    range: Range,
}

struct Waiting {
    lock: Lock,
    told: Told,
}

/// Locks of a file that one session may have or wait for.
const LOCKS_MAX: usize = 1024;
/// Files with locks.
const FILES_MAX: usize = 65_536;

impl Locks {
    fn files(&self) -> MutexGuard<'_, HashMap<Identity, File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks a range, or frees it. `told` is called when that is decided.
    pub(crate) fn set(
        &self,
        file: Identity,
        owner: Owner,
        (range, wish): (Range, Wish),
        told: Told,
    ) {
        let (mode, patience) = match wish {
            Wish::Shared(patience) => (Mode::Shared, patience),
            Wish::Exclusive(patience) => (Mode::Exclusive, patience),
            Wish::Free => return self.free(file, owner, range, told),
        };
        let lock = Lock { owner, mode, range };
        let mut files = self.files();
        let is_full = files.len() >= FILES_MAX && !files.contains_key(&file);
        let at = files.entry(file).or_default();
        if is_full || at.of(owner.session) >= LOCKS_MAX {
            if at.locks.is_empty() && at.waiting.is_empty() {
                files.remove(&file);
            }
            drop(files);
            return told(Outcome::Full);
        }
        if at.excludes(&lock) {
            match patience {
                Patience::Wait => at.waiting.push(Waiting { lock, told }),
                Patience::None => {
                    drop(files);
                    told(Outcome::Busy);
                }
            }
            return;
        }
        at.take(lock);
        // A lock that has become a shared one may let others in.
        let had = at.next();
        drop(files);
        told(Outcome::Had);
        tell(had);
    }

    fn free(&self, file: Identity, owner: Owner, range: Range, told: Told) {
        let mut files = self.files();
        let mut had = Vec::new();
        if let Some(at) = files.get_mut(&file) {
            let is_given_up = |waiting: &Waiting| {
                waiting.lock.owner == owner && overlap(waiting.lock.range, range)
            };
            had.extend(
                at.waiting
                    .extract_if(.., |waiting| is_given_up(waiting))
                    .map(|w| (w.told, Outcome::Busy)),
            );
            at.cut(owner, range);
            had.extend(at.next());
            if at.locks.is_empty() && at.waiting.is_empty() {
                files.remove(&file);
            }
        }
        drop(files);
        told(Outcome::Had);
        tell(had);
    }

    /// The lock that keeps an owner from a range: whether it is exclusive, and its range.
    pub(crate) fn against(
        &self,
        file: Identity,
        owner: Owner,
        range: Range,
    ) -> Option<(bool, Range)> {
        let files = self.files();
        let wanted = Lock { owner, mode: Mode::Exclusive, range };
        let lock = files.get(&file)?.locks.iter().find(|lock| lock.excludes(&wanted))?;
        Some((lock.mode == Mode::Exclusive, lock.range))
    }

    /// A session has ended, and its locks with it.
    pub(crate) fn end(&self, session: u64) {
        let mut had = Vec::new();
        self.files().retain(|_, at| {
            at.locks.retain(|lock| lock.owner.session != session);
            at.waiting.retain(|waiting| waiting.lock.owner.session != session);
            had.extend(at.next());
            !at.locks.is_empty() || !at.waiting.is_empty()
        });
        tell(had);
    }
}

impl File {
    fn of(&self, session: u64) -> usize {
        let waiting = self.waiting.iter().map(|waiting| &waiting.lock);
        self.locks.iter().chain(waiting).filter(|lock| lock.owner.session == session).count()
    }

    fn excludes(&self, wanted: &Lock) -> bool {
        self.locks.iter().any(|lock| lock.excludes(wanted))
    }

    fn take(&mut self, lock: Lock) {
        self.cut(lock.owner, lock.range);
        self.locks.push(lock);
        self.join(lock);
    }

    /// Joins a lock with those of its owner that it touches.
    fn join(&mut self, lock: Lock) {
        let touches = |other: &Lock| {
            other.owner == lock.owner
                && other.mode == lock.mode
                && other.range.0 <= lock.range.1.saturating_add(1)
                && lock.range.0 <= other.range.1.saturating_add(1)
        };
        let joined =
            self.locks.iter().filter(|other| touches(other)).fold(lock.range, |all, other| {
                (all.0.min(other.range.0), all.1.max(other.range.1))
            });
        self.locks.retain(|other| !touches(other));
        self.locks.push(Lock { range: joined, ..lock });
    }

    /// Takes a range out of the locks of an owner.
    fn cut(&mut self, owner: Owner, range: Range) {
        let is_cut = |lock: &Lock| lock.owner == owner && overlap(lock.range, range);
        let cut: Vec<Lock> = self.locks.iter().copied().filter(is_cut).collect();
        self.locks.retain(|lock| !is_cut(lock));
        for lock in cut {
            if lock.range.0 < range.0 {
                self.locks.push(Lock { range: (lock.range.0, range.0 - 1), ..lock });
            }
            if lock.range.1 > range.1 {
                self.locks.push(Lock { range: (range.1 + 1, lock.range.1), ..lock });
            }
        }
    }

    /// Gives locks to those who wait, in their order.
    fn next(&mut self) -> Vec<(Told, Outcome)> {
        let mut had = Vec::new();
        let mut index = 0;
        while index < self.waiting.len() {
            if self.excludes(&self.waiting[index].lock) {
                index += 1;
                continue;
            }
            let Waiting { lock, told } = self.waiting.remove(index);
            self.take(lock);
            had.push((told, Outcome::Had));
        }
        had
    }
}

impl Lock {
    fn excludes(&self, wanted: &Self) -> bool {
        self.owner != wanted.owner
            && overlap(self.range, wanted.range)
            && (self.mode == Mode::Exclusive || wanted.mode == Mode::Exclusive)
    }
}

const fn overlap(a: Range, b: Range) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

fn tell(had: Vec<(Told, Outcome)>) {
    had.into_iter().for_each(|(told, outcome)| told(outcome));
}
