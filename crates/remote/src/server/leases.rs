//! Leases of directories: who may rely on what it was told of one, and how a change waits until nobody does.
//!
//! A change of a directory, or of a file in it, recalls the leases of all other holders and waits until they are given
//! back; reading recalls leases for writing. A holder that has not been heard of for [`TERM`] has lost its leases: it
//! relies on them for a shorter time only. A holder that is heard of has [`PATIENCE`] for what it has not told yet, and
//! [`TERM`] where it has only read. Whoever lets that time run out gets no leases for [`PENALTY`].
//!
//! The table knows directories by their identity, so that stores of different roots may share it. It does not see changes
//! that other programs make to the files.

use crate::message::{Extent, Holder};
use hikyaku_store::Identity;
use state::{Client, Dir, State, Times};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod state;
#[cfg(test)]
mod tests;

/// The key with which a client was let in. Clients may share it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Party(pub [u8; 32]);

/// The leases of all clients of a daemon. All changes of its files must go through stores that share it.
pub struct Leases {
    state: Mutex<State>,
    changed: Condvar,
    /// [`TERM`], but in tests.
    term: Duration,
    /// [`QUIET`], but in tests.
    quiet: Duration,
    /// [`PATIENCE`], but in tests.
    patience: Duration,
}

impl Default for Leases {
    fn default() -> Self {
        let (state, changed) = (Mutex::default(), Condvar::default());
        Self { state, changed, term: TERM, quiet: QUIET, patience: PATIENCE }
    }
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

/// A change of the paths of directories. No lease is granted until it is dropped.
pub(crate) struct Moving {
    leases: Arc<Leases>,
}

/// A holder that has not been heard of for this time has lost its leases. Clients rely on theirs for
/// [`TRUST`](crate::Leases::TRUST) after they *sent* what was answered last, so clocks may differ in speed by a fifth.
const TERM: Duration = Duration::from_secs(12);
/// How long a holder that is heard of may take to tell what it has changed, after which the lease is taken from it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Clients with a key of which one has held others up until a lease was taken from it get no leases for this time. It only
/// makes them slower, and holds the wait for one key below 1 in 10 of the time.
const PENALTY: Duration = Duration::from_secs(600);
/// A lease for reading that is given back later than this after its recall was kept on purpose.
const LATE: Duration = Duration::from_secs(5);
/// Keys that get no leases at one time. Above that, the one whose time ends first gets leases again.
pub(super) const PARTIES_MAX: usize = 1024;
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

    /// A client is there, over this session. Says whether it was known over this session: otherwise it has lost the leases
    /// that it had.
    pub(crate) fn hear(&self, holder: Holder, (session, party): (u64, Party)) -> Known {
        let now = Instant::now();
        let mut state = self.state();
        state.purge(self.term, now);
        let before = state.holders.get(&holder).map(|client| client.session);
        if before.is_some_and(|before| before > session) {
            // What it said over an older session has come late.
            return Known::No;
        }
        let client = state.holders.entry(holder).or_insert_with(|| Client {
            heard: now,
            session,
            party,
            leases: 0,
            recalls: Vec::new(),
        });
        client.heard = now;
        client.session = session;
        if before == Some(session) { Known::Yes } else { Known::No }
    }

    /// A lease is given back.
    pub(crate) fn give_back(&self, holder: Holder, lease: u64) {
        let mut state = self.state();
        if state.leases.get(&lease).is_some_and(|held| held.holder == holder) {
            state.give_back(lease, Instant::now());
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
            state.give_back_all(holder, Instant::now());
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for leases that this holder is to give back. Empty after a while without one.
    pub(crate) fn recalls(&self, holder: Holder) -> Vec<u64> {
        let mut state = self.state();
        if state.holders.get(&holder).is_none_or(|client| client.recalls.is_empty()) {
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
        let is_changing = |at: &Dir| at.changes > 0 || at.quiet.is_some_and(|until| until > now);
        let is_busy = state.moves > 0 || at.is_some_and(is_changing);
        if let Some((number, has, recalled)) = own {
            if recalled.is_some() || (has < extent && (is_excluded || is_busy)) {
                return None;
            }
            state.leases.get_mut(&number)?.extent = has.max(extent);
            return Some(number);
        }
        let client = state.holders.get(&holder)?;
        let is_refused = client.leases >= LEASES_MAX || state.is_penalized(client.party, now);
        if is_excluded || is_busy || is_refused {
            return None;
        }
        Some(state.add(holder, dir, extent))
    }

    /// Grants a lease for writing of a directory that was made under a lease. The client takes it for granted and may have
    /// decided on changes in the directory already, so that it is granted to a key with a penalty and while paths change as
    /// well: whoever waits for leases recalls this one like those of before.
    ///
    /// Others who have listed it since it was made give their leases back first. The client itself may have been granted one for
    /// reading by a listing of the directory above, so that this one is granted beside it. Nor does it take the place of one of a
    /// directory that had the same identity and is about to be forgotten.
    // spec: store-lease-4
    pub(crate) fn grant_made(self: &Arc<Self>, holder: Holder, dir: Identity) -> Option<u64> {
        let _changing = self.before(Some(holder), dir, Intent::Change);
        let mut state = self.state();
        if state.holders.get(&holder)?.leases >= LEASES_MAX {
            return None;
        }
        let number = state.add(holder, dir, Extent::Write);
        drop(state);
        self.changed.notify_all();
        Some(number)
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
        let state = self.state();
        let conflicts = |state: &State| state.conflicts(who, dir, intent);
        let mut state = self.recall_all(state, conflicts, |state| !conflicts(state).is_empty());
        if intent == Intent::Read {
            return None;
        }
        state.dirs.entry(dir).or_default().changes += 1;
        Some(Changing { leases: self.clone(), dir })
    }

    /// All leases of others are recalled: the paths of directories change. Waits until they have been given back.
    pub(crate) fn before_paths_change(self: &Arc<Self>, who: Option<Holder>) -> Moving {
        let mut state = self.state();
        // Nothing new is granted while those that there are come back.
        state.moves += 1;
        drop(self.recall_all(state, |state| state.of_others(who), |state| state.has_others(who)));
        Moving { leases: self.clone() }
    }

    /// Recalls all these leases, and waits while there are any.
    fn recall_all<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        conflicts: impl Fn(&State) -> Vec<u64>,
        are_left: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let begin = Instant::now();
        loop {
            let now = Instant::now();
            let mut is_told = false;
            for number in conflicts(&state) {
                let times = Times { term: self.term, quiet: self.quiet, patience: self.patience };
                is_told |= state.recall(number, (begin, now), times);
            }
            if is_told {
                self.changed.notify_all();
            }
            let waited = self.changed.wait_timeout_while(state, LOOK, |state| are_left(state));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !are_left(&state) {
                return state;
            }
        }
    }

    /// The leases of a directory that is about to be removed.
    pub(crate) fn of_dir(&self, dir: Identity) -> Vec<u64> {
        self.state().dirs.get(&dir).map(|at| at.leases.clone()).unwrap_or_default()
    }

    /// The directory of these leases is gone. Another one may have its identity by now, and leases of its own.
    pub(crate) fn forget(&self, numbers: Vec<u64>) {
        let mut state = self.state();
        numbers.into_iter().for_each(|number| state.remove(number));
    }
}

/// Whether a holder was known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    Yes,
    No,
}

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The client has closed it.
    Told,
    /// The client was lost.
    Lost,
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

impl Drop for Moving {
    fn drop(&mut self) {
        self.leases.state().moves -= 1;
    }
}
