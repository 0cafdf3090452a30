//! Files that wait to be copied, and several at once (`-cc`): each helper has sessions of its own, and takes one file, or a
//! batch of small ones, after the other.

use crate::batch;
use crate::download::Wanted;
use crate::finished::{Finished, When};
use crate::session::Session;
use crate::third::{Sink, relay};
use crate::upload::{Manner, upload};
use anyhow::{Context, Error, Result};
use hikyaku_gridftp::Facts;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Tasks that wait for a helper at most: who walks the tree waits for them.
const WAITING_MAX: usize = 256;

/// What a helper does.
pub(crate) enum Task {
    /// A file.
    One(Box<File>),
    /// Small files, all of the same kind.
    Batch(Vec<File>),
}

/// A file to copy.
pub(crate) enum File {
    Up(Up),
    Between(Between),
}

/// A file to a server.
pub(crate) struct Up {
    pub(crate) from: PathBuf,
    /// Its size when it was found.
    pub(crate) bytes: u64,
    /// Its version then.
    pub(crate) version: String,
    pub(crate) path: Vec<u8>,
    /// The mode of the file that is replaced.
    pub(crate) mode: Option<u32>,
    /// What the server has told of the path, if it is one of a tree.
    pub(crate) before: Option<Facts>,
    /// Where a file of a tree is recorded when it is complete.
    pub(crate) finished: Option<Arc<Finished>>,
    pub(crate) names: (String, String),
    pub(crate) wanted: Wanted,
    pub(crate) manner: Manner,
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
    /// Copies the files. Returns all failures.
    pub(crate) fn carry_out(
        self,
        session: &mut Session<'_>,
        sink: Option<&Sink<'_>>,
    ) -> Vec<Error> {
        match self {
            Self::One(file) => Vec::from_iter(file.carry_out(session, sink).err()),
            Self::Batch(files) => batch::carry_out(files, session, sink),
        }
    }
}

impl File {
    fn carry_out(self, session: &mut Session<'_>, sink: Option<&Sink<'_>>) -> Result<()> {
        match (self, sink) {
            (Self::Up(file), _) => file.carry_out(session),
            (Self::Between(file), Some(sink)) => file.carry_out(session, sink),
            (Self::Between(_), None) => Ok(()),
        }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Between(Between { facts, .. }) => facts.size.unwrap_or(0),
            Self::Up(file) => file.bytes,
        }
    }

    /// The place that an error names: the source.
    pub(crate) fn failure(&self) -> String {
        match self {
            Self::Up(file) => file.failure(),
            Self::Between(file) => file.failure(),
        }
    }

    /// Its size, if all of it is to be copied under a temporary name, so that it may be one of a batch.
    pub(crate) fn bytes_of_whole(&self) -> Option<u64> {
        let renamed = |wanted, manner| wanted == Wanted::Whole && manner == Manner::Renamed;
        match self {
            Self::Up(file) => renamed(file.wanted, file.manner).then_some(file.bytes),
            Self::Between(file) => file.facts.size.filter(|_| renamed(file.wanted, file.manner)),
        }
    }
}

impl Up {
    /// Copies the file.
    pub(crate) fn carry_out(self, session: &mut Session<'_>) -> Result<()> {
        let names = (self.names.0.as_str(), self.names.1.as_str());
        upload(session, &self.from, (&self.path, self.mode), names, (self.wanted, self.manner))
            .with_context(|| self.failure())?;
        session.show.count(|counts| counts.files += 1);
        self.note();
        self.finished.iter().for_each(|all| all.record_noted(session, When::Due));
        Ok(())
    }

    /// Notes that it is complete, if it is one of a tree.
    pub(crate) fn note(&self) {
        self.finished.iter().for_each(|finished| finished.note(self));
    }

    /// What is copied, for the record of what is complete.
    pub(crate) fn copy(&self) -> String {
        format!("{}\0{}\0{}", self.names.0, self.version, self.names.1)
    }

    /// The place that an error names: the source.
    pub(crate) fn failure(&self) -> String {
        self.names.0.clone()
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
