//! The names at a location, each once, from all stores that hold it.

use crate::args::LsArgs;
use hikyaku_store::{
    Cursor, Entry, ErrorKind, Found, Kind, Last, Place, Result, Store, StoreError, StorePath,
};
use hikyaku_stores::{Ending, Holder, Opened};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::thread;

/// A name that was found.
pub(crate) struct Listed {
    pub(crate) found: Found,
    /// The text of a symbolic link.
    pub(crate) link: Option<Vec<u8>>,
    /// The machines that have it, if they are wanted.
    pub(crate) places: Vec<Place>,
}

/// The names of a location.
#[derive(Default)]
pub(crate) struct Gathered {
    /// By their paths below the location; the location itself is the root.
    pub(crate) names: BTreeMap<StorePath, Listed>,
    /// Paths that cannot be read, with the reasons.
    pub(crate) failed: Vec<(StorePath, ErrorKind)>,
}

/// Entries of a directory that are listed by one request.
const PAGE_ENTRIES: usize = 1000;
/// Requests for the places of files at once.
const THREADS: usize = 16;

/// Asks all stores of the location. One that has nothing of the name takes no part if another one has it.
///
/// # Errors
///
/// No store has the path, or none can be read.
pub(crate) fn gather(opened: &Opened, args: &LsArgs) -> Result<Gathered> {
    let mut gathered = Gathered::default();
    let (mut first, mut has_any) = (None, false);
    let told: Vec<Result<Vec<Entry>>> = thread::scope(|scope| {
        let ask = |holder| scope.spawn(move || entries(holder, opened, args));
        let asked: Vec<_> = opened.holders.iter().map(ask).collect();
        let lost = || Err(StoreError::new("list", &opened.path, ErrorKind::Gone));
        asked.into_iter().map(|asked| asked.join().unwrap_or_else(|_| lost())).collect()
    });
    for (holder, told) in opened.holders.iter().zip(told) {
        match told {
            Ok(entries) => {
                has_any = true;
                entries.into_iter().for_each(|entry| gathered.add(holder, entry));
            }
            Err(error) if error.kind == ErrorKind::NotFound => {
                first.get_or_insert(error);
            }
            Err(error) => {
                gathered.failed.push((StorePath::ROOT, error.kind));
                first = Some(error);
            }
        }
    }
    match first.filter(|_| !has_any) {
        Some(error) => Err(error),
        None => Ok(gathered),
    }
}

impl Gathered {
    fn add(&mut self, holder: &Holder, entry: Entry) {
        let found = match entry.found {
            Ok(found) => found,
            Err(error) => return self.failed.push((entry.path, error.kind)),
        };
        let link = entry.link;
        let listed = self.names.entry(entry.path);
        let listed = listed.or_insert_with(|| Listed { found, link, places: Vec::new() });
        let of_holder = || Place { host: holder.name.clone(), is_up: true };
        match holder.store.abilities().replicas {
            true => listed.places.extend(entry.places),
            false => listed.places.push(of_holder()),
        }
    }
}

/// The entries of a store, by paths below the location.
fn entries(holder: &Holder, opened: &Opened, args: &LsArgs) -> Result<Vec<Entry>> {
    // As ls(1): a long line is that of the link itself, unless a slash stands behind it.
    let last = match args.long && opened.ending == Ending::Name {
        true => Last::Kept,
        false => Last::Followed,
    };
    let (store, root) = (&*holder.store, holder.resolve(&opened.path, last)?);
    let mut entries = Vec::new();
    match args.recursive {
        true => {
            store.walk(&root, &mut |mut entry| {
                let Some(path) = below(&root, &entry.path) else {
                    return ControlFlow::Continue(());
                };
                entry.path = path;
                if args.all || !is_hidden(&entry.path) {
                    entries.push(entry);
                }
                ControlFlow::Continue(())
            })?;
        }
        false => {
            let found = store.look(&root)?;
            let link = (found.kind == Kind::Link).then(|| store.read_link(&root)).transpose()?;
            if found.kind == Kind::Dir {
                list(store, &root, args, &mut entries)?;
            }
            entries.push(Entry::new(StorePath::ROOT, Ok(found), link));
        }
    }
    let is_dir = |entry: &Entry| entry.found.as_ref().is_ok_and(|found| found.kind == Kind::Dir);
    let root_is_dir = entries.iter().any(|entry| entry.path == StorePath::ROOT && is_dir(entry));
    if opened.ending != Ending::Name && !root_is_dir {
        return Err(StoreError::new("list", &opened.path, ErrorKind::NotDir));
    }
    if args.places && store.abilities().replicas && !args.recursive {
        find_places(store, &root, &mut entries);
    }
    Ok(entries)
}

/// The path below `root`.
fn below(root: &StorePath, path: &StorePath) -> Option<StorePath> {
    let rest = path.as_bytes().strip_prefix(root.as_bytes())?;
    StorePath::new(rest.strip_prefix(b"/").unwrap_or(rest)).ok()
}

/// Whether a name on the path begins with a dot.
fn is_hidden(path: &StorePath) -> bool {
    path.names().any(|name| name.starts_with(b"."))
}

/// Adds the entries of a directory.
fn list(
    store: &dyn Store,
    root: &StorePath,
    args: &LsArgs,
    entries: &mut Vec<Entry>,
) -> Result<()> {
    let mut after: Option<Cursor> = None;
    loop {
        let page = store.list(root, after.as_ref(), PAGE_ENTRIES)?;
        for item in page.items {
            if !args.all && item.name.as_bytes().starts_with(b".") {
                continue;
            }
            let Ok(path) = root.join(&item.name) else {
                entries.push(Entry::of_bad_name(root));
                continue;
            };
            let is_link = item.found.kind == Kind::Link && (args.long || args.is_for_program());
            let link = is_link.then(|| store.read_link(&path)).and_then(Result::ok);
            let path = below(root, &path).unwrap_or_default();
            entries.push(Entry::new(path, Ok(item.found), link));
        }
        if page.skipped > 0 {
            entries.push(Entry::of_bad_name(root));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// Asks for the places of all files, many at once.
fn find_places(store: &dyn Store, root: &StorePath, entries: &mut [Entry]) {
    let share = entries.len().div_ceil(THREADS).max(1);
    thread::scope(|scope| {
        for some in entries.chunks_mut(share) {
            scope.spawn(move || {
                for entry in some {
                    let is_file = entry.found.as_ref().is_ok_and(|found| found.kind == Kind::File);
                    let names = [root.as_bytes(), entry.path.as_bytes()];
                    let names = names.into_iter().filter(|names| !names.is_empty());
                    let path = StorePath::new(&names.collect::<Vec<_>>().join(&b'/'));
                    if is_file && let Ok(path) = path {
                        match store.places(&path) {
                            Ok(places) => entry.places = places,
                            Err(error) => entry.found = Err(error),
                        }
                    }
                }
            });
        }
    });
}

#[cfg(test)]
mod tests;
