//! Locks of byte ranges of files, as fcntl(2) has them: each owner has at most one lock of a byte, and a new one replaces it.
//!
//! The locks are of this daemon only: they keep its clients from each other, and no other program.

use crate::message::{Patience, RequestId, Wish};
use file::{File, Lock, Mode, Waiting, overlap};
use hikyaku_store::Identity;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

mod file;
#[cfg(test)]
mod tests;

/// The locks of all clients of a daemon.
#[derive(Default)]
pub struct Locks {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    files: HashMap<Identity, File>,
    /// How many locks each session has, over all files.
    sessions: HashMap<u64, usize>,
}

/// A program of a client: the session, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Owner {
    pub(crate) session: u64,
    pub(crate) number: u64,
}

/// The first and the last byte.
pub(crate) type Range = (u64, u64);

/// Hears whether a lock was had that had to be waited for.
pub(crate) type Told = Box<dyn FnOnce(Outcome) + Send>;

/// The number of a request of the session, by which a lock that is waited for is given up, and who hears of it.
pub(crate) type Waiter = (RequestId, Told);

/// What has become of a wish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Had,
    /// Somebody else has a lock.
    Busy,
    /// The session has as many locks as it may have.
    Full,
}

/// Locks of a file that one session may have. One that is waited for counts as [`WAITING`].
const LOCKS_MAX: usize = 1024;
/// The same of all files together.
const SESSION_LOCKS_MAX: usize = 16_384;
/// A lock that is had later may cut one of the same owner in two.
const WAITING: usize = 2;
/// Files with locks.
const FILES_MAX: usize = 65_536;

impl Locks {
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let table = self.table();
        table.files.is_empty() && table.sessions.is_empty()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks a range, or frees it. `None` if the lock is waited for: `told` is called when that is decided.
    pub(crate) fn set(
        &self,
        file: Identity,
        owner: Owner,
        (range, wish): (Range, Wish),
        (request, told): Waiter,
    ) -> Option<Outcome> {
        let (mode, patience) = match wish {
            Wish::Shared(patience) => (Mode::Shared, patience),
            Wish::Exclusive(patience) => (Mode::Exclusive, patience),
            Wish::Free => return Some(self.free(file, owner, range)),
            Wish::GiveUp(request) => {
                self.give_up(file, owner, request);
                return Some(Outcome::Had);
            }
        };
        let lock = Lock { owner, mode, range };
        let mut table = self.table();
        let at = table.files.get(&file);
        let is_excluded = at.is_some_and(|at| at.excludes(&lock));
        let adds = match (is_excluded, patience) {
            (true, Patience::None) => return Some(Outcome::Busy),
            (true, Patience::Wait) => WAITING,
            (false, _) => 1 + at.map_or(0, |at| at.cuts(owner, range)),
        };
        if !table.has_room(file, owner.session, adds) {
            return Some(Outcome::Full);
        }
        if is_excluded {
            table.with(file, |at| at.waiting.push(Waiting { lock, request, told }));
            return None;
        }
        let had = table.with(file, |at| {
            at.take(lock);
            // A lock that has become a shared one may let others in.
            at.next()
        });
        drop(table);
        tell(had);
        Some(Outcome::Had)
    }

    fn free(&self, file: Identity, owner: Owner, range: Range) -> Outcome {
        let mut table = self.table();
        let cuts = table.files.get(&file).map_or(0, |at| at.cuts(owner, range));
        if !table.has_room(file, owner.session, cuts) {
            return Outcome::Full;
        }
        let had = table.with(file, |at| {
            let is_given_up = |waiting: &mut Waiting| {
                waiting.lock.owner == owner && overlap(waiting.lock.range, range)
            };
            let given_up = at.waiting.extract_if(.., is_given_up);
            let mut had: Vec<_> = given_up.map(|w| (w.told, Outcome::Busy)).collect();
            at.cut(owner, range);
            had.extend(at.next());
            had
        });
        drop(table);
        tell(had);
        Outcome::Had
    }

    /// An owner does not wait any more. What it has it keeps.
    fn give_up(&self, file: Identity, owner: Owner, request: RequestId) {
        let is_given_up =
            |waiting: &mut Waiting| waiting.lock.owner == owner && waiting.request == request;
        let given_up: Vec<_> = self.table().with(file, |at| {
            let given_up = at.waiting.extract_if(.., is_given_up);
            given_up.map(|waiting| (waiting.told, Outcome::Busy)).collect()
        });
        tell(given_up);
    }

    /// The lock that keeps an owner from a range: whether it is exclusive, and its range.
    pub(crate) fn against(
        &self,
        file: Identity,
        owner: Owner,
        range: Range,
    ) -> Option<(bool, Range)> {
        let table = self.table();
        let wanted = Lock { owner, mode: Mode::Exclusive, range };
        let lock = table.files.get(&file)?.locks.iter().find(|lock| lock.excludes(&wanted))?;
        Some((lock.mode == Mode::Exclusive, lock.range))
    }

    /// A session has ended, and its locks with it.
    pub(crate) fn end(&self, session: u64) {
        let mut table = self.table();
        if !table.sessions.contains_key(&session) {
            return;
        }
        let is_of = |at: &File| at.count(session) > 0;
        let files = table.files.iter().filter(|(_, at)| is_of(at));
        let files: Vec<Identity> = files.map(|(&file, _)| file).collect();
        let mut had = Vec::new();
        for file in files {
            had.extend(table.with(file, |at| {
                at.locks.retain(|lock| lock.owner.session != session);
                at.waiting.retain(|waiting| waiting.lock.owner.session != session);
                at.next()
            }));
        }
        drop(table);
        tell(had);
    }
}

impl Table {
    /// Whether a session may have so many more locks of a file. Who adds none always may.
    fn has_room(&self, file: Identity, session: u64, adds: usize) -> bool {
        let at = self.files.get(&file);
        let of_file = at.map_or(0, |at| at.count(session));
        let of_all = self.sessions.get(&session).copied().unwrap_or_default();
        let has_file = at.is_some() || self.files.len() < FILES_MAX;
        adds == 0 || has_file && of_file + adds <= LOCKS_MAX && of_all + adds <= SESSION_LOCKS_MAX
    }

    /// Changes the locks of a file, and counts them anew.
    fn with<R>(&mut self, file: Identity, change: impl FnOnce(&mut File) -> R) -> R {
        let at = self.files.entry(file).or_default();
        for (session, count) in at.counts() {
            if let Some(of_all) = self.sessions.get_mut(&session) {
                *of_all = of_all.saturating_sub(count);
            }
        }
        let result = change(at);
        for (session, count) in at.counts() {
            *self.sessions.entry(session).or_default() += count;
        }
        if at.locks.is_empty() && at.waiting.is_empty() {
            self.files.remove(&file);
        }
        self.sessions.retain(|_, count| *count > 0);
        result
    }
}

fn tell(had: Vec<(Told, Outcome)>) {
    had.into_iter().for_each(|(told, outcome)| told(outcome));
}
