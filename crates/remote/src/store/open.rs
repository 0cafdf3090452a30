//! An open file of a daemon. The daemon keeps nothing open: each request names the file that is meant.

use super::{RemoteStore, answer, bytes};
use crate::error::RemoteError;
use crate::message::{Edit, Piece, SMALL_BYTES_MAX, Seen};
use crate::store::flow::Flow;
use hikyaku_store::{
    Ability, Access, Doing, ErrorKind, Extent, Found, Open, Result, StorePath, SyncScope, doing,
};
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// See the head of this file.
pub(super) struct RemoteOpen {
    store: RemoteStore,
    path: StorePath,
    access: Access,
    /// The metadata with which it was opened.
    opened: Found,
}

/// The answer to a request for a piece.
type Coming = Receiver<std::result::Result<Vec<u8>, RemoteError>>;

impl RemoteOpen {
    pub(super) fn new(store: RemoteStore, path: StorePath, access: Access, opened: Found) -> Self {
        Self { store, path, access, opened }
    }

    const fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    /// The metadata of the path, if it is still this file.
    fn look(&self, doing: Doing<'_>) -> Result<Found> {
        let found = doing.or(self.store.client().look(&self.path).map_err(of_open))?;
        match found.identity == self.opened.identity {
            true => Ok(found),
            false => doing.fail(ErrorKind::Gone),
        }
    }

    /// The size and time that the bytes must belong to: those of the file when it was opened, or its present ones if this
    /// handle may change it.
    fn seen(&self, doing: Doing<'_>) -> Result<Seen> {
        match self.access {
            Access::Read => Ok(Seen::from(&self.opened)),
            Access::Update => self.look(doing).map(|found| Seen::from(&found)),
        }
    }

    /// Whether the file, of which nothing is left to be read, is still the one that was opened.
    fn check(&self, doing: Doing<'_>, seen: Seen) -> Result<()> {
        let found = match self.look(doing) {
            Err(error) if error.kind == ErrorKind::Gone => return doing.fail(ErrorKind::Changed),
            found => found?,
        };
        match Seen::from(&found) == seen {
            true => Ok(()),
            false => doing.fail(ErrorKind::Changed),
        }
    }

    fn request(&self, seen: Seen, range: Range<u64>) -> Coming {
        let (say, hear) = channel();
        let length = (range.end - range.start) as u32;
        let piece = Piece { path: bytes(&self.path), seen, from: range.start, length };
        // There is no receiver if the reader has ended.
        self.store.client().piece_then(piece, move |piece| drop(say.send(piece)));
        hear
    }

    fn may_write(&self, doing: Doing<'_>) -> Result<()> {
        match self.access {
            Access::Update => Ok(()),
            Access::Read => {
                doing.or(self.store.may_change())?;
                doing.fail(ErrorKind::Unsupported(Ability::Update))
            }
        }
    }
}

/// The reason for this handle: the name that it was opened by is that of no file, or of another one.
fn of_open(error: RemoteError) -> ErrorKind {
    match ErrorKind::from(error) {
        ErrorKind::NotFound | ErrorKind::NotDir | ErrorKind::IsDir | ErrorKind::Link => {
            ErrorKind::Gone
        }
        kind => kind,
    }
}

impl Open for RemoteOpen {
    fn found(&self) -> Result<Found> {
        self.look(self.doing("look at"))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let mut filled = 0;
        let end = at.saturating_add(into.len() as u64);
        self.stream(at..end, &mut |bytes| {
            into[filled..filled + bytes.len()].copy_from_slice(bytes);
            filled += bytes.len();
            ControlFlow::Continue(())
        })?;
        Ok(filled)
    }

    /// Pieces are requested ahead: as many as the server sends in two round trips and a second.
    fn stream(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        let doing = self.doing("read");
        let seen = self.seen(doing)?;
        let end = range.end.min(seen.size);
        if range.start >= end {
            return self.check(doing, seen).map(|()| 0);
        }
        let begin = Instant::now();
        let mut flow = Flow::new(self.store.client().round_trip(), begin.elapsed());
        let mut coming: VecDeque<(u64, Coming)> = VecDeque::new();
        let (mut next, mut at) = (range.start, range.start);
        while at < end {
            while next < end && flow.has_room() {
                let length = (end - next).min(SMALL_BYTES_MAX);
                coming.push_back((length, self.request(seen, next..next + length)));
                flow.sent(length, begin.elapsed());
                next += length;
            }
            let Some((length, piece)) = coming.pop_front() else { break };
            let piece = piece.recv().unwrap_or(Err(RemoteError::Closed(None)));
            let piece = doing.or(piece.map_err(of_open))?;
            flow.answered(length, begin.elapsed());
            at += length;
            if each(&piece).is_break() {
                break;
            }
        }
        Ok(at - range.start)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let doing = self.doing("write");
        self.may_write(doing)?;
        let (say, hear) = channel();
        let places = (at..).step_by(SMALL_BYTES_MAX as usize);
        for (at, piece) in places.zip(bytes.chunks(SMALL_BYTES_MAX as usize)) {
            let (path, identity) = (self.path.as_bytes().to_vec(), self.opened.identity);
            let length = piece.len() as u64;
            let edit = Edit::Write { path, identity, at, length: length as u32 };
            let room = self.store.room().clone();
            room.take(length);
            let say = say.clone();
            self.store.client().edit_then(edit, piece, move |written| {
                room.give_back(length);
                // After an error there is no receiver any more.
                let _ = say.send(written);
            });
        }
        drop(say);
        for written in hear {
            // Another file has the name.
            let written = written.map_err(of_open).map_err(|kind| match kind {
                ErrorKind::Changed => ErrorKind::Gone,
                kind => kind,
            });
            doing.or(written)?;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let doing = self.doing("set the length");
        self.may_write(doing)?;
        self.look(doing)?;
        let edit = Edit::SetLength { path: bytes(&self.path), size: length };
        let set = answer(|done| self.store.client().edit_then(edit, &[], done));
        doing.or(set.map_err(of_open)).map(drop)
    }

    /// A daemon does not report holes.
    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        let size = self.seen(self.doing("read"))?.size;
        let data = range.start..range.end.min(size);
        Ok(if data.is_empty() { Vec::new() } else { vec![Extent::Data(data)] })
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        match self.access {
            Access::Read => Ok(()),
            Access::Update => {
                let edit = Edit::Sync { path: bytes(&self.path) };
                let synced = answer(|done| self.store.client().edit_then(edit, &[], done));
                self.doing("sync").or(synced.map_err(of_open)).map(drop)
            }
        }
    }
}
