//! Uploads: files of this machine go to one or many servers.
//!
//! Each file goes whole to one server. Which one is decided when a server has room for more work: it takes the largest file
//! with which it would be done before the end of the whole upload (`queue`). A server that is lost gives its unfinished files back. A
//! file of which a server has an older version goes to that server, so that the servers never have different files of one
//! name; one that a server has with the same size and time is not sent. Directories and links are made on all servers.

mod dirs;
mod lane;
mod queue;
mod run;
mod state;
mod there;

use crate::census::ServerId;
use crate::choice::InTheWay;
use crate::dress::Dress;
use crate::links::NoLink;
use crate::meter::Meter;
use crate::plan::Plan;
use crate::session::ClientParameters;
use hikyaku_remote::{Client, RemoteError};
use hikyaku_store::{Store, StoreError};
use hikyaku_transfer::{Existing, Pass};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What is to be uploaded, and whereto.
pub struct UploadJob<'a> {
    /// The servers. Each has the feature `uploads`.
    pub servers: &'a [Client],
    /// Connects to a server again whose connection was lost.
    pub redial: &'a (dyn Fn(ServerId) -> Option<Client> + Sync),
    /// The store that has the files.
    pub source: &'a dyn Store,
    /// Files, directories and links.
    pub plan: &'a Plan,
    /// What happens to files of the same name at the servers.
    pub existing: Existing,
    /// Whether anything is written.
    pub pass: Pass,
    /// Which permission bits files and directories get.
    pub dress: Dress,
    /// How data travel.
    pub parameters: ClientParameters,
    /// How long files wait for a server when all are gone. A lost server is tried again after 2, 4 and 8 s.
    pub patience: Duration,
    /// How far it is.
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set.
    pub stop: &'a AtomicBool,
}

/// What came of an upload.
#[derive(Debug, Default)]
pub struct Uploaded {
    /// Files that were sent and have their names.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were not sent, because a server has them or the user wanted an older one to stay.
    pub kept: u64,
    /// Paths at the target that a rehearsal would write.
    pub would: Vec<Vec<u8>>,
    /// What could not be uploaded, and why.
    pub failed: Vec<(Vec<u8>, UploadError)>,
    /// Servers whose connection was lost, each once, and the first reason.
    pub lost: Vec<(ServerId, RemoteError)>,
}

/// Why a file is not at its server.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UploadError {
    /// It cannot be read here, or changed while it was read.
    #[error("{0}")]
    Source(#[from] StoreError),
    /// The store cannot take it.
    #[error("{0}")]
    Target(StoreError),
    /// A server cannot take it.
    #[error("{0}")]
    Server(RemoteError),
    /// What has its name at the target is not replaced by a file.
    #[error("{0}")]
    InTheWay(InTheWay),
    /// All servers that could take it are gone.
    #[error("every server that could take it is gone")]
    OutOfReach,
    /// A server has an older version, which has to be replaced, and is gone.
    #[error("a server that has another version of it is gone")]
    OldOneAway,
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

impl From<NoLink> for UploadError {
    fn from(error: NoLink) -> Self {
        match error {
            NoLink::Store(error) => Self::Target(error),
            NoLink::InTheWay(way) => Self::InTheWay(way),
        }
    }
}

/// Uploads everything. Returns when each file is on the disk of a server under its name, or has failed.
///
/// # Errors
///
/// The machine has no room for another thread.
pub fn upload(job: &UploadJob<'_>) -> std::io::Result<Uploaded> {
    match job.pass {
        Pass::Copy => run::Run::new(job).all(),
        Pass::DryRun => Ok(there::rehearse(job)),
    }
}

#[cfg(test)]
mod tests;
