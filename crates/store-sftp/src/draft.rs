//! Drafts: files beside their final names.

use crate::convert::{found, kind, reason, times};
use crate::put::dir_of;
use crate::reading::Reading;
use crate::settle::Reached;
use crate::store::Sftp;
use hikyaku_fs::{Name, Token as Partial};
use hikyaku_sftp::{Attributes, Extension, Handle, Request, Stream, Ticket};
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Growing, Kind, Make, Naming, Replace, Result,
    StorePath, Token, doing,
};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Permission bits of a draft: other users cannot read an unfinished file.
pub(crate) const DRAFT_MODE: u32 = 0o600;
/// Permission bits of a file for which the caller names none, as under a umask of 022.
const NEW_MODE: u32 = 0o644;

/// A larger file is synced by itself: others need not wait for its bytes.
const TOGETHER_BYTES_MAX: u64 = 1 << 20;

/// A draft.
pub(crate) struct SftpDraft {
    store: Sftp,
    path: StorePath,
    token: Token,
    /// The server's path of the draft.
    at: Vec<u8>,
    handle: Handle,
    medium: Medium,
    state: Mutex<State>,
}

/// The kind of file that takes the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    File,
    /// A FIFO or a device, which keeps its metadata and cannot be synced.
    Stream,
}

struct State {
    /// Requests whose answers were not awaited, in their order, each with the bytes that it writes.
    under_way: VecDeque<(usize, Ticket)>,
    /// The bytes of all of them.
    bytes: usize,
    /// The length of the file when they are done.
    length: u64,
    /// Why one of them failed. Every later call fails for the same reason.
    failed: Option<ErrorKind>,
    /// A handle is closed once: the server may give its number to another file.
    handle: HandleState,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandleState {
    Open,
    Closed,
}

/// The state of a draft after it is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Removed,
    Kept,
    /// It has its name.
    Named,
}

impl SftpDraft {
    pub(crate) fn create(store: &Sftp, doing: Doing<'_>, make: &Make) -> Result<Self> {
        let path = doing.path();
        doing.or(Sftp::is_new(path))?;
        doing.or(store.looked_above(path).above(path))?;
        let (token, partial) = doing.or(store.partial(path))?;
        let at = store.at(&partial);
        let flags = Request::READ | Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
        let mode = Some(draft_mode(make.mode));
        let attributes = Attributes { mode, ..Attributes::default() };
        let handle = store.inner.client.open(&Request::Open { path: &at, flags, attributes });
        let handle = doing.or(handle.map_err(|failed| store.why_no_draft(path, &failed)))?;
        Ok(Self::new(store, path, token, (at, handle), 0))
    }

    /// The file under its own name.
    pub(crate) fn grown(
        store: &Sftp,
        doing: Doing<'_>,
        (make, growing): (&Make, Growing),
    ) -> Result<Self> {
        let path = doing.path();
        doing.or(Sftp::is_new(path))?;
        doing.or(store.looked_above(path).above(path))?;
        let (at, (_, name)) = (store.at(path), doing.or(path.split().ok_or(ErrorKind::IsDir))?);
        let anew = Request::WRITE | Request::CREATE | Request::TRUNCATE;
        let (flags, mode, length) = match growing {
            Growing::Anew => (anew, make.mode, 0),
            Growing::Behind(length) => (Request::READ | Request::WRITE, None, length),
        };
        let attributes = Attributes { mode, ..Attributes::default() };
        let handle = store.inner.client.open(&Request::Open { path: &at, flags, attributes });
        let handle = doing.or(handle.map_err(|failed| store.why_not_used(path, &failed)))?;
        let token = Token(name.as_bytes().to_vec());
        let draft = Self::new(store, path, token, (at, handle), length);
        draft.state().end = End::Kept;
        Ok(draft)
    }

    /// The FIFO or device of this name. The server appends to a FIFO, since it cannot go to an offset of it.
    pub(crate) fn stream(store: &Sftp, doing: Doing<'_>, stream: Stream) -> Result<Self> {
        let path = doing.path();
        let (at, (_, name)) = (store.at(path), doing.or(path.split().ok_or(ErrorKind::IsDir))?);
        let (client, attributes) = (&store.inner.client, Attributes::default());
        let flags = match stream {
            Stream::Fifo => Request::WRITE | Request::APPEND,
            Stream::Device => Request::WRITE,
        };
        let handle = client.open(&Request::Open { path: &at, flags, attributes });
        let handle = doing.or(handle.map_err(|failed| store.why_not_used(path, &failed)))?;
        let token = Token(name.as_bytes().to_vec());
        let mut draft = Self::new(store, path, token, (at, handle), 0);
        draft.medium = Medium::Stream;
        draft.state().end = End::Kept;
        Ok(draft)
    }

    /// Whether the file has its name while it is written.
    fn has_name(&self) -> bool {
        self.at == self.store.at(&self.path)
    }

    pub(crate) fn take_up(store: &Sftp, doing: Doing<'_>, token: &Token) -> Result<Self> {
        let path = doing.path();
        doing.or(Sftp::is_new(path))?;
        let partial = path.split().and_then(|(dir, name)| {
            let partial = Name::new(&token.0).ok()?;
            Partial::is_partial_of(&partial, &name).then(|| dir.join(&partial).ok())?
        });
        let Some(partial) = partial else { return doing.fail(ErrorKind::NotFound) };
        let at = store.at(&partial);
        if !store.drafts().insert(at.clone()) {
            return doing.fail(ErrorKind::Busy);
        }
        let opened = (|| {
            let looked = store.looked([&partial]).entry(&partial)?;
            if kind(&looked) != Some(Kind::File) {
                return Err(ErrorKind::NotFound);
            }
            let (flags, attributes) = (Request::READ | Request::WRITE, Attributes::default());
            let opening = Request::Open { path: &at, flags, attributes };
            let handle = store.inner.client.open(&opening);
            Ok((looked, handle.map_err(|failed| store.why_not_used(&partial, &failed))?))
        })();
        let (looked, handle) = doing.or(opened.inspect_err(|_| {
            store.drafts().remove(&at);
        }))?;
        Ok(Self::new(store, path, token.clone(), (at, handle), looked.size.unwrap_or(0)))
    }

    fn new(
        store: &Sftp,
        path: &StorePath,
        token: Token,
        (at, handle): (Vec<u8>, Handle),
        length: u64,
    ) -> Self {
        store.drafts().insert(at.clone());
        store.inner.ahead.clear();
        let state = State {
            under_way: VecDeque::new(),
            bytes: 0,
            length,
            failed: None,
            handle: HandleState::Open,
            end: End::Removed,
        };
        let (store, path, state) = (store.clone(), path.clone(), Mutex::new(state));
        Self { store, path, token, at, handle, medium: Medium::File, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for requests that are under way until those left `are_few`.
    fn settle_until(
        &self,
        state: &mut State,
        are_few: impl Fn(&State) -> bool,
    ) -> std::result::Result<(), ErrorKind> {
        let client = &self.store.inner.client;
        while !are_few(state)
            && let Some((bytes, ticket)) = state.under_way.pop_front()
        {
            state.bytes -= bytes;
            if let Err(failed) = client.is_done(ticket)
                && state.failed.is_none()
            {
                state.failed = Some(self.store.why_not_written(&failed));
            }
        }
        state.failed.map_or(Ok(()), Err)
    }

    /// Waits for all requests that are under way.
    fn settle(&self, state: &mut State) -> std::result::Result<(), ErrorKind> {
        self.settle_until(state, |_| false)
    }

    /// Gives the file its metadata and its name.
    fn named(&self, naming: Naming, finish: &Finish) -> std::result::Result<Found, ErrorKind> {
        let store = &self.store;
        let (owner, mut rest) = metadata(finish)?;
        // The protocol has no versions: none equals the wanted one.
        let replace = match naming {
            Naming::Replace => Replace::Allowed,
            Naming::IfAbsent => Replace::Never,
            Naming::IfVersion(_) => return Err(ErrorKind::Changed),
        };
        let (client, handle) = (&store.inner.client, self.handle.bytes());
        let owned = owner.map(|owner| client.ask(&Request::FSetStat(handle, owner)));
        if let Some(lent) = lent(finish).filter(|_| !self.has_name()) {
            let made = client.attributes(&Request::FStat(handle));
            let made = made.map_err(|failed| store.why_not_written(&failed))?;
            rest.mode = made.mode.map(|mode| mode & 0o777 & !lent);
        }
        let set =
            (rest != Attributes::default()).then(|| client.ask(&Request::FSetStat(handle, rest)));
        let looked = client.ask(&Request::FStat(handle));
        let closed = client.ask(&Request::Close(handle));
        let mut state = self.state();
        state.handle = HandleState::Closed;
        let written = self.settle(&mut state);
        drop(state);
        let owned = owned.map_or(Ok(()), |owned| client.is_done(owned));
        let set = set.map_or(Ok(()), |set| client.is_done(set));
        let looked = client.answer(looked).attributes();
        let closed = client.is_done(closed);
        written?;
        let done = owned.and(set).and(closed).and(looked);
        let attributes = done.map_err(|failed| store.why_not_written(&failed))?;
        if !self.has_name() {
            let to = store.at(&self.path);
            let renamed = client.done(&store.renaming(&self.at, &to, replace));
            renamed.map_err(|failed| {
                store.why_not_named(&self.path, Some(Kind::File), replace, &failed)
            })?;
        }
        self.state().end = End::Named;
        let modified = finish.modified.map(|time| time.secs);
        found(&self.path, &attributes, modified).ok_or(ErrorKind::Unexplained)
    }
}

/// The bits with which a draft is made: this user can resume it. The server removes those of its umask.
pub(crate) fn draft_mode(made: Option<u32>) -> u32 {
    made.map_or(DRAFT_MODE, |mode| mode & 0o777 | DRAFT_MODE)
}

/// Bits that a file has only as a draft, if it keeps the others.
pub(crate) fn lent(finish: &Finish) -> Option<u32> {
    let lent = DRAFT_MODE & !finish.made.filter(|_| finish.mode.is_none())?;
    (lent != 0).then_some(lent)
}

/// The owner, and mode and times, that a draft gets. The owner comes first: a change of it clears bits of the mode
/// (chown(2)).
pub(crate) fn metadata(
    finish: &Finish,
) -> std::result::Result<(Option<Attributes>, Attributes), ErrorKind> {
    if !finish.attributes.is_empty() {
        return Err(ErrorKind::Unsupported(Ability::Attributes));
    }
    let owner = finish.owner.map(|owner| Attributes {
        owner: Some((owner.user, owner.group)),
        ..Attributes::default()
    });
    let rest = Attributes {
        mode: match (finish.mode, finish.made) {
            (Some(mode), _) => Some(mode & 0o7777),
            (None, Some(_)) => None,
            (None, None) => Some(NEW_MODE),
        },
        times: finish.modified.map(times).transpose()?,
        ..Attributes::default()
    };
    Ok((owner, rest))
}

impl Draft for SftpDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let doing = doing("write", &self.path);
        let (client, block) = (&self.store.inner.client, self.store.block());
        // Requests of one call follow each other: of two calls for one range one remains.
        let mut state = self.state();
        for (number, data) in (0..).zip(bytes.chunks(block.write)) {
            let has_room =
                |state: &State| block.has_room((state.under_way.len(), state.bytes), data.len());
            doing.or(self.settle_until(&mut state, has_room))?;
            let offset = at + number * block.write as u64;
            let write = Request::Write { handle: self.handle.bytes(), offset, data };
            state.under_way.push_back((data.len(), client.ask(&write)));
            state.bytes += data.len();
        }
        state.length = state.length.max(at.saturating_add(bytes.len() as u64));
        Ok(())
    }

    /// A server does the requests for one file in their order (section 4.1 of the draft), so the writes are not awaited.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let (inner, mut done) = (&self.store.inner, 0);
        let range = at..at.saturating_add(into.len() as u64);
        let passed = &mut |bytes: &[u8]| {
            into[done..done + bytes.len()].copy_from_slice(bytes);
            done += bytes.len();
            ControlFlow::Continue(())
        };
        let (client, held, blocks) = (&inner.client, &inner.held, self.store.block());
        let file = Reading { client, handle: &self.handle, blocks, held };
        let read = file.read(range, passed);
        doing("read", &self.path).or(read.map_err(|failed| reason(&failed)))?;
        Ok(done)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let mut state = self.state();
        if state.length != length {
            let attributes = Attributes { size: Some(length), ..Attributes::default() };
            let set = Request::FSetStat(self.handle.bytes(), attributes);
            state.under_way.push_back((0, self.store.inner.client.ask(&set)));
            state.length = length;
        }
        doing("set the length", &self.path).or(state.failed.map_or(Ok(()), Err))
    }

    fn token(&self) -> Token {
        self.token.clone()
    }

    fn keep(&self) {
        self.state().end = End::Kept;
    }

    fn sync(&self) -> Result<()> {
        let client = &self.store.inner.client;
        let mut state = self.state();
        if self.medium == Medium::Stream {
            return doing("write", &self.path).or(self.settle(&mut state));
        }
        let paths = [&self.at[..]].into_iter();
        if state.length < TOGETHER_BYTES_MAX
            && let Some(settling) = self.store.settling(paths)
        {
            doing("sync", &self.path).or(self.settle(&mut state))?;
            if settling.settle([dir_of(&self.at)]) == Reached::Disk {
                return Ok(());
            }
        }
        if client.version().has(Extension::Sync) {
            state.under_way.push_back((0, client.ask(&Request::Sync(self.handle.bytes()))));
        }
        doing("sync", &self.path).or(self.settle(&mut state))
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let named = self.named(naming, finish);
        if named.is_err() {
            let mut state = self.state();
            state.end = match state.end {
                End::Named => End::Named,
                _ if self.has_name() => End::Kept,
                _ => End::Removed,
            };
        }
        doing("name", &self.path).or(named)
    }

    fn discard(self: Box<Self>) {
        self.state().end = if self.has_name() { End::Kept } else { End::Removed };
    }
}

impl Drop for SftpDraft {
    fn drop(&mut self) {
        let State { handle, end, .. } = *self.state();
        let client = &self.store.inner.client;
        let closed =
            (handle == HandleState::Open).then(|| client.ask(&Request::Close(self.handle.bytes())));
        if self.has_name() {
            // Writes that are under way are not awaited: the server carries them out while the connection lasts.
            self.store.drafts().remove(&self.at);
            return;
        }
        let removed = (end == End::Removed).then(|| client.ask(&Request::Remove(&self.at)));
        // A failure has no effect but that the draft is a leftover.
        for ticket in [closed, removed].into_iter().flatten() {
            let _ = client.is_done(ticket);
        }
        self.store.drafts().remove(&self.at);
    }
}
