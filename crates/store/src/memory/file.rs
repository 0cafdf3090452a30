//! Open files and drafts of a store in memory.

use super::Memory;
use super::tree::Number;
use crate::abilities::Ability;
use crate::error::{ErrorKind, Result, doing};
use crate::found::Found;
use crate::path::StorePath;
use crate::store::{Access, Draft, Extent, Finish, Naming, Open, SyncScope, Token};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open file.
pub(super) struct Handle {
    store: Memory,
    path: StorePath,
    number: Number,
    access: Access,
}

impl Handle {
    /// The tree has already counted this handle as a use of the file.
    pub(super) const fn new(
        store: Memory,
        path: StorePath,
        number: Number,
        access: Access,
    ) -> Self {
        Self { store, path, number, access }
    }

    fn may_write(&self) -> Result<()> {
        match self.access {
            Access::Update => Ok(()),
            Access::Read => {
                doing("write", &self.path).fail(ErrorKind::Unsupported(Ability::Update))
            }
        }
    }
}

impl Open for Handle {
    fn found(&self) -> Result<Found> {
        Ok(self.store.lock().found(self.number))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        doing("read", &self.path).or(self.store.lock().read(self.number, at, into))
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.may_write()?;
        doing("write", &self.path).or(self.store.lock().write(self.number, at, bytes))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.may_write()?;
        doing("set the length", &self.path).or(self.store.lock().set_length(self.number, length))
    }

    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        doing("read", &self.path).or(self.store.lock().extents(self.number, range))
    }

    fn sync(&self, _scope: SyncScope) -> Result<()> {
        doing("sync", &self.path).or(self.store.lock().sync_file(self.number))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.store.lock().release(self.number);
    }
}

/// A draft.
pub(super) struct MemoryDraft {
    store: Memory,
    path: StorePath,
    number: Number,
    token: Token,
    is_kept: AtomicBool,
    is_over: bool,
}

impl MemoryDraft {
    pub(super) const fn new(store: Memory, path: StorePath, number: Number, token: Token) -> Self {
        Self { store, path, number, token, is_kept: AtomicBool::new(false), is_over: false }
    }
}

impl Draft for MemoryDraft {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        doing("write", &self.path).or(self.store.lock().write(self.number, at, bytes))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        doing("read", &self.path).or(self.store.lock().read(self.number, at, into))
    }

    fn set_len(&self, length: u64) -> Result<()> {
        doing("set the length", &self.path).or(self.store.lock().set_length(self.number, length))
    }

    fn token(&self) -> Token {
        self.token.clone()
    }

    fn keep(&self) {
        self.is_kept.store(true, Ordering::Release);
    }

    fn sync(&self) -> Result<()> {
        doing("sync", &self.path).or(self.store.lock().sync_file(self.number))
    }

    fn name(mut self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let named = self.store.lock().name_draft(&self.token, naming, finish);
        self.is_over = named.is_ok();
        doing("name", &self.path).or(named)
    }

    fn discard(mut self: Box<Self>) {
        self.store.lock().discard_draft(&self.token);
        self.is_over = true;
    }
}

impl Drop for MemoryDraft {
    fn drop(&mut self) {
        match (self.is_over, self.is_kept.load(Ordering::Acquire)) {
            (true, _) => {}
            (false, true) => self.store.lock().leave_draft(&self.token),
            (false, false) => self.store.lock().discard_draft(&self.token),
        }
    }
}
