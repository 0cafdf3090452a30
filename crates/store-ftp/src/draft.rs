//! Drafts: files beside their final name, or under it. A small file is held in memory and stored by one command.

mod begin;
mod bytes;

use crate::convert::{found, kind_behind, reason};
use crate::ftp::Ftp;
use crate::held::Held;
use crate::open::read_part;
use crate::sending::Sending;
use crate::writing::{Names, Writing};
use hikyaku_gridftp::{Mode, Rename};
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Kind, Naming, Note, Result, StorePath, Token,
    doing,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file that is being written.
pub(crate) struct FtpDraft {
    ftp: Ftp,
    path: StorePath,
    /// The unfinished file at the server.
    partial: Vec<u8>,
    token: Token,
    under: Under,
    /// Its size, if it is known.
    size: Option<u64>,
    state: Mutex<State>,
}

/// The name under which a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Under {
    /// A temporary one.
    Temporary,
    /// Its own. The written bytes stay there.
    Own,
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
    /// Bytes of it that are counted among those of small files in memory.
    counted: u64,
    /// Lets the next command remove the unfinished file if this one is killed.
    note: Option<Note>,
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

    /// Whether the stored file meets the condition.
    fn check(&self) -> std::result::Result<(), ErrorKind> {
        let Some(condition) = &self.ftp.writing().condition else { return Ok(()) };
        let size = self.state().length;
        condition.check(&self.path, size, &mut |algorithm| {
            self.ftp.with_retries(|channel| channel.checksum(algorithm, &self.partial, 0, size))
        })
    }

    /// Removes the unfinished file, unless it is kept.
    fn end(&self) {
        let state = &mut *self.state();
        self.uncount(state);
        let was = std::mem::replace(&mut state.there, There::Over);
        if let Some(sending) = state.sending.take() {
            // Its end is awaited, so that the file is not made after it was removed.
            let _ = sending.finish();
        }
        if self.under == Under::Own {
            return;
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

impl Draft for FtpDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let state = &mut *self.state();
        self.attempt("write", state, |draft, state| draft.write(state, at, bytes))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let (doing, state) = (self.doing("read back"), &mut *self.state());
        let left = usize::try_from(state.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let length = into.len().min(left);
        let into = &mut into[..length];
        self.attempt("read back", state, |draft, state| match state.place {
            Place::Memory => Ok(()),
            Place::Server => draft.finish(state),
        })?;
        if state.place == Place::Memory {
            // Offsets below the end of the bytes in memory.
            let start = at.min(state.length) as usize;
            into.copy_from_slice(&state.held.bytes()[start..start + into.len()]);
        } else if !into.is_empty() {
            // Nothing of the draft is lost by a failed read.
            let part = (&*self.partial, at);
            let read = self.ftp.with_retries(|channel| read_part(channel, part, into));
            doing.or(read.map_err(|error| reason(&error)))?;
        }
        Ok(into.len())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let state = &mut *self.state();
        self.attempt("set the length of", state, |draft, state| draft.set_end(state, length))
    }

    fn token(&self) -> Token {
        self.token.clone()
    }

    fn keep(&self) {
        let state = &mut *self.state();
        (state.fate, state.note) = (Fate::Kept, None);
    }

    /// The length at the server of a file that was written in order.
    fn stored(&self) -> Result<Option<u64>> {
        Ok(self.is_in_order().then(|| self.state().length))
    }

    /// The server has confirmed the bytes. FTP has no command that brings them to the disk. In stream mode it confirms a file
    /// at its end only, and the next command goes on at its length there.
    fn sync(&self) -> Result<()> {
        let mut state = self.state();
        let is_open = state.sending.is_some() && state.failed.is_none();
        if self.is_in_order() && is_open && self.size.is_some_and(|size| state.length < size) {
            return Ok(());
        }
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
        let refused = |error| self.ftp.refused(&self.path, error);
        let Writing { links, names, .. } = self.ftp.writing();
        if self.under == Under::Temporary && *names == Names::Unknown {
            let there = self.ftp.with_retries(|channel| channel.facts(&full));
            // A rename would put the file in the place of a device or FIFO.
            match doing.or(there.map_err(refused))?.map(|facts| kind_behind(&facts, *links)) {
                None | Some(Kind::File) => {}
                Some(Kind::Dir) => return doing.fail(ErrorKind::IsDir),
                Some(Kind::Link | Kind::Special) => return doing.fail(ErrorKind::SPECIAL),
            }
        }
        self.attempt("name", &mut self.state(), Self::finish)?;
        doing.or(self.check())?;
        self.set_metadata(finish)?;
        if self.under == Under::Temporary {
            let rename = Rename { from: &self.partial, to: &full, mode: None, modified: None };
            let renamed = self.ftp.with_retries(|channel| channel.rename(&rename));
            doing.or(renamed.map_err(refused))?;
        }
        self.state().there = There::Over;
        let facts = self.ftp.with_retries(|channel| channel.facts(&full));
        match doing.or(facts.map_err(refused))? {
            Some(facts) => Ok(found(&facts, &self.path)),
            None => doing.fail(ErrorKind::Gone),
        }
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
