//! Directories that the server has listed not long ago.

use crate::changes::Turn;
use crate::crew::Places;
use crate::nodes::{Seen, is_within, rest};
use hikyaku_fs::Name;
use hikyaku_remote::Listed;
use hikyaku_store::{Found, Kind, StorePath};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// All entries of a directory.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Sorted by name.
    entries: Vec<Item>,
    /// When the server was asked for it.
    pub(crate) asked: Instant,
    /// The last change of this mount that the server had made when the question was sent.
    pub(crate) sent: Turn,
    /// Request time and last change of the directories among the entries, whose times change with their own entries.
    dirs: (Instant, Turn),
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: Name,
    pub(crate) found: Found,
    pub(crate) link: Option<Vec<u8>>,
    /// The servers that have it so.
    pub(crate) at: Places,
}

/// Listings by directory.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    /// In the order of the bytes of their paths.
    all: BTreeMap<StorePath, Arc<Listing>>,
    entries: usize,
    /// Directories that a program has opened not long ago, and when.
    opened: HashMap<StorePath, Instant>,
}

/// Entries that are held; above that, old listings go.
const ENTRIES_MAX: usize = 400_000;
/// Directories beside a listed one that are listed ahead.
const SIBLINGS: usize = 64;
/// A program that lists a tree opens the next directory within this.
const SOON: Duration = Duration::from_secs(5);

impl Listing {
    /// A listing from the server. Names that no path can have are left out.
    pub(crate) fn new(listed: Vec<(Listed, Places)>, (asked, sent): (Instant, Turn)) -> Self {
        let item = |(listed, at): (Listed, Places)| {
            let name = Name::new(&listed.name).ok()?;
            Some(Item { name, found: listed.found, link: listed.link, at })
        };
        let mut entries: Vec<Item> = listed.into_iter().filter_map(item).collect();
        entries.sort_unstable_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        entries.dedup_by(|a, b| a.name == b.name);
        Self { entries, asked, sent, dirs: (asked, sent) }
    }

    /// The present entries of a directory in which this mount decides, in the order of their names. `dirs` is the age of the
    /// metadata of directories among them.
    pub(crate) const fn of_items(
        entries: Vec<Item>,
        (asked, sent): (Instant, Turn),
        dirs: (Instant, Turn),
    ) -> Self {
        Self { entries, asked, sent, dirs }
    }

    /// The entries by name.
    pub(crate) fn into_names(self) -> BTreeMap<Vec<u8>, Item> {
        let named = |item: Item| (item.name.as_bytes().to_vec(), item);
        self.entries.into_iter().map(named).collect()
    }

    pub(crate) fn entries(&self) -> &[Item] {
        &self.entries
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&Item> {
        let at = self.entries.binary_search_by(|item| item.name.as_bytes().cmp(name)).ok()?;
        self.entries.get(at)
    }

    pub(crate) fn fresh(&self, limit: Duration, now: Instant) -> Option<Duration> {
        rest(self.asked, limit, now)
    }

    /// The metadata of an entry.
    pub(crate) fn seen(&self, item: &Item) -> Seen {
        item.seen(match item.found.kind {
            Kind::Dir => self.dirs,
            _ => (self.asked, self.sent),
        })
    }
}

impl Item {
    pub(crate) fn seen(&self, (asked, sent): (Instant, Turn)) -> Seen {
        Seen { found: self.found, link: self.link.clone(), at: self.at, asked, sent }
    }
}

impl Listings {
    /// A directory was listed.
    pub(crate) fn insert(&mut self, dir: StorePath, listing: Arc<Listing>) {
        self.entries += listing.entries.len() + 1;
        if let Some(old) = self.all.insert(dir, listing) {
            self.entries -= old.entries.len() + 1;
        }
        if self.entries > ENTRIES_MAX {
            self.prune();
        }
    }

    /// The listing of a directory is not used any more.
    pub(crate) fn remove(&mut self, dir: &StorePath) {
        if let Some(old) = self.all.remove(dir) {
            self.entries -= old.entries.len() + 1;
        }
    }

    /// The listings of a directory and of all below it are not used any more.
    pub(crate) fn remove_within(&mut self, path: &StorePath) {
        let from = self.all.range(path..).map(|(dir, _)| dir);
        let near = from.take_while(|dir| dir.as_bytes().starts_with(path.as_bytes()));
        let below: Vec<StorePath> = near.filter(|dir| is_within(path, dir)).cloned().collect();
        below.iter().for_each(|dir| self.remove(dir));
    }

    /// Drops the older half.
    fn prune(&mut self) {
        let mut times: Vec<Instant> = self.all.values().map(|listing| listing.asked).collect();
        times.sort_unstable();
        if let Some(&middle) = times.get(times.len() / 2) {
            self.all.retain(|_, listing| listing.asked > middle);
            self.entries = self.all.values().map(|listing| listing.entries.len() + 1).sum();
        }
    }

    pub(crate) fn of(&self, dir: &StorePath) -> Option<&Arc<Listing>> {
        self.all.get(dir)
    }

    /// A program opens this directory: returns the directories that it will open next, if it lists a tree. Those that are
    /// fresh, or for which `is_asked` is true, are not among them.
    pub(crate) fn open(
        &mut self,
        dir: &StorePath,
        (limit, now): (Duration, Instant),
        is_asked: impl Fn(&StorePath) -> bool,
    ) -> Vec<StorePath> {
        self.opened.retain(|_, at| now.saturating_duration_since(*at) < SOON);
        self.opened.insert(dir.clone(), now);
        let Some((parent, name)) = dir.split() else { return Vec::new() };
        let Some(listing) = self.all.get(&parent) else { return Vec::new() };
        let siblings = || listing.entries.iter().filter(|item| item.found.kind == Kind::Dir);
        let opened: HashSet<StorePath> = self.opened.keys().cloned().collect();
        let is_opened = |path: &StorePath| path != dir && opened.contains(path);
        let path = |item: &Item| parent.join(&item.name).ok();
        if !siblings().filter_map(path).any(|path| is_opened(&path)) {
            return Vec::new();
        }
        let is_after = |item: &&Item| item.name.as_bytes() > name.as_bytes();
        let after = siblings().filter(is_after).chain(siblings().filter(|item| !is_after(item)));
        let is_wanted = |path: &StorePath| {
            let is_fresh = self.all.get(path).is_some_and(|old| old.fresh(limit, now).is_some());
            !opened.contains(path) && !is_fresh && !is_asked(path)
        };
        after.take(SIBLINGS).filter_map(path).filter(is_wanted).collect()
    }
}
