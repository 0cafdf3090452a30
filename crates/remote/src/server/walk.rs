//! Everything below a path, told in portions.

use super::requests::Teller;
use crate::message::{Entry, Reply};
use hikyaku_reach::TalkError;
use hikyaku_store::{ErrorKind, Found, Kind, Result, Store, StorePath};
use std::collections::VecDeque;

/// Names of a directory that are read at once.
const PAGE: usize = 512;
/// Bytes of names in one message, about.
const PORTION_BYTES: usize = 64 << 10;
/// Levels of directories: a deeper tree is told up to there.
const LEVELS_MAX: usize = 2048;

/// Entries that wait to be told together.
struct Portion<'a> {
    teller: &'a Teller,
    entries: Vec<Entry>,
    bytes: usize,
}

impl Portion<'_> {
    fn add(&mut self, entry: Entry) -> std::result::Result<(), TalkError> {
        // Metadata takes about as much as a path of this length.
        self.bytes += entry.path.len() + entry.link.as_ref().map_or(0, Vec::len) + 100;
        self.entries.push(entry);
        if self.bytes >= PORTION_BYTES { self.tell() } else { Ok(()) }
    }

    fn tell(&mut self) -> std::result::Result<(), TalkError> {
        self.bytes = 0;
        match std::mem::take(&mut self.entries) {
            entries if entries.is_empty() => Ok(()),
            entries => self.teller.say(Reply::Walked(entries)),
        }
    }
}

/// Tells of `root` and everything below it. A directory that cannot be listed is told with the reason; the rest goes
/// on. Symbolic links are told with their text and not followed.
pub(super) fn walk(
    store: &dyn Store,
    root: &StorePath,
    teller: &Teller,
) -> std::result::Result<(), TalkError> {
    let found = match store.look(root) {
        Ok(found) => found,
        Err(error) => return teller.refuse(&error),
    };
    let mut portion = Portion { teller, entries: Vec::new(), bytes: 0 };
    portion.add(entry(store, root, Ok(found)))?;
    let mut dirs = VecDeque::new();
    if found.kind == Kind::Dir {
        dirs.push_back((root.clone(), 0));
    }
    while let Some((dir, level)) = dirs.pop_front() {
        let mut after = None;
        loop {
            let page = match store.list(&dir, after.as_ref(), PAGE) {
                Ok(page) => page,
                Err(error) => {
                    portion.add(entry(store, &dir, Err(error.kind)))?;
                    break;
                }
            };
            for item in page.items {
                let Ok(path) = dir.join(&item.name) else { continue };
                portion.add(entry(store, &path, Ok(item.found)))?;
                if item.found.kind == Kind::Dir && level < LEVELS_MAX {
                    dirs.push_back((path, level + 1));
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    portion.tell()?;
    teller.say(Reply::Done)
}

fn entry(
    store: &dyn Store,
    path: &StorePath,
    found: std::result::Result<Found, ErrorKind>,
) -> Entry {
    let is_link = found.is_ok_and(|found| found.kind == Kind::Link);
    let link: Option<Result<_>> = is_link.then(|| store.read_link(path));
    let path = path.as_bytes().to_vec();
    match link {
        Some(Err(error)) => Entry { path, found: Err(error.kind), link: None },
        Some(Ok(text)) => Entry { path, found, link: Some(text) },
        None => Entry { path, found, link: None },
    }
}
