//! The files that come of it, at the target.

use crate::fetch::Taking;
use crate::in_order::InOrder;
use hikyaku_remote::Seen;
use hikyaku_store::{Draft, ErrorKind, Finish, Make, Naming, Result, Store, StoreError, StorePath};
use hikyaku_transfer::{Geometry, Proven, SegmentHash, SegmentIndex};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// A file that is being written. Several threads may write to it.
pub(crate) struct Target {
    store: Arc<dyn Store>,
    path: StorePath,
    finish: Finish,
    geometry: Geometry,
    /// Read by who writes bytes, written by who begins, names or discards it.
    stage: RwLock<Stage>,
    proven: Mutex<Proven>,
    /// Of one that takes its bytes in order only.
    order: Option<InOrder>,
}

/// How far the file has come.
enum Stage {
    /// No byte of it has come.
    Awaited,
    /// It is being written.
    Open(Box<dyn Draft>),
    /// It has its name, or was given up.
    Over,
}

/// What follows from a segment that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Others are missing.
    GoOn,
    /// It was there already, or nothing of the file is wanted any more.
    Unwanted,
    /// It is whole.
    Whole,
}

impl Target {
    /// The file at `path` with these permission bits; `None` if it is larger than any file.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        path: StorePath,
        (seen, mode): (Seen, u32),
        taking: Taking,
    ) -> Option<Self> {
        let geometry = Geometry::new(seen.size)?;
        let (mode, modified) = (Some(mode), Some(seen.modified));
        let finish = Finish { mode, modified, ..Finish::default() };
        let (stage, proven) = (RwLock::new(Stage::Awaited), Proven::nothing(geometry));
        let order = match taking {
            Taking::AnyOrder => None,
            Taking::InOrder => Some(InOrder::default()),
        };
        Some(Self { store, path, finish, geometry, stage, proven: Mutex::new(proven), order })
    }

    /// The stage, for reading, after the draft was created.
    fn begun(&self) -> Result<RwLockReadGuard<'_, Stage>> {
        loop {
            let stage = self.stage.read().unwrap_or_else(PoisonError::into_inner);
            if !matches!(*stage, Stage::Awaited) {
                return Ok(stage);
            }
            drop(stage);
            let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
            if matches!(*stage, Stage::Awaited) {
                let make =
                    Make { size: Some(self.geometry.size()), modified: self.finish.modified };
                *stage = Stage::Open(self.store.create(&self.path, &make)?);
            }
        }
    }

    /// Writes a proven segment.
    pub(crate) fn write(
        &self,
        (index, hash): (SegmentIndex, SegmentHash),
        bytes: &[u8],
    ) -> Result<Next> {
        let Some(range) = self.geometry.range(index) else { return Ok(Next::Unwanted) };
        let lacks = |proven: &Mutex<Proven>| {
            proven.lock().unwrap_or_else(PoisonError::into_inner).lacks(index)
        };
        if !lacks(&self.proven) {
            return Ok(Next::Unwanted);
        }
        match (&*self.begun()?, &self.order) {
            (Stage::Open(draft), Some(order)) => {
                self.proven.lock().unwrap_or_else(PoisonError::into_inner).insert(index, hash);
                order.write(&**draft, range.start, bytes)?;
                let is_written = order.progress().0 == self.geometry.size();
                return Ok(if is_written { Next::Whole } else { Next::GoOn });
            }
            (Stage::Open(draft), None) => draft.write_at(range.start, bytes)?,
            (Stage::Awaited | Stage::Over, _) => return Ok(Next::Unwanted),
        }
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        let was_whole = proven.is_whole();
        proven.insert(index, hash);
        Ok(if proven.is_whole() && !was_whole { Next::Whole } else { Next::GoOn })
    }

    /// How far a stream is: bytes that it has taken, and whether it is being written to.
    pub(crate) fn progress(&self) -> Option<(u64, bool)> {
        self.order.as_ref().map(InOrder::progress)
    }

    /// Brings it to the disk and gives it its name. This makes an empty file. A stream has its name.
    pub(crate) fn finish(&self) -> Result<()> {
        if let Stage::Open(draft) = &*self.begun()? {
            self.order.as_ref().map_or(Ok(()), InOrder::wait)?;
            draft.set_len(self.geometry.size())?;
            draft.sync()?;
        }
        match self.end() {
            Some(draft) if self.order.is_none() => {
                draft.name(Naming::Replace, &self.finish).map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Removes what was written: nothing of it is wanted any more.
    pub(crate) fn give_up(&self) {
        if let Some(order) = &self.order {
            // Whoever writes to it may be held up by its reader.
            order.fail(StoreError::new("write", &self.path, ErrorKind::Gone));
        } else if let Some(draft) = self.end() {
            draft.discard();
        }
    }

    fn end(&self) -> Option<Box<dyn Draft>> {
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Open(draft) => Some(draft),
            Stage::Awaited | Stage::Over => None,
        }
    }
}
