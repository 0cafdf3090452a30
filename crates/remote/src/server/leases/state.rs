//! What is known of leases, directories and holders.

use super::{Intent, LATE, PARTIES_MAX, PENALTY, Party};
use crate::message::{Extent, Holder};
use hikyaku_store::Identity;
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct State {
    pub(super) dirs: HashMap<Identity, Dir>,
    pub(super) leases: HashMap<u64, Held>,
    pub(super) holders: HashMap<Holder, Client>,
    pub(super) last: u64,
    /// Changes of the paths of directories that are being made. Until then nothing is granted.
    pub(super) moves: usize,
    /// Keys whose clients get no leases until then.
    pub(super) penalties: HashMap<Party, Instant>,
}

/// How long is waited for holders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) term: Duration,
    pub(super) quiet: Duration,
    pub(super) patience: Duration,
}

#[derive(Default)]
pub(super) struct Dir {
    /// The numbers of its leases.
    pub(super) leases: Vec<u64>,
    /// Changes that are being made.
    pub(super) changes: usize,
    /// Until then nothing is granted, because a lease has been recalled: those who change and read a directory in turn are
    /// quicker without.
    pub(super) quiet: Option<Instant>,
}

pub(super) struct Held {
    pub(super) dir: Identity,
    pub(super) holder: Holder,
    pub(super) extent: Extent,
    pub(super) recalled: Option<Instant>,
}

pub(super) struct Client {
    pub(super) heard: Instant,
    /// The session over which it was heard last.
    pub(super) session: u64,
    /// The key with which it was let in.
    pub(super) party: Party,
    pub(super) leases: usize,
    /// Leases that it is to be told it should give back.
    pub(super) recalls: Vec<u64>,
}

impl State {
    /// The leases of a directory: those of the holder, and those of others.
    #[allow(clippy::type_complexity)]
    pub(super) fn of(
        &self,
        dir: Identity,
        holder: Holder,
    ) -> (Vec<(u64, &Held)>, Vec<(u64, &Held)>) {
        let numbers = self.dirs.get(&dir).map(|at| at.leases.as_slice()).unwrap_or_default();
        let leases = numbers.iter().filter_map(|&number| Some((number, self.leases.get(&number)?)));
        leases.partition(|(_, held)| held.holder == holder)
    }

    /// The leases of others that an intent contradicts.
    pub(super) fn conflicts(&self, who: Option<Holder>, dir: Identity, intent: Intent) -> Vec<u64> {
        let numbers = self.dirs.get(&dir).map(|at| at.leases.as_slice()).unwrap_or_default();
        let is_against = |held: &Held| {
            Some(held.holder) != who && (intent == Intent::Change || held.extent == Extent::Write)
        };
        let is_conflict = |number: &u64| self.leases.get(number).is_some_and(is_against);
        numbers.iter().copied().filter(is_conflict).collect()
    }

    pub(super) fn of_others(&self, who: Option<Holder>) -> Vec<u64> {
        let others = self.leases.iter().filter(|(_, held)| Some(held.holder) != who);
        others.map(|(&number, _)| number).collect()
    }

    pub(super) fn has_others(&self, who: Option<Holder>) -> bool {
        let own = who.and_then(|who| self.holders.get(&who)).map_or(0, |client| client.leases);
        self.leases.len() > own
    }

    pub(super) fn add(&mut self, holder: Holder, dir: Identity, extent: Extent) -> u64 {
        self.last += 1;
        let number = self.last;
        self.leases.insert(number, Held { dir, holder, extent, recalled: None });
        self.dirs.entry(dir).or_default().leases.push(number);
        if let Some(client) = self.holders.get_mut(&holder) {
            client.leases += 1;
        }
        number
    }

    pub(super) fn remove(&mut self, number: u64) {
        let Some(held) = self.leases.remove(&number) else { return };
        if let Some(at) = self.dirs.get_mut(&held.dir) {
            at.leases.retain(|&lease| lease != number);
        }
        if let Some(client) = self.holders.get_mut(&held.holder) {
            client.leases -= 1;
        }
        self.tidy(held.dir);
    }

    /// A holder gives all of its leases back.
    pub(super) fn give_back_all(&mut self, holder: Holder, now: Instant) {
        self.of_holder(holder).into_iter().for_each(|number| self.give_back(number, now));
        self.holders.remove(&holder);
    }

    fn of_holder(&self, holder: Holder) -> Vec<u64> {
        let numbers = self.leases.iter().filter(|(_, held)| held.holder == holder);
        numbers.map(|(&number, _)| number).collect()
    }

    /// Drops what is known of a directory, if that is nothing.
    pub(super) fn tidy(&mut self, dir: Identity) {
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
    pub(super) fn recall(
        &mut self,
        number: u64,
        (begin, now): (Instant, Instant),
        times: Times,
    ) -> bool {
        let Some(held) = self.leases.get_mut(&number) else { return false };
        let client = self.holders.get_mut(&held.holder);
        let is_lost = client
            .as_ref()
            .is_none_or(|client| now.saturating_duration_since(client.heard) >= times.term);
        // Whoever has only read has nothing to tell, and gives the lease back at once.
        let patience = match held.extent {
            Extent::Read => times.term,
            Extent::Write => times.patience,
        };
        if is_lost || now.saturating_duration_since(begin) >= patience {
            self.take(number, now);
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
        self.dirs.entry(dir).or_default().quiet = Some(now + times.quiet);
        true
    }

    /// Clients with this key get no leases for a while: one of them has held others up until its lease was taken from it.
    pub(super) fn penalize(&mut self, party: Party, now: Instant) {
        self.penalties.retain(|_, until| *until > now);
        if self.penalties.len() >= PARTIES_MAX
            && let Some(first) = self.penalties.iter().min_by_key(|(_, until)| **until)
        {
            let first = *first.0;
            self.penalties.remove(&first);
        }
        self.penalties.insert(party, now + PENALTY);
    }

    /// Whether clients with this key get no leases.
    pub(super) fn is_penalized(&self, party: Party, now: Instant) -> bool {
        self.penalties.get(&party).is_some_and(|until| *until > now)
    }

    /// Removes the leases of a directory whose holders are lost, other than this one.
    pub(super) fn expire(
        &mut self,
        dir: Identity,
        except: Holder,
        (term, now): (Duration, Instant),
    ) {
        let (_, others) = self.of(dir, except);
        let is_lost = |held: &Held| {
            let client = self.holders.get(&held.holder);
            client.is_none_or(|client| now.saturating_duration_since(client.heard) >= term)
        };
        let lost: Vec<u64> =
            others.iter().filter(|(_, held)| is_lost(held)).map(|(number, _)| *number).collect();
        lost.into_iter().for_each(|number| self.take(number, now));
    }

    /// Takes a lease from its holder, who is penalized if it was to give the lease back.
    fn take(&mut self, number: u64, now: Instant) {
        let held = self.leases.get(&number).filter(|held| held.recalled.is_some());
        let party = held.and_then(|held| self.holders.get(&held.holder)).map(|client| client.party);
        if let Some(party) = party {
            self.penalize(party, now);
        }
        self.remove(number);
    }

    /// A holder gives a lease back. One that has only read does so at once, or has held others up on purpose.
    pub(super) fn give_back(&mut self, number: u64, now: Instant) {
        let is_late = |held: &&Held| {
            let late = held.recalled.map(|at| now.saturating_duration_since(at));
            held.extent == Extent::Read && late.is_some_and(|late| late >= LATE)
        };
        match self.leases.get(&number).filter(is_late) {
            Some(_) => self.take(number, now),
            None => self.remove(number),
        }
    }

    /// Forgets holders that were lost, and directories of which nothing is known.
    pub(super) fn purge(&mut self, term: Duration, now: Instant) {
        let is_lost = |client: &Client| now.saturating_duration_since(client.heard) >= term;
        let lost = self.holders.iter().filter(|(_, client)| is_lost(client));
        let lost: Vec<Holder> = lost.map(|(&holder, _)| holder).collect();
        for holder in lost {
            self.of_holder(holder).into_iter().for_each(|number| self.take(number, now));
            self.holders.remove(&holder);
        }
        self.dirs.retain(|_, at| {
            !at.leases.is_empty() || at.changes > 0 || at.quiet.is_some_and(|until| until > now)
        });
    }
}
