//! The locks of one file.

use super::{Outcome, Owner, Range, Told, WAITING};
use crate::message::RequestId;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Shared,
    Exclusive,
}

#[derive(Default)]
pub(super) struct File {
    pub(super) locks: Vec<Lock>,
    pub(super) waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lock {
    pub(super) owner: Owner,
    pub(super) mode: Mode,
    pub(super) range: Range,
}

pub(super) struct Waiting {
    pub(super) lock: Lock,
    pub(super) request: RequestId,
    pub(super) told: Told,
}

impl File {
    /// The sessions of the locks, each time with what the lock counts.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u64, usize)> {
        let waiting = self.waiting.iter().map(|waiting| (waiting.lock.owner.session, WAITING));
        self.locks.iter().map(|lock| (lock.owner.session, 1)).chain(waiting)
    }

    /// How many locks a session has or waits for.
    pub(super) fn count(&self, session: u64) -> usize {
        self.counts().filter(|(of, _)| *of == session).map(|(_, count)| count).sum()
    }

    /// How many locks an owner has more when a range is taken out of them, if it has any more.
    pub(super) fn cuts(&self, owner: Owner, (first, last): Range) -> usize {
        let is_cut =
            |lock: &&Lock| lock.owner == owner && lock.range.0 < first && last < lock.range.1;
        self.locks.iter().filter(is_cut).count()
    }

    pub(super) fn excludes(&self, wanted: &Lock) -> bool {
        self.locks.iter().any(|lock| lock.excludes(wanted))
    }

    pub(super) fn take(&mut self, lock: Lock) {
        self.cut(lock.owner, lock.range);
        self.locks.push(lock);
        self.join(lock);
    }

    /// Joins a lock with those of its owner that it touches.
    pub(super) fn join(&mut self, lock: Lock) {
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
    pub(super) fn cut(&mut self, owner: Owner, range: Range) {
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
    pub(super) fn next(&mut self) -> Vec<(Told, Outcome)> {
        let mut had = Vec::new();
        let mut index = 0;
        while index < self.waiting.len() {
            if self.excludes(&self.waiting[index].lock) {
                index += 1;
                continue;
            }
            let Waiting { lock, told, .. } = self.waiting.remove(index);
            self.take(lock);
            had.push((told, Outcome::Had));
        }
        had
    }
}

impl Lock {
    pub(super) fn excludes(&self, wanted: &Self) -> bool {
        self.owner != wanted.owner
            && overlap(self.range, wanted.range)
            && (self.mode == Mode::Exclusive || wanted.mode == Mode::Exclusive)
    }
}

pub(super) const fn overlap(a: Range, b: Range) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}
