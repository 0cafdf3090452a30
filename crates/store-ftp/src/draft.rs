//! Drafts: files beside their final name. A small file is held in memory and stored by one command.

use crate::convert::{found, kind, reason};
use crate::ftp::Ftp;
use crate::held::{Held, WHOLE_BYTES_MAX};
use crate::open::read_part;
use crate::sending::Sending;
use hikyaku_fs::{Name, Token as Partial};
use hikyaku_gridftp::{Mode, Part, Rename};
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Kind, Make, Naming, Result, Store, StorePath,
    Token, doing,
};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// In stream mode these bytes are handed to the connection at once.
const BLOCK_BYTES: u64 = 1 << 20;
/// A file of unknown size, or of more bytes than this, goes through several data connections.
const LARGE_BYTES: u64 = 64 << 20;
/// Their number.
const CONNECTIONS: u32 = 4;

/// A file that has no name yet.
pub(crate) struct FtpDraft {
    ftp: Ftp,
    path: StorePath,
    /// The unfinished file at the server.
    partial: Vec<u8>,
    token: Token,
    connections: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Held,
    place: Place,
    sending: Option<Sending>,
    /// Length of the file as far as it is known: the end of the last byte, or what was set.
    length: u64,
    /// Whether the server has the unfinished file, or may have it.
    there: There,
    /// The first failure.
    failed: Option<ErrorKind>,
    fate: Fate,
}

/// Whether a dropped draft keeps its unfinished file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Fate {
    #[default]
    Removed,
    /// It is resumed later.
    Kept,
}

/// Where the bytes of a draft are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    /// All of them are in memory.
    #[default]
    Memory,
    /// Some were handed to the upload.
    Server,
}

/// The part of a draft that the server has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum There {
    #[default]
    Nothing,
    /// Some of it.
    Part,
    /// All that was written.
    Whole,
    /// It has its name, or is removed.
    Over,
}

impl FtpDraft {
    pub(crate) fn new(ftp: &Ftp, doing: Doing<'_>, make: &Make) -> Result<Self> {
        let path = doing.path();
        let Some((dir, name)) = path.split() else { return doing.fail(ErrorKind::IsDir) };
        let token = doing.or(Partial::random())?;
        let partial = doing.or(token.partial(&name))?;
        let token = Token(partial.as_bytes().to_vec());
        let partial = doing.or(dir.join(&partial).map_err(|_| ErrorKind::BadName))?;
        let full = ftp.full(&partial);
        // A name that the server cannot have is refused before anything is written.
        let checked = ftp.with(|channel| channel.check_name(&ftp.full(path)));
        doing.or(checked.map_err(|error| reason(&error)))?;
        let connections =
            if make.size.is_none_or(|size| size > LARGE_BYTES) { CONNECTIONS } else { 1 };
        ftp.drafts().insert(full.clone());
        Ok(Self {
            ftp: ftp.clone(),
            path: path.clone(),
            token,
            partial: full,
            connections,
            state: Mutex::default(),
        })
    }

    /// The draft of this token, of which the server has some bytes.
    pub(crate) fn take_up(ftp: &Ftp, doing: Doing<'_>, token: &Token) -> Result<Self> {
        let path = doing.path();
        let partial = path.split().and_then(|(dir, name)| {
            let partial = Name::new(&token.0).ok()?;
            Partial::is_partial_of(&partial, &name).then(|| dir.join(&partial).ok())?
        });
        let Some(partial) = partial else { return doing.fail(ErrorKind::NotFound) };
        let full = ftp.full(&partial);
        if !ftp.drafts().insert(full.clone()) {
            return doing.fail(ErrorKind::Busy);
        }
        let length = match ftp.with(|channel| channel.facts(&full)) {
            Ok(Some(facts)) if kind(&facts) == Kind::File => Ok(facts.size.unwrap_or(0)),
            Ok(_) => Err(ErrorKind::NotFound),
            Err(error) => Err(reason(&error)),
        };
        let length = doing.or(length.inspect_err(|_| {
            ftp.drafts().remove(&full);
        }))?;
        let (place, there) = (Place::Server, There::Part);
        let state = Mutex::new(State { place, there, length, ..State::default() });
        let (ftp, path, token) = (ftp.clone(), path.clone(), token.clone());
        Ok(Self { ftp, path, token, partial: full, connections: CONNECTIONS, state })
    }

    fn doing(&self, what: &'static str) -> Doing<'_> {
        doing(what, &self.path)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_in_order(&self) -> bool {
        self.ftp.traits().mode == Mode::Stream
    }

    /// Does a part of the work. After the first failure every call fails.
    fn attempt<T>(
        &self,
        what: &'static str,
        state: &mut State,
        work: impl FnOnce(&Self, &mut State) -> std::result::Result<T, ErrorKind>,
    ) -> Result<T> {
        let doing = self.doing(what);
        if let Some(kind) = state.failed {
            return doing.fail(kind);
        }
        let done = work(self, state);
        state.failed = done.as_ref().err().copied();
        doing.or(done)
    }

    fn write(
        &self,
        state: &mut State,
        at: u64,
        bytes: &[u8],
    ) -> std::result::Result<(), ErrorKind> {
        let end = at.checked_add(bytes.len() as u64).ok_or(ErrorKind::TooLarge)?;
        let is_held = self.is_in_order()
            || state.place == Place::Memory && end.max(state.length) <= WHOLE_BYTES_MAX;
        if is_held {
            state.held.write(at, bytes).map_err(|_| out_of_order())?;
        } else {
            self.push_written(state)?;
            self.push(state, at, bytes.to_vec())?;
        }
        state.length = state.length.max(end);
        if state.there == There::Whole {
            state.there = There::Part;
        }
        let is_large = state.place == Place::Server || state.held.end() > WHOLE_BYTES_MAX;
        if is_held && is_large && state.held.ready() >= BLOCK_BYTES {
            let (at, bytes) = state.held.take_ready();
            self.push(state, at, bytes)?;
        }
        Ok(())
    }

    /// Hands all ranges that were written to the upload, each at its offset.
    fn push_written(&self, state: &mut State) -> std::result::Result<(), ErrorKind> {
        let parts = state.held.take_written();
        parts.into_iter().try_for_each(|(at, bytes)| self.push(state, at, bytes))
    }

    /// Hands bytes to the upload, which is begun if there is none.
    fn push(
        &self,
        state: &mut State,
        at: u64,
        bytes: Vec<u8>,
    ) -> std::result::Result<(), ErrorKind> {
        if bytes.is_empty() {
            return Ok(());
        }
        (state.there, state.place) = (There::Part, Place::Server);
        let begin = || Sending::begin(&self.ftp, self.partial.clone(), at, self.connections);
        let pushed = state.sending.get_or_insert_with(begin).push((at, bytes));
        if pushed.is_ok() {
            return Ok(());
        }
        // Its thread returns the reason.
        match state.sending.take().map(Sending::finish) {
            Some(Err(error)) => Err(self.ftp.why(&self.path, &error)),
            _ => Err(ErrorKind::Unreachable),
        }
    }

    /// Sends all that is held, and waits until the server has confirmed it.
    fn finish(&self, state: &mut State) -> std::result::Result<(), ErrorKind> {
        let was = state.there;
        if was == There::Whole {
            return Ok(());
        }
        match (state.place, self.is_in_order()) {
            (Place::Memory, _) => {
                state.there = There::Part;
                self.put_whole(state.held.bytes(), was)?;
            }
            (Place::Server, true) => {
                let (at, bytes) = state.held.take_all();
                self.push(state, at, bytes)?;
            }
            (Place::Server, false) => self.push_written(state)?,
        }
        if let Some(sending) = state.sending.take() {
            sending.finish().map_err(|error| self.ftp.why(&self.path, &error))?;
        }
        state.there = There::Whole;
        Ok(())
    }

    /// Stores a file that is in memory.
    fn put_whole(&self, bytes: &[u8], was: There) -> std::result::Result<(), ErrorKind> {
        let part = Part { path: &self.partial, offset: 0, length: bytes.len() as u64 };
        let supply = |at: u64, into: &mut [u8]| {
            let start = usize::try_from(at).map_err(io::Error::other)?;
            into.copy_from_slice(&bytes[start..start + into.len()]);
            Ok(())
        };
        let put = self.ftp.with(|channel| {
            // The file of an earlier sync may be longer.
            if was != There::Nothing {
                channel.empty(&self.partial)?;
            }
            channel.put(&part, 1, &AtomicU64::new(0), supply)
        });
        put.map(drop).map_err(|error| self.ftp.why(&self.path, &error))
    }

    fn set_end(&self, state: &mut State, length: u64) -> std::result::Result<(), ErrorKind> {
        if length == state.length {
            return Ok(());
        }
        if state.place == Place::Memory || self.is_in_order() {
            state.held.set_end(length).map_err(|_| out_of_order())?;
        } else if length > state.length {
            // The bytes between are those of a hole.
            self.push(state, length - 1, vec![0])?;
        } else {
            return Err(out_of_order());
        }
        state.length = length;
        if state.there == There::Whole {
            state.there = There::Part;
        }
        Ok(())
    }

    /// Sets what the file gets before its name.
    fn set_metadata(&self, finish: &Finish) -> Result<()> {
        let doing = self.doing("name");
        finish.mode.map_or(Ok(()), |mode| {
            let set = self.ftp.set_mode(doing, &self.partial, mode);
            optional(set)
        })?;
        finish
            .modified
            .map_or(Ok(()), |time| optional(self.ftp.set_modified(doing, &self.partial, time.secs)))
    }

    /// Removes the unfinished file, unless it is kept.
    fn end(&self) {
        let state = &mut *self.state();
        let was = std::mem::replace(&mut state.there, There::Over);
        if let Some(sending) = state.sending.take() {
            // Its end is awaited, so that the file is not made after it was removed.
            let _ = sending.finish();
        }
        if state.fate == Fate::Kept {
            // The bytes in memory are stored for the next attempt.
            if was == There::Nothing && state.length > 0 {
                let _ = self.put_whole(state.held.bytes(), was);
            }
        } else if matches!(was, There::Part | There::Whole) {
            // After a failure the file stays. Its name shows that it is unfinished.
            self.ftp.remove_unfinished(&self.partial);
        }
    }
}

/// A server that has no such metadata keeps its own.
fn optional(set: Result<()>) -> Result<()> {
    set.or_else(|error| match error.kind {
        ErrorKind::Unsupported(_) => Ok(()),
        _ => Err(error),
    })
}

/// A write that the order of the store does not allow.
fn out_of_order() -> ErrorKind {
    ErrorKind::from(io::Error::from(io::ErrorKind::InvalidInput))
}

impl Draft for FtpDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let state = &mut *self.state();
        self.attempt("write", state, |draft, state| draft.write(state, at, bytes))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let state = &mut *self.state();
        self.attempt("read back", state, |draft, state| {
            let left = usize::try_from(state.length.saturating_sub(at)).unwrap_or(usize::MAX);
            let length = into.len().min(left);
            if state.place == Place::Memory {
                // Offsets below the end of what is in memory.
                let start = at.min(state.length) as usize;
                into[..length].copy_from_slice(&state.held.bytes()[start..start + length]);
                return Ok(length);
            }
            draft.finish(state)?;
            if length > 0 {
                let read = read_part(&draft.ftp, &draft.partial, at, &mut into[..length]);
                read.map_err(|error| reason(&error))?;
            }
            Ok(length)
        })
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let state = &mut *self.state();
        self.attempt("set the length of", state, |draft, state| draft.set_end(state, length))
    }

    fn token(&self) -> Token {
        self.token.clone()
    }

    fn keep(&self) {
        if self.ftp.abilities().take_up {
            self.state().fate = Fate::Kept;
        }
    }

    /// The server has confirmed the bytes. FTP has no command that brings them to the disk.
    fn sync(&self) -> Result<()> {
        let mut state = self.state();
        let mark = match &state.sending {
            Some(sending) if !self.is_in_order() && state.failed.is_none() => sending.mark(),
            _ => return self.attempt("sync", &mut state, Self::finish),
        };
        drop(state);
        // Others write meanwhile.
        if mark.wait().is_ok() {
            return Ok(());
        }
        let state = &mut *self.state();
        self.attempt("sync", state, Self::finish)
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let doing = self.doing("name");
        // Without its name it is not wanted any more.
        self.state().fate = Fate::Removed;
        match naming {
            Naming::Replace => {}
            Naming::IfAbsent => return doing.fail(ErrorKind::Unsupported(Ability::NameIfAbsent)),
            // No file has a version.
            Naming::IfVersion(_) => return doing.fail(ErrorKind::Changed),
        }
        if !finish.attributes.is_empty() {
            return doing.fail(ErrorKind::Unsupported(Ability::Attributes));
        }
        if finish.owner.is_some() {
            return doing.fail(ErrorKind::Unsupported(Ability::Owners));
        }
        let full = self.ftp.full(&self.path);
        let there = self.ftp.with(|channel| channel.facts(&full));
        // A rename would put the file in the place of a device or FIFO.
        match doing.or(there.map_err(|error| reason(&error)))?.map(|facts| kind(&facts)) {
            None | Some(Kind::File) => {}
            Some(Kind::Dir) => return doing.fail(ErrorKind::IsDir),
            Some(Kind::Link | Kind::Special) => return doing.fail(ErrorKind::SPECIAL),
        }
        self.attempt("name", &mut self.state(), Self::finish)?;
        self.set_metadata(finish)?;
        let rename = Rename { from: &self.partial, to: &full, mode: None, modified: None };
        let renamed = self.ftp.with(|channel| channel.rename(&rename));
        doing.or(renamed.map_err(|error| reason(&error)))?;
        self.state().there = There::Over;
        Ok(found(&self.ftp.facts(doing)?, &self.path))
    }

    fn discard(self: Box<Self>) {
        self.state().fate = Fate::Removed;
    }
}

impl Drop for FtpDraft {
    fn drop(&mut self) {
        self.end();
        self.ftp.drafts().remove(&self.partial);
    }
}
