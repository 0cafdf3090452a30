//! Carries out what the scheduler (`hikyaku-spread`) decides.

mod dirs;
mod run;
mod work;

use crate::census::{Census, File, ServerId};
use crate::meter::Meter;
use crate::server::Server;
use crate::session::Parameters;
use crate::target::Target;
use hikyaku_fs::PeerPath;
use hikyaku_remote::{RemoteError, Seen};
use hikyaku_store::{Kind, Store, StoreError, StorePath};
use run::Run;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What is to be fetched, and whereto.
pub struct Job<'a> {
    /// The servers, in the order of the census.
    pub servers: &'a [Server],
    /// Connects to a server again whose connection was lost.
    pub redial: &'a (dyn Fn(ServerId) -> Option<Server> + Sync),
    /// What the servers have.
    pub census: &'a Census,
    /// Where the files go.
    pub store: Arc<dyn Store>,
    /// The path in the store for a path of the census; `None` if there can be none.
    pub place: &'a (dyn Fn(&PeerPath) -> Option<StorePath> + Sync),
    /// How long files are waited for whose servers are all gone. The scheduler tries a server again after 5 and 15 s.
    pub patience: Duration,
    /// Permission bits that new files and directories do not get.
    pub umask: u32,
    /// How data travel. Streams and pauses are for uploads only.
    pub parameters: Parameters,
    /// How far it is.
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set.
    pub stop: &'a AtomicBool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Files that were fetched and have their names.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were there already, with the same size and time.
    pub kept: u64,
    /// What could not be fetched or written, and why.
    pub failed: Vec<(Vec<u8>, FetchError)>,
    /// Servers whose connection was lost, each once, and the first reason.
    pub lost: Vec<(ServerId, RemoteError)>,
}

/// Why a file is not there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FetchError {
    /// The target cannot take it.
    #[error("{0}")]
    Target(#[from] StoreError),
    /// A server cannot give it.
    #[error("{0}")]
    Server(RemoteError),
    /// All servers that have it are gone.
    #[error("every server that has it is gone")]
    OutOfReach,
    /// Its bytes came damaged again and again.
    #[error("its bytes come damaged")]
    Damaged,
    /// It is larger than any file.
    #[error("it is larger than any file")]
    TooLarge,
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

/// Fetches everything. Returns when each file has its name or has failed.
///
/// # Errors
///
/// The machine has no room for another thread.
pub fn fetch(job: &Job<'_>) -> std::io::Result<Fetched> {
    let mut fetched = Fetched::default();
    dirs::make(job, &mut fetched);
    let mut targets = Vec::new();
    for file in &job.census.files {
        let path = (job.place)(&file.path);
        let is_there = path.as_ref().is_some_and(|path| is_there(&*job.store, path, file));
        let target = path.and_then(|path| Target::new(job.store.clone(), path, file, job.umask));
        if is_there {
            fetched.kept += 1;
            job.meter.add_kept(file.seen.size);
        } else if target.is_none() {
            fetched.failed.push((file.path.as_bytes().to_vec(), FetchError::TooLarge));
        }
        targets.push(target.filter(|_| !is_there));
    }
    let mut fetched = Run::new(job, targets, fetched).all()?;
    dirs::finish(job, &mut fetched);
    Ok(fetched)
}

/// Whether the file is at the target already: a file of the same size and time.
fn is_there(store: &dyn Store, path: &StorePath, file: &File) -> bool {
    let found = store.look(path);
    found.is_ok_and(|found| found.kind == Kind::File && Seen::from(&found) == file.seen)
}
