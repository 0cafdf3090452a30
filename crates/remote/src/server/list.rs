//! The entries of a directory, and of directories below it, told in portions.
//!
//! A client that lists a tree asks for one directory after the other. With a number of entries that it wants ahead, one
//! round trip tells it of many small directories.

use super::Session;
use super::leases::Leases;
use super::requests::Teller;
use crate::message::{Extent, Holder, Leased, Listed, Reply};
use hikyaku_reach::TalkError;
use hikyaku_store::{Kind, Result, Store, StorePath};
use std::collections::VecDeque;

/// Names of a directory that are read at once.
const PAGE: usize = 512;
/// Bytes of entries in one message, about.
const PORTION_BYTES: usize = 64 << 10;
/// Metadata takes about as much as a name of this length.
const METADATA_BYTES: usize = 100;
/// Entries that are told ahead, whatever the client asks for.
const AHEAD_MAX: usize = 16_384;

/// Tells the entries of `root`, then those of directories below it, breadth first, while fewer than `ahead` entries have
/// been told. A directory below `root` that cannot be listed is left out. Symbolic links are told with their text and
/// not followed.
// spec: store-list-1
pub(super) fn list(
    session: &Session,
    (root, ahead): (&StorePath, u32),
    granting: Option<Granting<'_>>,
    teller: &Teller,
) -> std::result::Result<(), TalkError> {
    let ahead = (ahead as usize).min(AHEAD_MAX);
    let store = &*session.store;
    let mut queue = VecDeque::new();
    let mut told = 0;
    let mut portion = Portion { teller, dir: root.clone(), entries: Vec::new(), bytes: 0 };
    if let Some(granting) = &granting {
        granting.lease(session, root, granting.extent, teller)?;
    }
    if let Err(error) = directory(store, &mut portion, &mut queue, &mut told)? {
        return teller.refuse(&error);
    }
    while told < ahead
        && let Some(dir) = queue.pop_front()
    {
        if let Some((leases, _)) = &session.leases
            && let Ok(found) = session.plain.look(&dir)
            && leases.excludes(session.who.get().copied(), found.identity)
        {
            // Opening the file would recall the writer's lease for a listing that may not need it.
            continue;
        }
        if let Some(granting) = &granting {
            granting.lease(session, &dir, Extent::Read, teller)?;
        }
        portion = Portion { teller, dir, entries: Vec::new(), bytes: 0 };
        // Whoever asks for it is told the reason.
        let _ = directory(store, &mut portion, &mut queue, &mut told)?;
    }
    teller.say(Reply::Done)
}

/// Leases that are granted with the listings.
pub(super) struct Granting<'a> {
    pub(super) leases: &'a Leases,
    pub(super) holder: Holder,
    /// Of the directory that was asked for.
    pub(super) extent: Extent,
}

impl Granting<'_> {
    /// Grants a lease of a directory, if that can be, and tells it before the entries.
    // spec: store-lease-1
    fn lease(
        &self,
        session: &Session,
        dir: &StorePath,
        extent: Extent,
        teller: &Teller,
    ) -> std::result::Result<(), TalkError> {
        let Ok(found) = session.plain.look(dir) else { return Ok(()) };
        match self.leases.grant(self.holder, found.identity, extent) {
            Some(lease) => {
                // What it was before the lease may have changed meanwhile.
                let found = session.plain.look(dir).unwrap_or(found);
                let dir = dir.as_bytes().to_vec();
                teller.say(Reply::Leased(Leased { dir, lease, extent, found }))
            }
            None => Ok(()),
        }
    }
}

/// Tells one directory, and puts those in it into `queue`.
fn directory(
    store: &dyn Store,
    portion: &mut Portion<'_>,
    queue: &mut VecDeque<StorePath>,
    told: &mut usize,
) -> std::result::Result<Result<()>, TalkError> {
    let mut after = None;
    loop {
        let page = match store.list(&portion.dir, after.as_ref(), PAGE) {
            Ok(page) => page,
            Err(error) => return Ok(Err(error)),
        };
        for item in page.items {
            let Ok(path) = portion.dir.join(&item.name) else { continue };
            let is_link = item.found.kind == Kind::Link;
            let link = is_link.then(|| store.read_link(&path).ok()).flatten();
            let name = item.name.as_bytes().to_vec();
            *told += 1;
            portion.add(Listed { name, found: item.found, link })?;
            if item.found.kind == Kind::Dir && queue.len() < AHEAD_MAX {
                queue.push_back(path);
            }
        }
        after = page.next;
        if after.is_none() {
            return portion.tell(true).map(Ok);
        }
    }
}

/// Entries of one directory that wait to be told together.
struct Portion<'a> {
    teller: &'a Teller,
    dir: StorePath,
    entries: Vec<Listed>,
    bytes: usize,
}

impl Portion<'_> {
    fn add(&mut self, entry: Listed) -> std::result::Result<(), TalkError> {
        self.bytes += entry.name.len() + entry.link.as_ref().map_or(0, Vec::len) + METADATA_BYTES;
        self.entries.push(entry);
        if self.bytes >= PORTION_BYTES { self.tell(false) } else { Ok(()) }
    }

    fn tell(&mut self, is_last: bool) -> std::result::Result<(), TalkError> {
        self.bytes = 0;
        let entries = std::mem::take(&mut self.entries);
        let dir = self.dir.as_bytes().to_vec();
        self.teller.say(Reply::Listed { dir, entries, is_last })
    }
}
