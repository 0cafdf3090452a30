//! A file that is being written to a daemon. A small one is sent whole with its name, a larger one while it is written.

use super::{RemoteStore, answer, bytes};
use crate::client::Client;
use crate::error::RemoteError;
use crate::message::{Edit, NewFile, RequestId, SMALL_BYTES_MAX, Taken};
use crate::store::room::MESSAGE_COST;
use crate::upload::Uploads;
use hikyaku_reach::daemon::UNSIZED_UPLOADS;
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Make, Naming, Result, StorePath, Token, doing,
};
use rustix::io::Errno;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The drafts of one connection that the server has. A server closes the connection if a client has more than it allows.
pub(super) struct Drafts {
    begun: AtomicUsize,
    most: usize,
}

/// The place of a draft among them, until the server has ended the draft.
struct Place(Arc<Drafts>);

/// Drafts of a client, and those that older servers allow.
const DRAFTS_MAX: usize = 128;
const DRAFTS_MAX_OLD: usize = 16;
/// Permission bits of a large file at an older server until it gets its own ones, which come after its name.
const MODE_UNTIL_NAMED: u32 = 0o600;
/// Permission bits of a new file, for a server that needs them in the request.
const MODE_NEW: u32 = 0o644;

impl Drafts {
    /// Those of a server that takes uploads without a size, or of an older one.
    pub(super) const fn new(has_unsized: bool) -> Self {
        let most = if has_unsized { DRAFTS_MAX } else { DRAFTS_MAX_OLD };
        Self { begun: AtomicUsize::new(0), most }
    }

    fn place(self: &Arc<Self>) -> std::result::Result<Place, ErrorKind> {
        let place = Place(self.clone());
        match self.begun.fetch_add(1, Ordering::Relaxed) < self.most {
            true => Ok(place),
            false => Err(ErrorKind::Busy),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.begun.fetch_sub(1, Ordering::Relaxed);
    }
}

/// See the head of this file.
pub(super) struct RemoteDraft {
    store: RemoteStore,
    path: StorePath,
    make: Make,
    token: u64,
    writing: Mutex<Writing>,
    /// The first error of the server.
    trouble: Arc<OnceLock<RemoteError>>,
}

struct Writing {
    stage: Stage,
    /// The size that the file will have. Bytes that are not written are zeros.
    length: u64,
}

enum Stage {
    /// All bytes, which may still become a small file.
    Held(Vec<u8>),
    /// The server has the draft and its first bytes.
    Sent(Sent),
    /// It has its name, or is dropped.
    Ended,
}

struct Sent {
    uploads: Arc<Uploads>,
    id: RequestId,
    bytes: u64,
    place: Place,
}

impl RemoteDraft {
    pub(super) fn new(store: RemoteStore, path: StorePath, make: Make, token: u64) -> Self {
        let writing = Mutex::new(Writing { stage: Stage::Held(Vec::new()), length: 0 });
        Self { store, path, make, token, writing, trouble: Arc::default() }
    }

    const fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first error of the server, if there was one.
    fn check(&self) -> std::result::Result<(), ErrorKind> {
        self.trouble.get().map_or(Ok(()), |error| Err(error.clone().into()))
    }

    fn note(&self) -> impl FnOnce(std::result::Result<(), RemoteError>) + Send + 'static {
        let trouble = self.trouble.clone();
        move |done| {
            if let Err(error) = done {
                let _ = trouble.set(error);
            }
        }
    }

    /// The draft at the server, which is begun if it is not yet.
    fn sent<'a>(&self, stage: &'a mut Stage) -> std::result::Result<&'a mut Sent, ErrorKind> {
        if let Stage::Held(held) = stage {
            let held = std::mem::take(held);
            let mut sent = self.begin()?;
            self.send(&mut sent, 0, &held)?;
            *stage = Stage::Sent(sent);
        }
        match stage {
            Stage::Sent(sent) => Ok(sent),
            Stage::Held(_) | Stage::Ended => Err(ErrorKind::Gone),
        }
    }

    fn begin(&self) -> std::result::Result<Sent, ErrorKind> {
        let (uploads, place) = (self.store.uploads()?, self.store.inner.drafts.place()?);
        let id = if self.store.client().has(UNSIZED_UPLOADS) {
            // Space that the server reserves would fill holes.
            let expected = self.make.size.filter(|_| !self.make.has_holes());
            uploads.begin_unsized(&self.path, expected, self.note())
        } else {
            let size = self.make.size.ok_or(ErrorKind::of(Errno::OPNOTSUPP))?;
            let (mode, modified) = (Some(MODE_UNTIL_NAMED), self.make.modified);
            let file = NewFile { size, ..self.file(0, (mode, modified), Taken::Replaced) };
            uploads.begin(file, self.make.data.unwrap_or(size), self.note())
        };
        Ok(Sent { uploads, id, bytes: 0, place })
    }

    fn file(
        &self,
        size: u64,
        (mode, modified): (Option<u32>, Option<hikyaku_store::Time>),
        taken: Taken,
    ) -> NewFile {
        NewFile { path: bytes(&self.path), size, mode, modified, taken }
    }

    /// Sends bytes, after zeros from the end of those that were sent before.
    fn send(&self, sent: &mut Sent, at: u64, bytes: &[u8]) -> std::result::Result<(), ErrorKind> {
        let hole = at.checked_sub(sent.bytes).ok_or(ErrorKind::Unsupported(Ability::Update))?;
        if hole > 0 {
            sent.uploads.zeros(sent.id, sent.bytes, hole, self.note());
            sent.bytes = at;
        }
        for piece in bytes.chunks(SMALL_BYTES_MAX as usize) {
            self.check()?;
            let (length, room) = (piece.len() as u64, self.store.room().clone());
            room.take(length);
            let note = self.note();
            sent.uploads.bytes(sent.id, sent.bytes, piece, move |written| {
                room.give_back(length);
                note(written);
            });
            sent.bytes += length;
        }
        Ok(())
    }

    /// Sends a small file whole.
    fn name_small(&self, file: NewFile, bytes: &[u8]) -> std::result::Result<Found, ErrorKind> {
        let (uploads, room) = (self.store.uploads()?, self.store.room());
        let cost = bytes.len() as u64 + MESSAGE_COST;
        room.take(cost);
        let named = answer(|done| uploads.small(file, bytes, done));
        room.give_back(cost);
        Ok(named?)
    }

    /// Ends a draft that the server has.
    fn name_sent(
        &self,
        sent: Sent,
        taken: Taken,
        finish: &Finish,
    ) -> std::result::Result<Found, ErrorKind> {
        let Sent { uploads, id, bytes: size, place } = sent;
        if self.store.client().has(UNSIZED_UPLOADS) {
            let file = self.file(size, (finish.mode, finish.modified), taken);
            let named = answer(|done| uploads.finish_as(id, file, done));
            drop(place);
            return Ok(named?);
        }
        let named = answer(|done| uploads.finish(id, done));
        drop(place);
        named?;
        let mode = Some(finish.mode.unwrap_or(MODE_NEW));
        let edit = Edit::Change { path: bytes(&self.path), mode, modified: finish.modified };
        let changed = answer(|done| self.store.client().edit_then(edit, &[], done))?;
        changed.ok_or(ErrorKind::of(Errno::PROTO))
    }
}

/// The treatment of a file of the name, in a message to this server.
pub(super) fn taken(client: &Client, naming: Naming) -> std::result::Result<Taken, ErrorKind> {
    let has_all = client.has(UNSIZED_UPLOADS);
    match naming {
        Naming::Replace => Ok(Taken::Replaced),
        Naming::IfAbsent if has_all => Ok(Taken::Kept),
        Naming::IfVersion(version) if has_all => Ok(Taken::ReplacedIf(version)),
        // For a large draft of an older server this was reported before.
        Naming::IfAbsent | Naming::IfVersion(_) => {
            Err(ErrorKind::Unsupported(Ability::NameIfAbsent))
        }
    }
}

/// Whether a server can give a file these metadata with its name.
pub(super) fn fits(finish: &Finish) -> std::result::Result<(), ErrorKind> {
    match finish {
        Finish { owner: Some(_), .. } => Err(ErrorKind::Unsupported(Ability::Owners)),
        Finish { attributes, .. } if !attributes.is_empty() => {
            Err(ErrorKind::Unsupported(Ability::Attributes))
        }
        _ => Ok(()),
    }
}

impl Draft for RemoteDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let doing = self.doing("write");
        doing.or(self.check())?;
        let end = at.checked_add(bytes.len() as u64);
        let end = doing.or(end.ok_or(ErrorKind::TooLarge))?;
        if bytes.is_empty() {
            return Ok(());
        }
        let writing = &mut *self.writing();
        match &mut writing.stage {
            Stage::Held(held) if end <= SMALL_BYTES_MAX => {
                held.resize(held.len().max(end as usize), 0);
                held[at as usize..end as usize].copy_from_slice(bytes);
            }
            stage => {
                let sent = doing.or(self.sent(stage))?;
                // Zeros are not sent: the server makes a hole of the gap.
                if !self.make.has_holes() || bytes.iter().any(|byte| *byte != 0) {
                    doing.or(self.send(sent, at, bytes))?;
                }
            }
        }
        writing.length = writing.length.max(end);
        Ok(())
    }

    /// Of bytes that were not sent.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let writing = self.writing();
        let Stage::Held(held) = &writing.stage else {
            return self.doing("read").fail(ErrorKind::Unsupported(Ability::Update));
        };
        let length = writing.length.saturating_sub(at).min(into.len() as u64) as usize;
        let held = held.get(at.min(held.len() as u64) as usize..).unwrap_or_default();
        let copied = length.min(held.len());
        into[..copied].copy_from_slice(&held[..copied]);
        into[copied..length].fill(0);
        Ok(length)
    }

    /// Bytes that were sent cannot be removed.
    fn set_len(&self, length: u64) -> Result<()> {
        let doing = self.doing("set the length");
        doing.or(self.check())?;
        let mut writing = self.writing();
        match &mut writing.stage {
            Stage::Held(held) => held.truncate(length.min(held.len() as u64) as usize),
            Stage::Sent(sent) if length < sent.bytes => {
                return doing.fail(ErrorKind::Unsupported(Ability::Update));
            }
            Stage::Sent(_) | Stage::Ended => {}
        }
        writing.length = length;
        Ok(())
    }

    fn token(&self) -> Token {
        Token(self.token.to_le_bytes().to_vec())
    }

    /// The server drops it with the connection, so nothing is kept.
    fn keep(&self) {}

    /// The server brings the bytes to its disk before the file gets its name, and keeps none of a draft without a name. So
    /// there is nothing to wait for.
    fn sync(&self) -> Result<()> {
        self.doing("sync").or(self.check())
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let doing = self.doing("name");
        doing.or(fits(finish))?;
        let taken = doing.or(taken(self.store.client(), naming))?;
        let writing = &mut *self.writing();
        let length = writing.length;
        if let Stage::Held(held) = &mut writing.stage
            && length <= SMALL_BYTES_MAX
        {
            held.resize(length as usize, 0);
            let file = self.file(length, (finish.mode, finish.modified), taken);
            let named = doing.or(self.name_small(file, held));
            writing.stage = Stage::Ended;
            return named;
        }
        let sent = doing.or(self.sent(&mut writing.stage))?;
        doing.or(self.send(sent, length, &[]))?;
        match std::mem::replace(&mut writing.stage, Stage::Ended) {
            Stage::Sent(sent) => doing.or(self.name_sent(sent, taken, finish)),
            Stage::Held(_) | Stage::Ended => doing.fail(ErrorKind::Gone),
        }
    }

    fn discard(self: Box<Self>) {}
}

impl Drop for RemoteDraft {
    fn drop(&mut self) {
        let stage = std::mem::replace(&mut self.writing().stage, Stage::Ended);
        if let Stage::Sent(Sent { uploads, id, place, .. }) = stage {
            uploads.discard_then(id, move |_| drop(place));
        }
    }
}
