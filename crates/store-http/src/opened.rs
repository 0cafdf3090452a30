//! The files of a server that are open. The requests of one large file share one.

use crate::open::HttpOpen;
use crate::shared::lock;
use hikyaku_store::Wanted;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Files that stay open.
const OPEN_MAX: usize = 64;

/// The files, the latest one behind.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<VecDeque<(Wanted, Arc<Slot>)>>);

/// A file, once a thread has opened it.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<Arc<HttpOpen>>>);

/// The state of a file.
pub(crate) enum State<'a> {
    Open(Arc<HttpOpen>),
    /// The caller opens it and puts it here. Others wait for that.
    Closed(MutexGuard<'a, Option<Arc<HttpOpen>>>),
    /// Another thread is opening it.
    UnderWay,
}

impl OpenFiles {
    pub(crate) fn slot(&self, file: &Wanted) -> Arc<Slot> {
        let mut all = lock(&self.0);
        if let Some((_, slot)) = all.iter().find(|(other, _)| other == file) {
            return slot.clone();
        }
        if all.len() >= OPEN_MAX {
            all.pop_front();
        }
        let slot = Arc::<Slot>::default();
        all.push_back((file.clone(), slot.clone()));
        slot
    }

    pub(crate) fn forget(&self, file: &Wanted) {
        lock(&self.0).retain(|(other, _)| other != file);
    }
}

impl Slot {
    pub(crate) fn state(&self) -> State<'_> {
        let slot = match self.0.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return State::UnderWay,
        };
        match &*slot {
            Some(open) => State::Open(open.clone()),
            None => State::Closed(slot),
        }
    }
}
