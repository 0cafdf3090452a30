//! Carries out what the scheduler (`hikyaku-spread`) decides.

mod dirs;
mod run;
mod work;

use crate::census::{Census, File, ServerId};
use crate::choice::{Action, InTheWay, Older, Pass, action};
use crate::meter::Meter;
use crate::server::Server;
use crate::session::Parameters;
use crate::target::Target;
use hikyaku_fs::PeerPath;
use hikyaku_remote::RemoteError;
use hikyaku_store::{ErrorKind, Store, StoreError, StorePath};
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
    /// What happens to files of the same name.
    pub older: Older,
    /// Whether anything is written.
    pub pass: Pass,
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
    /// Files that were there already with the same size and time, or that the user wants to stay.
    pub kept: u64,
    /// Paths at the target that a rehearsal would write.
    pub would: Vec<Vec<u8>>,
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
    /// What has its name at the target is not replaced by a file.
    #[error("{0}")]
    InTheWay(InTheWay),
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
    match job.pass {
        Pass::Copy => dirs::make(job, &mut fetched),
        Pass::Rehearsal => dirs::rehearse(job, &mut fetched),
    }
    let targets = job.census.files.iter().map(|file| target(job, file, &mut fetched)).collect();
    if job.pass == Pass::Rehearsal {
        return Ok(fetched);
    }
    let mut fetched = Run::new(job, targets, fetched).all()?;
    dirs::finish(job, &mut fetched);
    Ok(fetched)
}

/// Where a file is written; `None` if it is not.
fn target(job: &Job<'_>, file: &File, fetched: &mut Fetched) -> Option<Target> {
    let path = (job.place)(&file.path);
    let decided =
        path.as_ref().ok_or(FetchError::TooLarge).and_then(|path| decide(job, path, file));
    match decided.map(|action| (action, path)) {
        Ok((Action::Write, Some(path))) if job.pass == Pass::Rehearsal => {
            fetched.would.push(path.as_bytes().to_vec());
            return None;
        }
        Ok((Action::Write, path)) => {
            let store = job.store.clone();
            let target = path.and_then(|path| Target::new(store, path, file, job.umask));
            if target.is_none() {
                fetched.failed.push((file.path.as_bytes().to_vec(), FetchError::TooLarge));
            }
            return target;
        }
        Ok((Action::Stay, _)) => {
            fetched.kept += 1;
            job.meter.add_kept(file.seen.size);
        }
        Ok((Action::Refuse(way), _)) => {
            fetched.failed.push((file.path.as_bytes().to_vec(), FetchError::InTheWay(way)));
        }
        Err(error) => fetched.failed.push((file.path.as_bytes().to_vec(), error)),
    }
    None
}

/// What becomes of a file whose place is `path`.
fn decide(job: &Job<'_>, path: &StorePath, file: &File) -> Result<Action, FetchError> {
    let found = match job.store.look(path) {
        Ok(found) => Some(found),
        Err(error) if error.kind == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    Ok(action(file.seen, found.as_ref(), job.older))
}
