//! Several files at once (`-cc`): each helper has a session of its own, and takes one file after the other.

use crate::download::{Wanted, download};
use crate::local::Spot;
use crate::session::Session;
use crate::upload::{Manner, upload};
use anyhow::{Context, Result};
use hikyaku_fs::Shown;
use hikyaku_gridftp::Facts;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that wait for a helper at most: who walks the tree waits for them.
const WAITING_MAX: usize = 256;

/// A file to copy.
pub(crate) enum Task {
    Down {
        path: Vec<u8>,
        facts: Facts,
        spot: Spot,
        /// Source and target for the journal.
        names: (String, String),
        wanted: Wanted,
    },
    Up {
        from: PathBuf,
        path: Vec<u8>,
        names: (String, String),
        wanted: Wanted,
        manner: Manner,
    },
}

/// Where helpers take files from. Clones share it.
#[derive(Clone)]
pub(crate) struct Waiting(Arc<Mutex<Receiver<Task>>>);

impl Task {
    /// Copies the file.
    pub(crate) fn carry_out(self, session: &mut Session<'_>) -> Result<()> {
        match self {
            Self::Down { path, facts, spot, names, wanted } => {
                let names = (names.0.as_str(), names.1.as_str());
                download(session, &path, &facts, &spot, names, wanted)
                    .with_context(|| format!("cannot copy {}", Shown::new(&path)))?;
            }
            Self::Up { from, path, names, wanted, manner } => {
                let shown = names.1.clone();
                let names = (names.0.as_str(), names.1.as_str());
                upload(session, &from, &path, names, (wanted, manner))
                    .with_context(|| format!("cannot copy to {shown}"))?;
            }
        }
        session.show.count(|counts| counts.files += 1);
        Ok(())
    }
}

/// A queue of files.
pub(crate) fn queue() -> (SyncSender<Task>, Waiting) {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    (sender, Waiting(Arc::new(Mutex::new(receiver))))
}

impl Waiting {
    /// The next file; `None` when there will be no more.
    pub(crate) fn next(&self) -> Option<Task> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }
}
