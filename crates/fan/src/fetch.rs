//! Carries out what the scheduler (`hikyaku-spread`) decides.

mod dirs;
mod run;
mod work;

use crate::blocked::Blocked;
use crate::census::{Census, File, ServerId};
use crate::choice::{Action, InTheWay, action};
use crate::dress::Dress;
use crate::links::NoLink;
use crate::meter::Meter;
use crate::server::Server;
use crate::session::Parameters;
use crate::target::Target;
use hikyaku_fs::PeerPath;
use hikyaku_remote::RemoteError;
use hikyaku_store::{ErrorKind, Found, Store, StoreError, StorePath};
use hikyaku_transfer::{Existing, Pass};
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
    /// Which permission bits files and directories get.
    pub dress: Dress,
    /// In which order the files take their bytes.
    pub taking: Taking,
    /// What happens to files of the same name.
    pub existing: Existing,
    /// Whether anything is written.
    pub pass: Pass,
    /// How data travel. Streams and pauses are for uploads only.
    pub parameters: Parameters,
    /// How far it is.
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set.
    pub stop: &'a AtomicBool,
}

/// In which order a target takes bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Taking {
    /// In any: it is a file of a store.
    #[default]
    AnyOrder,
    /// From the first to the last: it is a FIFO, a device or an open descriptor. It takes the only file that there is, and
    /// nothing has its name.
    InOrder,
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

impl From<NoLink> for FetchError {
    fn from(error: NoLink) -> Self {
        match error {
            NoLink::Store(error) => Self::Target(error),
            NoLink::InTheWay(way) => Self::InTheWay(way),
        }
    }
}

/// Fetches everything. Returns when each file has its name or has failed.
///
/// # Errors
///
/// The machine has no room for another thread.
pub fn fetch(job: &Job<'_>) -> std::io::Result<Fetched> {
    let mut fetched = Fetched::default();
    let made = match job.pass {
        Pass::Copy => dirs::make(job, &mut fetched),
        Pass::DryRun => dirs::rehearse(job, &mut fetched),
    };
    let target = |file| target(job, &made.blocked, file, &mut fetched);
    let targets = job.census.files.iter().map(target).collect();
    if job.pass == Pass::DryRun {
        return Ok(fetched);
    }
    let mut fetched = Run::new(job, targets, fetched).all()?;
    if job.taking == Taking::AnyOrder {
        dirs::finish(job, &made, &mut fetched);
    }
    Ok(fetched)
}

/// Where a file is written; `None` if it is not.
fn target(job: &Job<'_>, blocked: &Blocked, file: &File, fetched: &mut Fetched) -> Option<Target> {
    let path = (job.place)(&file.path);
    if path.as_ref().is_some_and(|path| blocked.is_above(path)) {
        return None;
    }
    let found = path.as_ref().ok_or(FetchError::TooLarge).and_then(|path| look(job, path));
    let decided = found.map(|found| (action(file.seen, found.as_ref(), job.existing), found));
    match decided.map(|(action, found)| (action, path, found)) {
        Ok((Action::Write, Some(path), _)) if job.pass == Pass::DryRun => {
            fetched.would.push(path.as_bytes().to_vec());
            return None;
        }
        Ok((Action::Write, path, found)) => {
            let (store, mode) = (job.store.clone(), job.dress.file(file.mode, found.as_ref()));
            let target =
                path.and_then(|path| Target::new(store, path, (file.seen, mode), job.taking));
            if target.is_none() {
                fetched.failed.push((file.path.as_bytes().to_vec(), FetchError::TooLarge));
            }
            return target;
        }
        Ok((action @ (Action::Stay | Action::Same), path, found)) => {
            fetched.kept += 1;
            job.meter.add_kept(file.seen.size);
            let change = found.filter(|_| action == Action::Same && job.pass == Pass::Copy);
            let change = change.and_then(|found| job.dress.same_file(file.mode, &found));
            if let Some((path, change)) = path.zip(change)
                && let Err(error) = job.store.change(&path, &change)
            {
                fetched.failed.push((file.path.as_bytes().to_vec(), error.into()));
            }
        }
        Ok((Action::Refuse(way), ..)) => {
            fetched.failed.push((file.path.as_bytes().to_vec(), FetchError::InTheWay(way)));
        }
        Err(error) => fetched.failed.push((file.path.as_bytes().to_vec(), error)),
    }
    None
}

/// What has this name at the target.
fn look(job: &Job<'_>, path: &StorePath) -> Result<Option<Found>, FetchError> {
    if job.taking == Taking::InOrder {
        return Ok(None);
    }
    match job.store.look(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
