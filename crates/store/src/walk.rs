//! Walks: everything at and below a path, in one call.

use crate::error::{ErrorKind, Result, StoreError};
use crate::found::{Found, Kind};
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
    /// An entry of which a store knows no replicas and no content.
    pub fn new(path: StorePath, found: Result<Found>, link: Option<Vec<u8>>) -> Self {
        Self { path, found, link, places: Vec::new(), content: None }
    }
}

/// Entries that are listed at once.
const PAGE_ENTRIES: usize = 1000;

/// Walks by listing one directory after the other: the default of [`Store::walk`].
///
/// # Errors
///
/// Those of [`Store::walk`].
pub fn walk_by_listing(
    store: &(impl Store + ?Sized),
    root: &StorePath,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<()> {
    let found = store.look(root)?;
    let mut dirs = Vec::new();
    if enter(store, (root.clone(), found), &mut dirs, each).is_break() {
        return Ok(());
    }
    while let Some(dir) = dirs.pop() {
        // All entries of a directory come before the entries of its subdirectories, which leave the stack in their order.
        let mut below = Vec::new();
        let mut after: Option<Cursor> = None;
        loop {
            let page = match store.list(&dir, after.as_ref(), PAGE_ENTRIES) {
                Ok(page) => page,
                Err(error) => {
                    if each(Entry::new(dir.clone(), Err(error), None)).is_break() {
                        return Ok(());
                    }
                    break;
                }
            };
            for item in page.items {
                let flow = match dir.join(&item.name) {
                    Ok(path) => enter(store, (path, item.found), &mut below, each),
                    Err(_) => each(unnamed(&dir)),
                };
                if flow.is_break() {
                    return Ok(());
                }
            }
            if page.skipped > 0 && each(unnamed(&dir)).is_break() {
                return Ok(());
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        below.reverse();
        dirs.append(&mut below);
    }
    Ok(())
}

/// Reports one name, and adds a directory to those that will be listed.
fn enter(
    store: &(impl Store + ?Sized),
    (path, found): (StorePath, Found),
    dirs: &mut Vec<StorePath>,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (found, link) = match found.kind {
        Kind::Link => match store.read_link(&path) {
            Ok(text) => (Ok(found), Some(text)),
            Err(error) => (Err(error), None),
        },
        Kind::Dir => {
            dirs.push(path.clone());
            (Ok(found), None)
        }
        Kind::File | Kind::Special => (Ok(found), None),
    };
    each(Entry::new(path, found, link))
}

/// A directory has names that cannot be part of a path.
fn unnamed(dir: &StorePath) -> Entry {
    Entry::new(dir.clone(), Err(StoreError::new("list", dir, ErrorKind::BadName)), None)
}
