//! Files that wait to be copied between two servers, and several at once (`-cc`): each helper has sessions of its own, and takes
//! one file, or a batch of small ones, after the other.

use crate::batch;
use crate::part::Wanted;
use crate::session::Session;
use crate::third::{Manner, Sink, relay};
use anyhow::{Context, Error, Result};
use hikyaku_gridftp::Facts;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Tasks that wait for a helper at most: who walks the tree waits for them.
const WAITING_MAX: usize = 256;

/// What a helper does.
pub(crate) enum Task {
    /// A file.
    One(Box<Between>),
    /// Small files.
    Batch(Vec<Between>),
}

/// A file from one server to another.
pub(crate) struct Between {
    pub(crate) from: Vec<u8>,
    pub(crate) facts: Facts,
    pub(crate) to: Vec<u8>,
    /// The mode of the file that is replaced.
    pub(crate) mode: Option<u32>,
    /// What the receiving server has told of the path, if it is one of a tree.
    pub(crate) before: Option<Facts>,
    pub(crate) names: (String, String),
    pub(crate) wanted: Wanted,
    pub(crate) manner: Manner,
}

/// Where helpers take tasks from. Clones share it.
#[derive(Clone)]
pub(crate) struct Waiting(Arc<Mutex<Receiver<Task>>>);

impl Task {
    /// Copies the files to the other server. Returns all failures.
    pub(crate) fn carry_out(self, session: &mut Session<'_>, sink: &Sink<'_>) -> Vec<Error> {
        match self {
            Self::One(file) => Vec::from_iter(file.carry_out(session, sink).err()),
            Self::Batch(files) => batch::relay_all(session, sink, files),
        }
    }
}

impl Between {
    /// Copies the file.
    pub(crate) fn carry_out(self, session: &mut Session<'_>, sink: &Sink<'_>) -> Result<()> {
        let how = (self.wanted, self.manner);
        let to = (sink, &*self.to, self.mode);
        relay(session, (&self.from, &self.facts), to, &self.names, how)
            .with_context(|| self.failure())?;
        session.show.count(|counts| counts.files += 1);
        Ok(())
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.facts.size.unwrap_or(0)
    }

    /// Its size, if all of it is to be copied under a temporary name, so that it may be one of a batch.
    pub(crate) fn bytes_of_whole(&self) -> Option<u64> {
        let is_whole = self.wanted == Wanted::Whole && self.manner == Manner::Renamed;
        self.facts.size.filter(|_| is_whole)
    }

    /// The place that an error names: the source.
    pub(crate) fn failure(&self) -> String {
        self.names.0.clone()
    }
}

/// A queue of tasks.
pub(crate) fn queue() -> (SyncSender<Task>, Waiting) {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    (sender, Waiting(Arc::new(Mutex::new(receiver))))
}

impl Waiting {
    /// The next task; `None` when there will be no more.
    pub(crate) fn next(&self) -> Option<Task> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}
