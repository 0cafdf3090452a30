//! Several servers that have parts of one tree, as one store that is read.

use crate::open::Holder;
use hikyaku_fs::Name;
use hikyaku_store::{
    Abilities, Ability, Access, Attribute, Change, Cursor, Draft, Entry, ErrorKind, Found, Item,
    Kind, Latency, Make, Open, Page, Place, Replace, Result, Space, Store, StoreError, StorePath,
    Token, Versions, Writes, doing,
};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::thread;

/// Entries of a directory that a server is asked for at once.
const PAGE: usize = 1000;
/// Entries of one directory, and of one walk, of a server.
const ENTRIES_MAX: usize = 1 << 20;

/// The entries of all servers. A file on several servers counts as one file if its size and time are equal. A directory is
/// listed only if every server that has it lists it.
pub(super) struct Union(pub(super) Vec<Holder>);

impl Union {
    /// Asks all servers at the same time, and returns the answers of those that have the name.
    ///
    /// # Errors
    ///
    /// The first of a server, unless that is that it has nothing of the name. `NotFound` if none has it.
    fn ask<T: Send>(
        &self,
        (what, path): (&'static str, &StorePath),
        ask: impl Fn(&dyn Store) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (ask, mut all) = (&ask, Vec::new());
        let answers: Vec<Result<T>> = thread::scope(|scope| {
            let asked = self.0.iter().map(|holder| scope.spawn(move || ask(&*holder.store)));
            let lost = |_| Err(StoreError::new(what, path, ErrorKind::Gone));
            let asked: Vec<_> = asked.collect();
            asked.into_iter().map(|asked| asked.join().unwrap_or_else(lost)).collect()
        });
        for answer in answers {
            match answer {
                Ok(answer) => all.push(answer),
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if all.is_empty() { doing(what, path).fail(ErrorKind::NotFound) } else { Ok(all) }
    }
}

/// Whether two servers have the same under a name.
fn is_same(one: &Found, other: &Found) -> bool {
    let of_file =
        |found: &Found| (found.kind == Kind::File).then_some((found.size, found.modified));
    one.kind == other.kind && of_file(one) == of_file(other)
}

/// The entries of a directory.
fn entries(store: &dyn Store, dir: &StorePath) -> Result<Page> {
    let (mut all, mut after) = (Page::default(), None);
    loop {
        let page = store.list(dir, after.as_ref(), PAGE)?;
        all.items.extend(page.items);
        all.skipped += page.skipped;
        after = page.next;
        if all.items.len() > ENTRIES_MAX {
            return doing("list", dir).fail(ErrorKind::TooLarge);
        }
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// Everything at and below a path.
fn walked(store: &dyn Store, root: &StorePath) -> Result<Vec<Entry>> {
    let mut all = Vec::new();
    store.walk(root, &mut |entry| {
        all.push(entry);
        if all.len() > ENTRIES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if all.len() > ENTRIES_MAX { doing("list", root).fail(ErrorKind::TooLarge) } else { Ok(all) }
}

fn read_only<T>(what: &'static str, path: &StorePath) -> Result<T> {
    doing(what, path).fail(ErrorKind::ReadOnly)
}

impl Store for Union {
    fn abilities(&self) -> Abilities {
        let all = self.0.iter().map(|holder| holder.store.abilities());
        Abilities {
            links: all.clone().any(|one| one.links),
            modes: all.clone().all(|one| one.modes),
            times: all.clone().all(|one| one.times),
            clock: all.map(|one| one.clock).next().unwrap_or_default(),
            writes: Writes::Never,
            versions: Versions::SizeAndTime,
            latency: Latency::RoundTrip,
            ..Abilities::default()
        }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        let found = self.ask(("look at", path), |store| store.look(path))?;
        match found.windows(2).all(|two| is_same(&two[0], &two[1])) {
            true => Ok(found[0]),
            false => doing("look at", path).fail(ErrorKind::DIFFERS),
        }
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        let mut all: BTreeMap<Name, Found> = BTreeMap::new();
        let mut skipped = 0;
        for page in self.ask(("list", dir), |store| entries(store, dir))? {
            skipped += page.skipped;
            for Item { name, found } in page.items {
                let first = all.entry(name).or_insert(found);
                if !is_same(first, &found) {
                    return doing("list", dir).fail(ErrorKind::DIFFERS);
                }
            }
        }
        let after = after.and_then(|after| Name::new(&after.0).ok());
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = all.range((from, Bound::Unbounded));
        let item = |(name, found): (&Name, &Found)| Item { name: name.clone(), found: *found };
        let items: Vec<Item> = rest.by_ref().take(room).map(item).collect();
        let last = items.last().filter(|_| rest.next().is_some());
        let next = last.map(|last| Cursor(last.name.as_bytes().to_vec()));
        Ok(Page { items, next, skipped })
    }

    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        let mut all: BTreeMap<StorePath, Entry> = BTreeMap::new();
        let mut failed = Vec::new();
        for entry in self.ask(("list", root), |store| walked(store, root))?.into_iter().flatten() {
            let Ok(found) = &entry.found else {
                failed.push(entry);
                continue;
            };
            let first = all.entry(entry.path.clone()).or_insert_with(|| entry.clone());
            let is_one = first.found.as_ref().is_ok_and(|first| is_same(first, found));
            if !is_one || first.link != entry.link {
                let error = StoreError::new("list", &entry.path, ErrorKind::DIFFERS);
                failed.push(Entry::new(entry.path, Err(error), None));
            }
        }
        let _ = all.into_values().chain(failed).try_for_each(each);
        Ok(())
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        if access == Access::Update {
            return read_only("write", path);
        }
        for Holder { store, .. } in &self.0 {
            match store.open(path, access) {
                Err(error) if error.kind == ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        doing("open", path).fail(ErrorKind::NotFound)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        let mut texts = self.ask(("read the link", path), |store| store.read_link(path))?;
        texts.dedup();
        match &texts[..] {
            [text] => Ok(text.clone()),
            _ => doing("read the link", path).fail(ErrorKind::DIFFERS),
        }
    }

    fn create(&self, path: &StorePath, _make: &Make) -> Result<Box<dyn Draft>> {
        read_only("create", path)
    }

    fn take_up(&self, path: &StorePath, _token: &Token) -> Result<Box<dyn Draft>> {
        read_only("resume", path)
    }

    fn make_dir(&self, path: &StorePath, _mode: u32) -> Result<()> {
        read_only("make the directory", path)
    }

    fn make_link(&self, path: &StorePath, _text: &[u8]) -> Result<()> {
        read_only("make the link", path)
    }

    fn remove(&self, path: &StorePath, _kind: Kind) -> Result<()> {
        read_only("remove", path)
    }

    fn rename(&self, from: &StorePath, _to: &StorePath, _replace: Replace) -> Result<()> {
        read_only("rename", from)
    }

    fn change(&self, path: &StorePath, _change: &Change) -> Result<()> {
        read_only("change", path)
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        doing("read the attributes of", path).fail(ErrorKind::Unsupported(Ability::Attributes))
    }

    fn space(&self) -> Result<Space> {
        doing("measure", &StorePath::ROOT).fail(ErrorKind::Unsupported(Ability::Space))
    }

    fn places(&self, _path: &StorePath) -> Result<Vec<Place>> {
        Ok(Vec::new())
    }

    fn sync(&self, _dirs: &[StorePath]) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
