//! Leases of directories: who may rely on what it was told of one, and how a change waits until nobody does.
//!
//! A change of a directory, or of a file in it, recalls the leases of all other holders and waits until they are given
//! back; reading recalls leases for writing. A holder that has not been heard of for [`TERM`] has lost its leases: it
//! relies on them for a shorter time only. A holder that is heard of has [`PATIENCE`] for what it has not told yet.
//!
//! The table knows directories by their identity, so that stores of different roots may share it. It does not see changes
//! that other programs make to the files.

use crate::message::{Extent, Holder};
use hikyaku_store::Identity;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// The leases of all clients of a daemon. All changes of its files must go through stores that share it.
pub struct Leases {
    state: Mutex<State>,
    changed: Condvar,
    /// [`TERM`], but in tests.
    term: Duration,
    /// [`QUIET`], but in tests.
    quiet: Duration,
}

impl Default for Leases {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: Condvar::default(), term: TERM, quiet: QUIET }
    }
}

#[derive(Default)]
struct State {
    dirs: HashMap<Identity, Dir>,
    leases: HashMap<u64, Held>,
    holders: HashMap<Holder, Client>,
    last: u64,
}

#[derive(Default)]
struct Dir {
    /// The numbers of its leases.
    leases: Vec<u64>,
    /// Changes that are being made.
    changes: usize,
    /// Until then nothing is granted, because a lease has been recalled: those who change and read a directory in turn are
    /// quicker without.
    quiet: Option<Instant>,
}

struct Held {
    dir: Identity,
    holder: Holder,
    extent: Extent,
    recalled: Option<Instant>,
}

struct Client {
    heard: Instant,
    /// The session over which it was heard last.
    session: u64,
    leases: usize,
    /// Leases that it is to be told it should give back.
    recalls: Vec<u64>,
}

/// What somebody is about to do in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Intent {
    Read,
    Change,
}

/// A change that is being made. No lease of the directory is granted to others until it is dropped.
pub(crate) struct Changing {
    leases: Arc<Leases>,
    dir: Identity,
}

/// A holder that has not been heard of for this time has lost its leases. Clients rely on theirs for
/// [`TRUST`](crate::Leases::TRUST) after they *sent* what was answered last, so clocks may differ in speed by a fifth.
const TERM: Duration = Duration::from_secs(12);
/// How long a holder that is heard of may take to tell what it has changed, after which the lease is taken from it.
const PATIENCE: Duration = Duration::from_secs(60);
/// After a recall nothing is granted for this time.
const QUIET: Duration = Duration::from_secs(1);
/// Leases of one holder.
pub(crate) const LEASES_MAX: usize = 16_384;
/// How often it is looked whether a holder has been lost.
const LOOK: Duration = Duration::from_millis(500);

impl Leases {
    /// How long a client relies on its leases after it sent the last [`Renew`](crate::Lease::Renew) that was answered.
    // spec: store-lease-3
    pub const TRUST: Duration = Duration::from_secs(10);

    /// Leases that are granted at once after a recall.
    #[cfg(test)]
    pub(crate) fn without_quiet() -> Self {
        Self { quiet: Duration::ZERO, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client is there, over this session.
    pub(crate) fn hear(&self, holder: Holder, session: u64) {
        let now = Instant::now();
        let mut state = self.state();
        state.purge(self.term, now);
        let client = state.holders.entry(holder).or_insert_with(|| Client {
            heard: now,
            session,
            leases: 0,
            recalls: Vec::new(),
        });
        client.heard = now;
        client.session = session;
    }

    /// A lease is given back.
    pub(crate) fn give_back(&self, holder: Holder, lease: u64) {
        let mut state = self.state();
        if state.leases.get(&lease).is_some_and(|held| held.holder == holder) {
            state.remove(lease);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A session has ended. A client that said so relies on nothing any more; one that was lost may still do.
    pub(crate) fn end(&self, holder: Holder, session: u64, end: End) {
        let mut state = self.state();
        if state.holders.get(&holder).is_some_and(|client| client.session == session)
            && end == End::Told
        {
            state.remove_all(holder);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for leases that this holder is to give back. Empty after a while without one.
    pub(crate) fn recalls(&self, holder: Holder) -> Vec<u64> {
        let mut state = self.state();
        if state.holders.get(&holder).is_some_and(|client| client.recalls.is_empty()) {
            state =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        state
            .holders
            .get_mut(&holder)
            .map(|client| std::mem::take(&mut client.recalls))
            .unwrap_or_default()
    }

    /// Grants a lease, if nothing excludes it. Nobody is recalled for it.
    // spec: store-lease-1
    pub(crate) fn grant(&self, holder: Holder, dir: Identity, extent: Extent) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.state();
        state.expire(dir, holder, (self.term, now));
        let (own, others) = state.of(dir, holder);
        let is_excluded = others.iter().any(|(_, held)| held.extent.max(extent) == Extent::Write);
        let own = own.first().map(|(number, held)| (*number, held.extent, held.recalled));
        let at = state.dirs.get(&dir);
        let is_busy =
            at.is_some_and(|at| at.changes > 0 || at.quiet.is_some_and(|until| until > now));
        if let Some((number, has, recalled)) = own {
            if recalled.is_some() || (has < extent && (is_excluded || is_busy)) {
                return None;
            }
            state.leases.get_mut(&number)?.extent = has.max(extent);
            return Some(number);
        }
        if is_excluded || is_busy || state.holders.get(&holder)?.leases >= LEASES_MAX {
            return None;
        }
        Some(state.add(holder, dir, extent))
    }

    /// Whether this holder has a lease for writing of the directory.
    // spec: store-lease-4
    pub(crate) fn may_decide(&self, holder: Holder, dir: Identity) -> bool {
        let state = self.state();
        let (own, _) = state.of(dir, holder);
        own.iter().any(|(_, held)| held.extent == Extent::Write)
    }

    /// Whether a read by `who` would have to wait.
    pub(crate) fn excludes(&self, who: Option<Holder>, dir: Identity) -> bool {
        !self.state().conflicts(who, dir, Intent::Read).is_empty()
    }

    /// Waits until nobody else relies on what `who` is about to do not being done.
    // spec: store-lease-2
    pub(crate) fn before(
        self: &Arc<Self>,
        who: Option<Holder>,
        dir: Identity,
        intent: Intent,
    ) -> Option<Changing> {
        let begin = Instant::now();
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let conflicts = state.conflicts(who, dir, intent);
            let mut is_told = false;
            for &number in &conflicts {
                is_told |= state.recall(number, (begin, now), (self.term, self.quiet));
            }
            if state.conflicts(who, dir, intent).is_empty() {
                break;
            }
            if is_told {
                self.changed.notify_all();
            }
            state =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        if intent == Intent::Read {
            return None;
        }
        state.dirs.entry(dir).or_default().changes += 1;
        Some(Changing { leases: self.clone(), dir })
    }

    /// All leases of others are recalled: the paths of directories change.
    pub(crate) fn before_paths_change(self: &Arc<Self>, who: Option<Holder>) {
        let state = self.state();
        let others = state.leases.values().filter(|held| Some(held.holder) != who);
        let dirs: Vec<Identity> = others.map(|held| held.dir).collect();
        drop(state);
        for dir in dirs {
            drop(self.before(who, dir, Intent::Change));
        }
    }

    /// The directory is gone, and its number may be used again.
    pub(crate) fn forget(&self, dir: Identity) {
        let mut state = self.state();
        let numbers = state.dirs.get(&dir).map(|at| at.leases.clone()).unwrap_or_default();
        numbers.into_iter().for_each(|number| state.remove(number));
    }
}

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The client has closed it.
    Told,
    /// The client was lost.
    Lost,
}

impl State {
    /// The leases of a directory: those of the holder, and those of others.
    #[allow(clippy::type_complexity)]
    fn of(&self, dir: Identity, holder: Holder) -> (Vec<(u64, &Held)>, Vec<(u64, &Held)>) {
        let numbers = self.dirs.get(&dir).map(|at| at.leases.as_slice()).unwrap_or_default();
        let leases = numbers.iter().filter_map(|&number| Some((number, self.leases.get(&number)?)));
        leases.partition(|(_, held)| held.holder == holder)
    }

    /// The leases of others that an intent contradicts.
    fn conflicts(&self, who: Option<Holder>, dir: Identity, intent: Intent) -> Vec<u64> {
        let numbers = self.dirs.get(&dir).map(|at| at.leases.as_slice()).unwrap_or_default();
        let is_against = |held: &Held| {
            Some(held.holder) != who && (intent == Intent::Change || held.extent == Extent::Write)
        };
        let is_conflict = |number: &u64| self.leases.get(number).is_some_and(is_against);
        numbers.iter().copied().filter(is_conflict).collect()
    }

    fn add(&mut self, holder: Holder, dir: Identity, extent: Extent) -> u64 {
        self.last += 1;
        let number = self.last;
        self.leases.insert(number, Held { dir, holder, extent, recalled: None });
        self.dirs.entry(dir).or_default().leases.push(number);
        if let Some(client) = self.holders.get_mut(&holder) {
            client.leases += 1;
        }
        number
    }

    fn remove(&mut self, number: u64) {
        let Some(held) = self.leases.remove(&number) else { return };
        if let Some(at) = self.dirs.get_mut(&held.dir) {
            at.leases.retain(|&lease| lease != number);
        }
        if let Some(client) = self.holders.get_mut(&held.holder) {
            client.leases -= 1;
        }
        self.tidy(held.dir);
    }

    fn remove_all(&mut self, holder: Holder) {
        let numbers = self.leases.iter().filter(|(_, held)| held.holder == holder);
        let numbers: Vec<u64> = numbers.map(|(&number, _)| number).collect();
        numbers.into_iter().for_each(|number| self.remove(number));
        self.holders.remove(&holder);
    }

    /// Drops what is known of a directory, if that is nothing.
    fn tidy(&mut self, dir: Identity) {
        let now = Instant::now();
        let is_empty = |at: &Dir| {
            at.leases.is_empty() && at.changes == 0 && at.quiet.is_none_or(|until| until <= now)
        };
        if self.dirs.get(&dir).is_some_and(is_empty) {
            self.dirs.remove(&dir);
        }
    }

    /// Tells the holder of a lease to give it back, or takes it from one that is lost or too slow. Returns whether the holder
    /// is to be told.
    fn recall(
        &mut self,
        number: u64,
        (begin, now): (Instant, Instant),
        (term, quiet): (Duration, Duration),
    ) -> bool {
        let Some(held) = self.leases.get_mut(&number) else { return false };
        let client = self.holders.get_mut(&held.holder);
        let is_lost = client
            .as_ref()
            .is_none_or(|client| now.saturating_duration_since(client.heard) >= term);
        if is_lost || now.saturating_duration_since(begin) >= PATIENCE {
            self.remove(number);
            return false;
        }
        if held.recalled.is_some() {
            return false;
        }
        held.recalled = Some(now);
        let dir = held.dir;
        if let Some(client) = client {
            client.recalls.push(number);
        }
        self.dirs.entry(dir).or_default().quiet = Some(now + quiet);
        true
    }

    /// Removes the leases of a directory whose holders are lost, other than this one.
    fn expire(&mut self, dir: Identity, except: Holder, (term, now): (Duration, Instant)) {
        let (_, others) = self.of(dir, except);
        let is_lost = |held: &Held| {
            let client = self.holders.get(&held.holder);
            client.is_none_or(|client| now.saturating_duration_since(client.heard) >= term)
        };
        let lost: Vec<u64> =
            others.iter().filter(|(_, held)| is_lost(held)).map(|(number, _)| *number).collect();
        lost.into_iter().for_each(|number| self.remove(number));
    }

    /// Forgets holders that were lost, and directories of which nothing is known.
    fn purge(&mut self, term: Duration, now: Instant) {
        let is_lost = |client: &Client| now.saturating_duration_since(client.heard) >= term;
        let lost = self.holders.iter().filter(|(_, client)| is_lost(client));
        let lost: Vec<Holder> = lost.map(|(&holder, _)| holder).collect();
        lost.into_iter().for_each(|holder| self.remove_all(holder));
        self.dirs.retain(|_, at| {
            !at.leases.is_empty() || at.changes > 0 || at.quiet.is_some_and(|until| until > now)
        });
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let mut state = self.leases.state();
        if let Some(at) = state.dirs.get_mut(&self.dir) {
            at.changes -= 1;
        }
        state.tidy(self.dir);
    }
}
