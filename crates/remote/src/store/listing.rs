//! Pages of a directory. The server sends a directory whole, so what follows a page is kept until its next page is read.

use crate::calls::Listing;
use crate::client::Client;
use crate::error::RemoteError;
use hikyaku_fs::Name;
use hikyaku_store::{Cursor, Item, Page, StorePath};
use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The rests of listings that are being read. If a rest was dropped, the directory is listed again.
#[derive(Default)]
pub(super) struct Listings {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    kept: VecDeque<(u64, Vec<Item>)>,
}

/// Listings of which a rest is kept.
const KEPT_MAX: usize = 8;

impl Listings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page, as [`Store::list`](hikyaku_store::Store::list).
    pub(super) fn page(
        &self,
        client: &Client,
        dir: &StorePath,
        after: Option<&Cursor>,
        room: usize,
    ) -> Result<Page, RemoteError> {
        let (mut items, skipped) = match after.and_then(read_cursor) {
            None => entries(client, dir)?,
            Some((number, name)) => match self.take(number) {
                Some(items) => (items, 0),
                None => {
                    let (mut items, _) = entries(client, dir)?;
                    items.retain(|item| item.name.as_bytes() > name);
                    (items, 0)
                }
            },
        };
        let rest = items.split_off(items.len().min(room.max(1)));
        let next = items.last().filter(|_| !rest.is_empty()).map(|last| {
            let mut cursor = self.keep(rest).to_le_bytes().to_vec();
            cursor.extend_from_slice(last.name.as_bytes());
            Cursor(cursor)
        });
        Ok(Page { items, next, skipped })
    }

    fn take(&self, number: u64) -> Option<Vec<Item>> {
        let mut state = self.state();
        let at = state.kept.iter().position(|(kept, _)| *kept == number)?;
        state.kept.remove(at).map(|(_, items)| items)
    }

    fn keep(&self, rest: Vec<Item>) -> u64 {
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.kept.push_back((number, rest));
        if state.kept.len() > KEPT_MAX {
            state.kept.pop_front();
        }
        number
    }
}

/// The number of the kept rest, and the last name before it.
fn read_cursor(cursor: &Cursor) -> Option<(u64, &[u8])> {
    let (number, name) = cursor.0.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*number), name))
}

/// All entries of a directory by their names, and the number of names that no path can have.
fn entries(client: &Client, dir: &StorePath) -> Result<(Vec<Item>, u64), RemoteError> {
    let (say, hear) = channel();
    // After an error there is no receiver any more.
    client.list_then(dir, 0, move |listing| drop(say.send(listing)));
    let (mut items, mut skipped) = (Vec::new(), 0);
    loop {
        match hear.recv().unwrap_or(Err(RemoteError::Closed(None)))? {
            Listing::Entries { dir: of, entries, .. } if of == *dir => {
                for entry in entries {
                    match Name::new(&entry.name) {
                        Ok(name) => items.push(Item { name, found: entry.found }),
                        Err(_) => skipped += 1,
                    }
                }
            }
            Listing::Entries { .. } | Listing::Leased { .. } => {}
            Listing::End => break,
        }
    }
    items.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    items.dedup_by(|a, b| a.name == b.name);
    Ok((items, skipped))
}
