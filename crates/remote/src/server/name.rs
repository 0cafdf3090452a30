//! Uploaded files that are whole: they are brought to the disk and get their names, several at a time.

use super::requests::Teller;
use crate::message::{NewFile, Reply, Taken};
use hikyaku_store::{Draft, Finish, Found, Make, Result, Store, StorePath};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A file all of whose bytes are here.
pub(super) struct Whole {
    pub(super) content: Content,
    pub(super) file: NewFile,
    pub(super) path: StorePath,
    pub(super) teller: Teller,
}

/// Where its bytes are.
pub(super) enum Content {
    /// In a draft.
    Draft(Box<dyn Draft>),
    /// In memory.
    Bytes(Vec<u8>),
}

/// The files of one client that wait for their names.
#[derive(Default)]
pub(crate) struct Naming {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Whole>,
    is_over: bool,
}

/// Files that wait. More are not taken from the client, which holds up its stream.
const WAITING_MAX: usize = 32;
/// Permission bits that a client may set on a file: no set-id bits, which would grant rights of others.
const MODE: u32 = 0o777;

impl Naming {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a file, once there is room for it. After the end it is dropped.
    pub(super) fn put(&self, whole: Whole) {
        let mut state = self.state();
        while state.waiting.len() >= WAITING_MAX && !state.is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.is_over {
            state.waiting.push_back(whole);
            self.changed.notify_all();
        }
    }

    /// The connection has ended: nobody would hear of a name.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_all();
        drop(dropped);
    }

    /// What a thread does that names files.
    pub(super) fn work(&self, store: &dyn Store) {
        loop {
            let mut state = self.state();
            let Whole { content, file, path, teller } = loop {
                if state.is_over {
                    return;
                }
                if let Some(whole) = state.waiting.pop_front() {
                    break whole;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            self.changed.notify_all();
            let named = match content {
                Content::Draft(draft) => name(draft, &file),
                Content::Bytes(bytes) => small(store, &path, &file, &bytes),
            };
            // A client that has gone is not told.
            let _ = match named {
                Ok(found) => teller.say(Reply::Looked(found)),
                Err(error) => teller.refuse(&error),
            };
        }
    }
}

fn small(store: &dyn Store, path: &StorePath, file: &NewFile, bytes: &[u8]) -> Result<Found> {
    let draft = store.create(path, &Make { size: Some(file.size), ..Make::default() })?;
    if !bytes.is_empty() {
        draft.write_at(0, bytes)?;
    }
    name(draft, file)
}

/// Brings the file to the disk and gives it its name. An error leaves neither.
// spec: store-put-4
fn name(draft: Box<dyn Draft>, file: &NewFile) -> Result<Found> {
    draft.set_len(file.size)?;
    draft.sync()?;
    let naming = match file.taken {
        Taken::Replaced => hikyaku_store::Naming::Replace,
        Taken::Kept => hikyaku_store::Naming::IfAbsent,
        Taken::ReplacedIf(version) => hikyaku_store::Naming::IfVersion(version),
    };
    let mode = file.mode.map(|mode| mode & MODE);
    draft.name(naming, &Finish { mode, modified: file.modified, ..Finish::default() })
}
