//! Leases of directories. A read lease saves requests; under a write lease the mount decides on changes itself.
//!
//! Under a read lease, the answers about names, metadata and files of a directory hold until the server recalls the
//! lease. Under a write lease no other client sees the directory: changes are made here first and sent to the server in
//! their order (`held`). A recalled lease is not used any more, and is returned when the server has confirmed the changes
//! under it. All leases end with the connection, and after a time without a message of the server.

use crate::changes::Turn;
use crate::core::{Core, State};
use crate::listings::{Item, Listing};
use crate::nodes::{Node, Seen, is_within};
use hikyaku_remote::{Client, Extent, Holder, Leased, RemoteError};
use hikyaku_store::{Kind, StorePath};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// The leases of a mount.
pub(crate) struct Leases {
    holder: Holder,
    dirs: HashMap<StorePath, Lease>,
    numbers: HashMap<u64, StorePath>,
    /// How long they may be relied on.
    trusted: Option<Trust>,
    /// Time of the last renewal.
    renewed: Option<Instant>,
    /// Numbers that were recalled before it was known what they are, the last ones.
    recalled: VecDeque<u64>,
    /// Directories of which no lease for writing was granted, and when.
    refused: HashMap<StorePath, Instant>,
    /// Continuations that wait for a write lease.
    pub(crate) waits: HashMap<StorePath, Vec<Box<dyn FnOnce() + Send>>>,
}

/// The time at which the server may have revoked the leases of a mount without renewals.
#[derive(Clone, Copy)]
struct Trust {
    until: Instant,
    /// The time on the clock that also runs while this machine is suspended.
    awake_or_not: Duration,
}

/// A lease of a directory.
struct Lease {
    /// `None` for a directory that was made here and that the server has not confirmed.
    number: Option<u64>,
    extent: Extent,
    /// Answers about the directory since this time are valid.
    since: Instant,
    /// The last change of this mount that the server had made when it was asked.
    sent: Turn,
    /// All entries, as they are here, where this mount decides.
    names: Option<Names>,
}

/// Entries by name.
pub(crate) type Names = BTreeMap<Vec<u8>, Item>;

/// Interval of renewals.
const RENEWAL: Duration = Duration::from_secs(2);
/// A lease that was refused is not asked for again within this.
const AGAIN: Duration = Duration::from_secs(1);
/// Recalled numbers that are remembered: more than are recalled during a round trip.
const RECALLED_MAX: usize = 1024;
/// Leases beyond which none for new directories are taken for granted: the server grants a third more.
const LEASES_MAX: usize = 12_000;

impl Default for Leases {
    fn default() -> Self {
        Self {
            holder: new_name(),
            dirs: HashMap::new(),
            numbers: HashMap::new(),
            trusted: None,
            renewed: None,
            recalled: VecDeque::new(),
            refused: HashMap::new(),
            waits: HashMap::new(),
        }
    }
}

/// A name that no other process has.
pub(crate) fn new_name() -> Holder {
    // Each has keys that the system has drawn.
    let draw = RandomState::new();
    let half = |n: u64| draw.hash_one((n, std::process::id())).to_le_bytes();
    let [low, high] = [half(0), half(1)];
    let mut name = [0; 16];
    name[..8].copy_from_slice(&low);
    name[8..].copy_from_slice(&high);
    Holder(name)
}

impl Leases {
    fn is_trusted(&self, now: Instant) -> bool {
        self.trusted.is_some_and(|trust| trust.until > now && trust.awake_or_not > since_boot())
    }

    fn was_trusted(&self, now: Instant) -> bool {
        self.trusted.is_some() && !self.is_trusted(now)
    }

    /// The time since which answers about a directory are valid, if it is leased.
    pub(crate) fn since(&self, dir: &StorePath, now: Instant) -> Option<Instant> {
        self.dirs.get(dir).filter(|_| self.is_trusted(now)).map(|lease| lease.since)
    }

    /// The time and the last change of the answers that came with a lease.
    pub(crate) fn told(&self, dir: &StorePath) -> Option<(Instant, Turn)> {
        self.dirs.get(dir).map(|lease| (lease.since, lease.sent))
    }

    /// The entries of a directory in which this mount decides.
    pub(crate) fn names(&self, dir: &StorePath, now: Instant) -> Option<&Names> {
        let lease = self.dirs.get(dir).filter(|_| self.is_trusted(now))?;
        lease.names.as_ref().filter(|_| lease.extent == Extent::Write)
    }

    pub(crate) fn names_mut(&mut self, dir: &StorePath, now: Instant) -> Option<&mut Names> {
        self.names(dir, now)?;
        self.dirs.get_mut(dir)?.names.as_mut()
    }

    /// A directory was made here.
    pub(crate) fn made(&mut self, dir: &StorePath, (since, sent): (Instant, Turn)) {
        let names = Some(Names::new());
        let lease = Lease { number: None, extent: Extent::Write, since, sent, names };
        self.dirs.insert(dir.clone(), lease);
    }

    /// Whether a lease for a new directory can be taken for granted.
    pub(crate) fn has_room(&self) -> bool {
        self.dirs.len() < LEASES_MAX
    }

    /// The directory was removed.
    pub(crate) fn removed(&mut self, dir: &StorePath) {
        if let Some(number) = self.dirs.remove(dir).and_then(|lease| lease.number) {
            self.numbers.remove(&number);
        }
    }

    /// This mount does not decide in the directory any more, because its entries are not known.
    pub(crate) fn doubt(&mut self, dir: &StorePath) {
        if let Some(lease) = self.dirs.get_mut(dir) {
            lease.names = None;
        }
    }

    /// A name has been changed: leases of directories below either name are used no more. The server recalls them when they
    /// are in the way.
    pub(crate) fn moved(&mut self, from: &StorePath, to: &StorePath) {
        self.dirs.retain(|dir, _| !is_within(from, dir) && !is_within(to, dir));
        let dirs = &self.dirs;
        self.numbers.retain(|_, dir| dirs.contains_key(dir));
    }

    /// All leases are lost.
    pub(crate) fn clear(&mut self) {
        self.dirs.clear();
        self.numbers.clear();
        self.refused.clear();
        self.trusted = None;
        self.renewed = None;
    }

    pub(crate) fn len(&self) -> usize {
        self.dirs.len()
    }

    /// Takes a lease that was granted. `None` if it was recalled already, or nothing may be relied on.
    fn insert(
        &mut self,
        dir: &StorePath,
        (leased, sent): (&Leased, Turn),
        names: Option<Names>,
    ) -> Option<()> {
        let now = Instant::now();
        if self.recalled.contains(&leased.lease) || !self.is_trusted(now) {
            return None;
        }
        self.removed(dir);
        let (number, extent) = (Some(leased.lease), leased.extent);
        self.dirs.insert(dir.clone(), Lease { number, extent, since: now, sent, names });
        self.numbers.insert(leased.lease, dir.clone());
        Some(())
    }

    /// The server has confirmed a directory that was made here. Returns whether it wants the lease back already.
    pub(crate) fn confirm(&mut self, dir: &StorePath, leased: &Leased) -> bool {
        if let Some(lease) = self.dirs.get_mut(dir) {
            lease.number = Some(leased.lease);
            self.numbers.insert(leased.lease, dir.clone());
        }
        self.recalled.contains(&leased.lease)
    }
}

impl Trust {
    /// From when the server is asked.
    fn begin() -> Self {
        let trust = hikyaku_remote::Leases::TRUST;
        Self { awake_or_not: since_boot() + trust, until: Instant::now() + trust }
    }
}

/// The time since this machine was started, in which it may have been suspended.
fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    // The clock begins at zero.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

impl Core {
    /// Begins with leases over a new connection, if its server has them.
    pub(crate) fn begin_leases(self: &Arc<Self>, client: &Client) {
        let mut state = self.state();
        // The numbers of a server that was started again are others.
        state.leases.recalled.clear();
        let holder = state.leases.holder;
        drop(state);
        let core = self.clone();
        client.hear_recalls(holder, move |lease| {
            if let Ok(lease) = lease {
                core.recall(lease);
            }
        });
        self.renew(client.clone());
    }

    /// Renews the leases at the interval `RENEWAL`.
    pub(crate) fn tend_leases(self: &Arc<Self>) {
        let now = Instant::now();
        let mut state = self.state();
        let Some(client) = state.crew.leasing().cloned() else { return };
        if state.leases.was_trusted(now) {
            // The server may have granted others what this mount relied on.
            state.lose_leases();
        }
        let is_due =
            state.leases.renewed.is_none_or(|at| now.saturating_duration_since(at) >= RENEWAL);
        drop(state);
        if is_due {
            self.renew(client);
        }
    }

    fn renew(self: &Arc<Self>, client: Client) {
        let (asked, trust) = (Instant::now(), Trust::begin());
        self.state().leases.renewed = Some(asked);
        let core = self.clone();
        let epoch = core.state().epoch;
        client.renew_then(move |answer| {
            let mut state = core.state();
            if state.epoch != epoch {
                return;
            }
            match answer {
                Ok(()) => {
                    let was_ready = state.leases.trusted.is_some();
                    if state.leases.was_trusted(Instant::now()) {
                        state.lose_leases();
                    }
                    state.leases.trusted = Some(trust);
                    drop(state);
                    if !was_ready {
                        core.retake();
                    }
                }
                // The server does not know this holder yet, or has revoked its leases.
                // spec: store-lease-3
                Err(RemoteError::Refused { .. }) => state.lose_leases(),
                Err(_) => {}
            }
        });
    }

    /// The server wants a lease back.
    // spec: store-lease-2
    pub(crate) fn recall(self: &Arc<Self>, number: u64) {
        let mut state = self.state();
        let leases = &mut state.leases;
        let dir = leases.numbers.remove(&number);
        leases.recalled.push_back(number);
        if leases.recalled.len() > RECALLED_MAX {
            leases.recalled.pop_front();
        }
        let lease = dir.as_ref().and_then(|dir| leases.dirs.remove(dir));
        let is_read = lease.is_some_and(|lease| lease.extent == Extent::Read);
        if is_read && !dir.is_some_and(|dir| state.writes.holds_in(&dir)) {
            // Nothing was decided under it, nor under one for writing of before.
            let client = state.crew.leasing().cloned();
            drop(state);
            return client.into_iter().for_each(|client| client.give_back(number));
        }
        drop(state);
        let core = self.clone();
        // A number that is not known may belong to a directory that was made here, of which the answer has not come yet.
        self.after_held(move || {
            let state = core.state();
            // Meanwhile it may have turned out to be one that is in use; that one is given back by itself.
            if state.leases.numbers.contains_key(&number) {
                drop(state);
                return core.recall(number);
            }
            let client = state.crew.leasing().cloned();
            drop(state);
            if let Some(client) = client {
                client.give_back(number);
            }
        });
    }

    /// A directory was listed completely, with a lease or without.
    pub(crate) fn lease_listed(&self, dir: &StorePath, leased: &Leased, when: (Instant, Turn)) {
        let mut state = self.state();
        if state.leases.names(dir, Instant::now()).is_none() {
            state.accept(dir, leased, None, when);
        }
    }

    /// Calls `then` when this mount decides in the directory, or when it is clear that it does not.
    pub(crate) fn with_lease(
        self: &Arc<Self>,
        dir: &StorePath,
        then: impl FnOnce() + Send + 'static,
    ) {
        let now = Instant::now();
        let mut state = self.state();
        state.leases.refused.retain(|_, at| now.saturating_duration_since(*at) < AGAIN);
        let leases = &state.leases;
        let is_settled = leases.names(dir, now).is_some()
            || !leases.is_trusted(now)
            || leases.refused.contains_key(dir)
            || state.crew.leasing().is_none()
            || state.writes.holds_in(dir);
        if is_settled {
            drop(state);
            return then();
        }
        let waits = state.leases.waits.entry(dir.clone()).or_default();
        waits.push(Box::new(then));
        let is_first = waits.len() == 1;
        drop(state);
        if is_first {
            self.ask(crate::ask::What::Take(dir.clone()));
        }
    }

    /// The server has answered the request for a write lease.
    pub(crate) fn taken(
        self: &Arc<Self>,
        dir: &StorePath,
        leased: Option<&Leased>,
        listing: Option<Listing>,
    ) {
        let now = Instant::now();
        let mut state = self.state();
        let waits = state.leases.waits.remove(dir).unwrap_or_default();
        let when = listing.as_ref().map(|listing| (listing.asked, listing.sent));
        let is_right = when.is_some_and(|(_, sent)| state.serves_entries(dir, sent));
        let names = listing.filter(|_| is_right).map(Listing::into_names);
        if let (Some(leased), Some(when)) = (leased, when) {
            state.accept(dir, leased, names, when);
        }
        if state.leases.names(dir, now).is_none() {
            state.leases.refused.insert(dir.clone(), now);
        }
        drop(state);
        waits.into_iter().for_each(|then| then());
    }
}

impl State {
    /// All leases are lost. Pending changes are sent to the server nevertheless.
    pub(crate) fn lose_leases(&mut self) {
        self.leases.clear();
    }

    /// Takes a lease that was granted, and the metadata of its directory, which are true at this time unless this mount has
    /// changed them since it asked. A lease of a directory whose path was changed since is not used.
    fn accept(
        &mut self,
        dir: &StorePath,
        leased: &Leased,
        names: Option<Names>,
        (asked, sent): (Instant, Turn),
    ) {
        if !self.changes.serves(dir, sent)
            || self.leases.insert(dir, (leased, sent), names).is_none()
        {
            return;
        }
        let is_unchanged = dir.split().is_none_or(|(above, _)| self.serves_entries(&above, sent));
        let asked = if is_unchanged { Instant::now() } else { asked };
        let at = Self::place();
        self.observe(dir, Seen { found: leased.found, link: None, at, asked, sent });
    }

    /// How long the metadata of a node may be used.
    pub(crate) fn fresh(&self, node: &Node, limit: Duration, now: Instant) -> Option<Duration> {
        node.fresh(limit, now).or_else(|| self.is_leased(node, now).then_some(limit))
    }

    /// Whether what is known of a node holds because of leases.
    pub(crate) fn is_leased(&self, node: &Node, now: Instant) -> bool {
        if node.is_stale || node.is_doubted || node.is_own() {
            return node.unconfirmed > 0 && node.is_held_only() && !node.is_stale;
        }
        let holds =
            |dir: &StorePath| self.leases.since(dir, now).is_some_and(|since| node.asked >= since);
        let in_parent = node.path.split().is_none_or(|(dir, _)| holds(&dir));
        match node.found.kind {
            // The time of a directory changes with its entries.
            Kind::Dir => in_parent && holds(&node.path),
            _ => in_parent,
        }
    }

    /// The entries of a directory in which this mount decides.
    pub(crate) fn own_listing(&self, dir: &StorePath, now: Instant) -> Option<Listing> {
        let items = self.leases.names(dir, now)?.values().cloned().collect();
        Some(Listing::of_items(items, (now, self.changes.turn()), self.leases.told(dir)?))
    }
}
