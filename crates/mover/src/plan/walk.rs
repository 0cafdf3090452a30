//! A source of one store is looked through: what is wanted of it goes into a plan.
//!
//! Directories of a store behind a network are listed many at once. Links are followed if the user wants that: what a link
//! leads to has the link's name at the target, and is read where it is.

use super::Plan;
use crate::above::Above;
use crate::census::{File, LeftOut, Why};
use crate::choice::{Link, Selection, Wanted};
use crate::dress::DirMeta;
use crate::many;
use hikyaku_fs::{PathError, PeerPath, dirs_above};
use hikyaku_remote::Seen;
use hikyaku_store::{
    Access, Descent, ErrorKind, Found, Item, Kind, Latency, Store, StoreError, StorePath, doing,
};
use hikyaku_transfer::{Depth, Links};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Names of a directory that are read at once.
const PAGE: usize = 512;
/// Directories of a store behind a network that are listed at once.
const LISTED_MAX: usize = 32;

/// Entries of one directory that are taken.
const ENTRIES_MAX: usize = 1 << 20;

/// The largest content of a file of this machine of which the kernel reports no size.
const UNSIZED_BYTES_MAX: usize = 256 << 10;

/// A directory that is to be listed.
struct Dir {
    from: StorePath,
    to: StorePath,
    /// Its path below the source, as at the target.
    below: Vec<u8>,
    above: Above,
}

/// An entry of a directory.
struct Entry {
    from: StorePath,
    found: Found,
    to: StorePath,
    below: Vec<u8>,
}

/// A source while it is looked through.
struct Walk<'a, 'b> {
    plan: &'a mut Plan,
    source: &'a Arc<dyn Store>,
    selection: &'a Selection<'b>,
    dirs: Descent<Dir, Listed>,
}

/// Where a name is, and its metadata.
type Looked = std::result::Result<(StorePath, Found), ErrorKind>;

impl Plan {
    /// Adds the selected entries at and below `from` in a store; `found` has the metadata of `from`. The place of
    /// `from` at the target is `to`. Listed names that do not exist are left out, and so are entries that cannot be
    /// read.
    pub(crate) fn add(
        &mut self,
        source: &Arc<dyn Store>,
        (from, found): (&StorePath, Found),
        to: &StorePath,
        selection: &Selection<'_>,
    ) {
        self.roots.push(to.clone());
        self.versions = source.abilities().versions;
        let at_once = match source.abilities().latency {
            Latency::Local => 1,
            Latency::RoundTrip => LISTED_MAX,
        };
        let mut walk = Walk { plan: self, source, selection, dirs: Descent::new(at_once) };
        let above = Above::of(from);
        let entry = Entry { from: from.clone(), found, to: to.clone(), below: Vec::new() };
        match (found.kind, from.split()) {
            (Kind::Dir, _) if selection.is_list() => walk.list(&entry, &above),
            (Kind::Dir, _) => walk.found(entry, above),
            // Patterns are about the name of a file.
            (_, Some((_, name))) if selection.of(name.as_bytes(), false) == Wanted::LeftOut => {}
            _ => walk.found(entry, above),
        }
        walk.all();
    }
}

impl Walk<'_, '_> {
    /// Lists directories until none is left.
    fn all(&mut self) {
        let source = self.source;
        while let Some((dir, listed)) = self.dirs.next(|dir| list(source, &dir.from)) {
            self.dir(&dir, listed);
        }
    }

    fn dir(&mut self, dir: &Dir, listed: Listed) {
        for Item { name, found } in listed.items {
            let below = join(&dir.below, name.as_bytes());
            match (dir.from.join(&name), dir.to.join(&name)) {
                (Ok(from), Ok(to)) => {
                    self.entry(Entry { from, found, to, below }, (&dir.from, &dir.above));
                }
                _ => self.plan.leave_out(&dir.from, Why::BadName),
            }
        }
        if let Some(why) = listed.why {
            self.plan.leave_out(&dir.from, why);
        }
    }

    /// An entry of the directory `dir`.
    fn entry(&mut self, mut entry: Entry, (dir, above): (&StorePath, &Above)) {
        let selection = self.selection;
        let wanted = |entry: &Entry| selection.of(&entry.below, entry.found.kind == Kind::Dir);
        let mut above = above.clone();
        let (is_link, named) = (self.is_followed(&entry.found), entry.from.clone());
        if is_link {
            // A pattern that leaves out a file leaves out a link of that name as well, wherever that leads.
            if wanted(&entry) == Wanted::LeftOut {
                return;
            }
            match self.source.follow(&entry.from) {
                Ok((from, found)) => (entry.from, entry.found) = (from, found),
                Err(error) => return self.plan.leave_out(&entry.from, Why::of_link(error.kind)),
            }
        }
        match wanted(&entry) {
            Wanted::Copied | Wanted::Above => {}
            Wanted::Tree => return self.plan.leave_out(&entry.from, Why::Tree),
            Wanted::LeftOut => return,
        }
        if entry.found.kind == Kind::Dir {
            if above.has(dir, &entry.from) {
                return self.plan.leave_out(&named, Why::Circle);
            }
            if is_link {
                above = above.behind_link(dir, &entry.from);
            }
        }
        self.found(entry, above);
    }

    fn is_followed(&self, found: &Found) -> bool {
        found.kind == Kind::Link && self.selection.links() == Links::Followed
    }

    fn found(&mut self, entry: Entry, above: Above) {
        let Entry { from, found, to, below } = entry;
        match found.kind {
            Kind::Dir => {
                if to != StorePath::ROOT {
                    self.plan.dirs.push((to.clone(), DirMeta::of(&found)));
                }
                self.dirs.enter(Dir { from, to, below, above });
            }
            Kind::Link => match self.source.read_link(&from) {
                Ok(text) => {
                    let modified = found.modified;
                    self.plan.links.push((to, Link { text, modified }));
                }
                Err(error) => self.plan.leave_out(&from, Why::Server(error.kind)),
            },
            Kind::Special => self.plan.leave_out(&from, Why::Special),
            Kind::File => match PeerPath::new(from.as_bytes()) {
                Ok(path) => {
                    let Some(found) = measured(self.source, &from, found) else {
                        return self.plan.leave_out(&from, Why::Sizeless);
                    };
                    let (seen, at) = (Seen::from(&found), Vec::new());
                    let (content, mode) = (found.version.map(Into::into), found.mode);
                    let data = found.allocated.min(found.size);
                    self.plan.files.push(File { path, to, seen, data, content, mode, at });
                }
                Err(_) => self.plan.leave_out(&from, Why::BadName),
            },
        }
    }

    /// The names of a list in the directory `top`, and the directories above them.
    fn list(&mut self, top: &Entry, above: &Above) {
        let (from, to) = (&top.from, &top.to);
        if *to != StorePath::ROOT {
            self.plan.dirs.push((to.clone(), DirMeta::of(&top.found)));
        }
        let listed: BTreeSet<&[u8]> = self.selection.listed().collect();
        // A directory of the list is looked through as a whole.
        let is_in_one = |path: &[u8]| {
            let is_tree = self.selection.depth() == Depth::Tree;
            is_tree && dirs_above(path).any(|dir| listed.contains(dir))
        };
        let names: Vec<&[u8]> = listed.iter().copied().filter(|path| !is_in_one(path)).collect();
        let dirs: BTreeSet<&[u8]> = names.iter().flat_map(|path| dirs_above(path)).collect();
        let dirs = dirs.into_iter().filter(|dir| !listed.contains(dir) && !is_in_one(dir));
        for (path, looked) in self.looked(from, dirs.collect()) {
            let followed = match looked {
                // Names below it are listed.
                Ok((at, found)) if found.kind == Kind::Link => {
                    self.source.follow(&at).map_err(|error| error.kind)
                }
                looked => looked,
            };
            // A directory that cannot be used is reported with each listed name in it.
            if let (Ok((_, found)), Ok(to)) = (followed, place(to, path))
                && found.kind == Kind::Dir
            {
                self.plan.dirs.push((to, DirMeta::of(&found)));
            }
        }
        for (path, looked) in self.looked(from, names) {
            let why = match (looked, place(to, path)) {
                (Ok((from, found)), Ok(to)) => {
                    let dir = from.split().map_or(StorePath::ROOT, |(dir, _)| dir);
                    let below = path.to_vec();
                    self.entry(Entry { from, found, to, below }, (&dir, above));
                    continue;
                }
                (Err(kind), _) => Why::Server(kind),
                (_, Err(_)) => Why::BadName,
            };
            self.plan.left_out.push(LeftOut { path: join(from.as_bytes(), path), why });
        }
    }

    /// Looks at names below `from`, all at once.
    fn looked<'n>(&self, from: &StorePath, names: Vec<&'n [u8]>) -> Vec<(&'n [u8], Looked)> {
        let places: Vec<_> = names.iter().map(|name| place(from, name)).collect();
        let all = places.iter().filter_map(|at| at.as_ref().ok());
        let mut found = many::look(&**self.source, all).into_iter();
        let looked = names.into_iter().zip(&places).map(|(name, at)| {
            let Ok(at) = at else { return (name, Err(ErrorKind::BadName)) };
            let looked = match found.next() {
                Some(Ok(Some(found))) => Ok((at.clone(), found)),
                // A directory on the way may be a link.
                Some(Err(StoreError { kind: ErrorKind::Link | ErrorKind::NotDir, .. })) => {
                    self.beyond_links(at).map_err(|error| error.kind)
                }
                Some(Err(error)) => Err(error.kind),
                Some(Ok(None)) | None => Err(ErrorKind::NotFound),
            };
            (name, looked)
        });
        looked.collect()
    }
}

impl Walk<'_, '_> {
    /// Looks at a name of a directory that links lead to.
    fn beyond_links(&self, at: &StorePath) -> hikyaku_store::Result<(StorePath, Found)> {
        let Some((dir, name)) = at.split() else { return self.source.follow(at) };
        let (dir, _) = self.source.follow(&dir)?;
        match dir.join(&name) {
            Ok(at) => self.source.look(&at).map(|found| (at, found)),
            Err(_) => doing("look at", at).fail(ErrorKind::BadName),
        }
    }
}

/// The entries of a directory.
#[derive(Default)]
struct Listed {
    items: Vec<Item>,
    /// Why the list is not complete.
    why: Option<Why>,
}

fn list(source: &Arc<dyn Store>, dir: &StorePath) -> Listed {
    let (mut listed, mut after) = (Listed::default(), None);
    loop {
        match source.list(dir, after.as_ref(), PAGE) {
            Ok(page) if listed.items.len() + page.items.len() > ENTRIES_MAX => {
                listed.why = Some(Why::Server(ErrorKind::TooLarge));
                return listed;
            }
            Ok(page) => {
                listed.items.extend(page.items);
                if page.skipped > 0 {
                    listed.why = Some(Why::BadName);
                }
                after = page.next;
            }
            Err(error) => {
                listed.why = Some(Why::Server(error.kind));
                return listed;
            }
        }
        if after.is_none() {
            return listed;
        }
    }
}

/// A path below a directory.
fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if dir.is_empty() { b"" } else { b"/" };
    [dir, slash, name].concat()
}

fn place(dir: &StorePath, below: &[u8]) -> std::result::Result<StorePath, PathError> {
    StorePath::new(&join(dir.as_bytes(), below))
}

/// The metadata of a file, with the number of its bytes as its size if the kernel reports none, as for a file of /proc.
/// `None` if there are too many. One that cannot be read is empty: the transfer reports the error when it reads the file. A
/// file of a store behind a network is not read, since its channel measures it.
fn measured(source: &Arc<dyn Store>, path: &StorePath, found: Found) -> Option<Found> {
    if found.size > 0 || source.abilities().latency == Latency::RoundTrip {
        return Some(found);
    }
    let Ok(open) = source.open(path, Access::Read) else { return Some(found) };
    let read = |into: &mut [u8]| open.read_at(0, into).unwrap_or(0);
    if read(&mut [0]) == 0 {
        return Some(found);
    }
    let size = read(&mut vec![0; UNSIZED_BYTES_MAX + 1]);
    let bytes = size as u64;
    (size <= UNSIZED_BYTES_MAX).then_some(Found { size: bytes, allocated: bytes, ..found })
}

#[cfg(test)]
mod tests;
