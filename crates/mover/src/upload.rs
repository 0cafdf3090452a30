//! Uploads: files of any source go to one or many servers.
//!
//! Each file goes whole to one server. Which one is decided when a server has room for more work: it takes the largest file
//! with which it would be done before the end of the whole upload (`queue`). A server that is lost gives its unfinished files back. A
//! file of which a server has an older version goes to that server, so that the servers never have different files of one
//! name; one that a server has with the same size and time is not sent. Directories and links are made on all servers.

mod dirs;
mod lane;
mod outcome;
mod queue;
mod reach;
mod relay;
mod run;
mod source;
mod state;
mod there;
mod turns;

pub use source::{Counted, Source};

use crate::census::ServerId;
use crate::choice::Same;
use crate::dress::{Dress, Times};
use crate::fetch::Fetched;
use crate::losses;
use crate::meter::Meter;
use crate::plan::Plan;
use crate::session::Parameters;
use hikyaku_remote::Client;
use hikyaku_store::Abilities;
use hikyaku_transfer::{Existing, Pass};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What is to be uploaded, and whereto.
pub struct UploadJob<'a> {
    /// The servers. Each has the feature `uploads`.
    pub servers: &'a [Client],
    /// Connects to a server again whose connection was lost.
    pub redial: &'a (dyn Fn(ServerId) -> Option<Client> + Sync),
    /// The channels that have the files.
    pub source: Source<'a>,
    /// Files, directories and links.
    pub plan: &'a Plan,
    /// What happens to files of the same name at the servers.
    pub existing: Existing,
    /// When a file of the same name counts as copied already.
    pub same: Same,
    /// Which modification times files get.
    pub times: Times,
    /// Whether anything is written.
    pub pass: Pass,
    /// Which permission bits files and directories get.
    pub dress: Dress,
    /// How data travel. The limit of the servers is that of what each of them gets.
    pub parameters: Parameters,
    /// How long files wait for a server when all are gone. A lost server is tried again after 2, 4 and 8 s.
    pub patience: Duration,
    /// How far it is.
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set.
    pub stop: &'a AtomicBool,
}

/// Uploads everything. Returns when each file is on the disk of a server under its name, or has failed.
///
/// # Errors
///
/// The machine has no room for another thread.
pub fn upload(job: &UploadJob<'_>) -> std::io::Result<Fetched> {
    let fetched = match job.pass {
        Pass::Copy => run::Run::new(job).all()?,
        Pass::DryRun => there::rehearse(job),
    };
    // A daemon keeps all that its file system keeps.
    let daemon = Abilities { links: true, modes: true, times: true, ..Abilities::default() };
    let losses = losses::of(job.plan, (job.dress, Times::Kept), &daemon);
    Ok(Fetched { losses, ..fetched })
}

#[cfg(test)]
mod tests;
