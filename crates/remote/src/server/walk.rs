//! Everything below a path, told in portions.

use super::Session;
use super::requests::Teller;
use crate::message::{Entry, Reply};
use hikyaku_reach::TalkError;
use hikyaku_store::StorePath;
use std::ops::ControlFlow;

/// Bytes of names in one message, about.
const PORTION_BYTES: usize = 64 << 10;

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

/// Reports `root` and everything below it, until the client cuts the request. A directory that cannot be listed is reported
/// with the reason; the rest goes on. Symbolic links are reported with their text and not followed.
pub(super) fn walk(
    session: &Session,
    root: &StorePath,
    teller: &Teller,
) -> std::result::Result<(), TalkError> {
    let _under_way = session.gives.begin(teller.id);
    let mut portion = Portion { teller, entries: Vec::new(), bytes: 0 };
    let mut told = Ok(());
    let walked = session.store.walk(root, &mut |one| {
        let (path, found) = (one.path.as_bytes().to_vec(), one.found.map_err(|error| error.kind));
        told = portion.add(Entry { path, found, link: one.link });
        match told.is_ok() && !session.gives.is_cut(teller.id, 0) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    told?;
    portion.tell()?;
    match walked {
        Ok(()) => teller.say(Reply::Done),
        Err(error) => teller.refuse(&error),
    }
}
