//! Walks: everything at and below a path, in one call.

use crate::error::{ErrorKind, Result, StoreError};
use crate::found::{Found, Kind, Version};
use crate::path::StorePath;
use crate::store::{Cursor, Place, Store};
use std::ops::ControlFlow;

/// One name that a walk has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its path.
    pub path: StorePath,
    /// Its metadata, or why they cannot be read. A directory that was found and cannot be listed completely is reported a
    /// second time, with the error.
    pub found: Result<Found>,
    /// The target of a symbolic link.
    pub link: Option<Vec<u8>>,
    /// The machines that have a replica. Empty if the store has no replicas, or does not know them from its listing.
    pub places: Vec<Place>,
    /// The content of the file at the time of the walk; `None` if the listing has nothing that identifies it.
    pub content: Option<ContentToken>,
}

/// Identifies one content of a file, such as an inode number with its generation, or an entity tag. Only the store that issued
/// it can interpret it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContentToken(pub Vec<u8>);

impl Entry {
    /// An entry of which a store knows no replicas, and the content by its version only.
    pub fn new(path: StorePath, found: Result<Found>, link: Option<Vec<u8>>) -> Self {
        let file = found.as_ref().ok().filter(|found| found.kind == Kind::File);
        let content = file.and_then(|file| file.version).map(ContentToken::from);
        Self { path, found, link, places: Vec::new(), content }
    }

    /// The directory `dir` has an entry whose name cannot be part of a path.
    pub fn of_bad_name(dir: &StorePath) -> Self {
        Self::new(dir.clone(), Err(StoreError::new("list", dir, ErrorKind::BadName)), None)
    }
}

impl ContentToken {
    /// Whether it is the token of a file with this version, of a store without tokens of its own.
    pub fn is(&self, version: Version) -> bool {
        self.0 == version.0
    }
}

impl From<Version> for ContentToken {
    fn from(version: Version) -> Self {
        Self(version.0.to_vec())
    }
}

/// Entries that are listed at once.
const PAGE_ENTRIES: usize = 1000;

/// Walks by listing one directory after the other with [`Store::list`]: the default of [`Store::walk`].
///
/// # Errors
///
/// Those of [`Store::walk`].
pub fn walk_by_listing(
    store: &(impl Store + ?Sized),
    root: &StorePath,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<()> {
    let first = entry(store, root.clone(), store.look(root)?);
    walk_dirs(first, each, |dir, each| {
        let mut after: Option<Cursor> = None;
        loop {
            let page = store.list(dir, after.as_ref(), PAGE_ENTRIES)?;
            for item in page.items {
                let flow = match dir.join(&item.name) {
                    Ok(path) => each(entry(store, path, item.found)),
                    Err(_) => each(Entry::of_bad_name(dir)),
                };
                if flow.is_break() {
                    return Ok(());
                }
            }
            if page.skipped > 0 && each(Entry::of_bad_name(dir)).is_break() {
                return Ok(());
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    })
}

/// An entry with its metadata and, if it is a link, its text.
fn entry(store: &(impl Store + ?Sized), path: StorePath, found: Found) -> Entry {
    match (found.kind == Kind::Link).then(|| store.read_link(&path)) {
        Some(Ok(text)) => Entry::new(path, Ok(found), Some(text)),
        Some(Err(error)) => Entry::new(path, Err(error), None),
        None => Entry::new(path, Ok(found), None),
    }
}

/// Passes on `root`, and walks below it: `list` passes the entries of one directory to the function that it gets, until that
/// breaks. All entries of a directory come before those of its subdirectories. A directory that `list` fails for is reported
/// with the error.
///
/// # Errors
///
/// None: the result is that of a walk.
pub fn walk_dirs(
    root: Entry,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    mut list: impl FnMut(&StorePath, &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()>,
) -> Result<()> {
    let is_dir = |entry: &Entry| entry.found.as_ref().is_ok_and(|found| found.kind == Kind::Dir);
    let mut dirs = Vec::new();
    if is_dir(&root) {
        dirs.push(root.path.clone());
    }
    let mut flow = each(root);
    while flow.is_continue()
        && let Some(dir) = dirs.pop()
    {
        let first = dirs.len();
        let listed = list(&dir, &mut |entry| {
            if is_dir(&entry) {
                dirs.push(entry.path.clone());
            }
            flow = each(entry);
            flow
        });
        if let (Err(error), true) = (listed, flow.is_continue()) {
            flow = each(Entry::new(dir, Err(error), None));
        }
        // Subdirectories leave the stack in the order of the listing.
        dirs[first..].reverse();
    }
    Ok(())
}
