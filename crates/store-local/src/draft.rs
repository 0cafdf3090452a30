//! Drafts in a local directory.

use crate::convert::{self, found, set_attributes};
use crate::open::read;
use hikyaku_fs::{Manner, Meta, Zeros};
use hikyaku_store::{
    Ability, Doing, Draft, ErrorKind, Finish, Found, Make, Naming, Note, Result, StoreError,
    StorePath, Time, Token, doing,
};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::sync::{Mutex, PoisonError};

/// A draft: a temporary file in the directory of its final name.
pub(crate) struct LocalDraft {
    pub(crate) inner: hikyaku_fs::Draft,
    pub(crate) path: StorePath,
    new_mode: u32,
    /// It is dropped after the draft.
    note: Mutex<Option<Note>>,
}

impl LocalDraft {
    pub(crate) fn new(
        inner: hikyaku_fs::Draft,
        path: StorePath,
        new_mode: u32,
        make: &Make,
    ) -> Self {
        if let Some(size) = make.size.filter(|size| *size > 0) {
            let reserve = |file: &std::fs::File| {
                // Preallocation is optional, so its failure is ignored. The write itself reports a
                // full disk.
                let _ = fallocate(file, FallocateFlags::KEEP_SIZE, 0, size);
                Ok(())
            };
            let _ = inner.with(reserve);
        }
        Self { inner, path, new_mode, note: Mutex::default() }
    }

    /// The draft, with its record.
    pub(crate) fn noted(self, note: Option<Note>) -> Self {
        Self { note: Mutex::new(note), ..self }
    }

    /// Sets the owner, then the mode (a change of owner clears bits of it, chown(2)), then
    /// attributes and time. A device or FIFO keeps its own.
    pub(crate) fn set_metadata(&self, doing: Doing<'_>, finish: &Finish) -> Result<()> {
        if self.inner.manner() == Manner::Stream {
            return Ok(());
        }
        let mode = finish.mode.unwrap_or(self.new_mode);
        if let Some(owner) = finish.owner {
            doing.or(self.inner.with(|file| Meta::set_owner(file, convert::owner(owner))))?;
        }
        let mut attributes = Ok(());
        doing.or(self.inner.with(|file| {
            attributes = set_attributes(doing, file, &finish.attributes);
            Ok(())
        }))?;
        attributes?;
        doing.or(self.inner.with(|file| Meta::set_mode(file, mode)))?;
        let time = finish.modified.map(convert::time);
        time.map_or(Ok(()), |time| doing.or(self.inner.with(|file| Meta::set_modified(file, time))))
    }

    /// Gives it its name, with the metadata that it has.
    pub(crate) fn rename(&self, doing: Doing<'_>, replace: hikyaku_fs::Replace) -> Result<Found> {
        match doing.or(self.inner.name(replace))? {
            Some(meta) => Ok(found(&meta)),
            // Another process has removed it.
            None => doing.fail(ErrorKind::Gone),
        }
    }

    /// Whether the present file of the name may be replaced under `naming`. Another process may
    /// change it between this check and the rename.
    fn check(&self, naming: Naming, doing: Doing<'_>) -> Result<hikyaku_fs::Replace> {
        match naming {
            Naming::Replace => Ok(hikyaku_fs::Replace::Allowed),
            Naming::IfAbsent => Ok(hikyaku_fs::Replace::Refused),
            Naming::IfVersion(wanted) => {
                let name = self.path.split().map(|(_, name)| name);
                let old = name.map(|name| self.inner.dir().meta(&name));
                let old = doing.or(old.transpose())?.flatten();
                let version = old.and_then(|meta| found(&meta).version);
                match version == Some(wanted) {
                    true => Ok(hikyaku_fs::Replace::Allowed),
                    false => doing.fail(ErrorKind::Changed),
                }
            }
        }
    }
}

impl Draft for LocalDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        doing("write", &self.path).or(self.inner.write_at(at, bytes, Zeros::Written))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let doing = doing("read", &self.path);
        let mut length = Ok(0);
        doing.or(self.inner.with(|file| {
            length = doing.or(read(file, at, into));
            Ok(())
        }))?;
        length
    }

    fn set_len(&self, length: u64) -> Result<()> {
        doing("set the length", &self.path).or(self.inner.set_length(length))
    }

    fn token(&self) -> Token {
        Token(self.inner.partial().as_bytes().to_vec())
    }

    fn keep(&self) {
        self.inner.keep();
        // The draft will be resumed: it is not abandoned if this process is killed.
        self.note.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn sync(&self) -> Result<()> {
        doing("sync", &self.path).or(self.inner.sync())
    }

    fn modified(&self) -> Result<Option<Time>> {
        let meta = doing("look at", &self.path).or(self.inner.with(|file| Meta::of(file)))?;
        Ok(Some(found(&meta).modified))
    }

    fn forget_cache(&self) -> Result<()> {
        doing("read", &self.path).or(self.inner.forget_cache())
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let doing = doing("name", &self.path);
        let checked = self.check(naming, doing);
        let ready = checked.and_then(|replace| {
            self.set_metadata(doing, finish)?;
            Ok(replace)
        });
        match ready.and_then(|replace| self.rename(doing, replace)) {
            Err(StoreError { kind: ErrorKind::System(raw), .. })
                if naming == Naming::IfAbsent && raw == Errno::INVAL.raw_os_error() =>
            {
                self.inner.discard();
                doing.fail(ErrorKind::Unsupported(Ability::NameIfAbsent))
            }
            Err(error) => {
                self.inner.discard();
                Err(error)
            }
            named => named,
        }
    }

    fn discard(self: Box<Self>) {
        self.inner.discard();
    }
}
