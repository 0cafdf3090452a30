//! Carries out what the scheduler (`hikyaku-spread`) decides.

mod asked;
mod dirs;
mod failed;
mod hashes;
mod judge;
mod name;
mod pools;
mod rest;
pub(crate) mod resume;
mod run;
mod stream;
mod sync;
#[cfg(test)]
mod tests;
mod threads;
mod tuning;
mod work;

use crate::census::{File, ServerId};
use crate::choice::{Action, InTheWay, Same, action};
use crate::dress::{Dress, Times};
use crate::links::NoLink;
use crate::losses::{self, Loss};
use crate::many;
use crate::meter::Meter;
use crate::plan::Plan;
use crate::session::{Modes, Parameters};
use crate::target::{Growth, RESUME, Target};
use dirs::Made;
use hikyaku_job::{Attempt, Opened};
use hikyaku_reach::dial::Address;
use hikyaku_remote::RemoteError;
use hikyaku_store::{Change, Fetcher, Found, Kind, Op, Store, StoreError, StorePath};
use hikyaku_transfer::{Durable, Existing, FileHash, Pass, Rules, Verify, Write};
pub use pools::{Epoch, Pool};
use run::Run;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
pub use tuning::Tuning;

/// Connects again to a server whose connection was lost.
pub type Redial<'a> = &'a (dyn Fn(ServerId) -> Option<Arc<dyn Fetcher>> + Sync);

/// What is to be fetched, and whereto.
pub struct Job<'a> {
    /// The servers, by their numbers in the plan.
    pub servers: &'a [Arc<dyn Fetcher>],
    /// Servers that are connections to one machine, of which a number is used. A server in no pool is always used.
    pub pools: &'a [Pool<'a>],
    /// Connects to a server again whose connection was lost.
    pub redial: Redial<'a>,
    /// The files to be fetched, and their names at the target.
    pub plan: &'a Plan,
    /// Where the files go.
    pub store: Arc<dyn Store>,
    /// How long files are waited for whose servers are all gone. The scheduler tries a server again after 5 and 15 s.
    pub patience: Duration,
    /// Which permission bits files and directories get.
    pub dress: Dress,
    /// Which times files and directories get.
    pub times: Times,
    /// When a file counts as copied already.
    pub same: Same,
    /// In which order the files take their bytes.
    pub taking: Taking,
    /// The treatment of existing files of the same name.
    pub existing: Existing,
    /// Whether anything is written.
    pub pass: Pass,
    /// The journal, with what an earlier run has left.
    pub journal: Option<&'a Opened>,
    /// How files are written.
    pub writing: Writing,
    /// The treatment of existing files, if files are written under their own names from their first byte on, and stay as they
    /// are when the transfer ends early. Where another entry has the name, `writing.write` applies.
    pub growth: Option<Growth>,
    /// Whether the hashes of the files are wanted.
    pub hashes: Hashes,
    /// A condition for each file before it gets its name.
    pub expected: Option<&'a dyn Expected>,
    /// The effect of a failed file on the other files.
    pub after_failure: AfterFailure,
    /// The number of times that a file is begun if its target is lost, such as the machine that was sent it.
    pub tries: u32,
    /// How data travel. Streams and pauses are for uploads only.
    pub parameters: Parameters,
    /// How far it is.
    pub meter: &'a Meter,
    /// Ends the transfer early when it is set.
    pub stop: &'a AtomicBool,
}

/// The number of times that a file is begun if its target is lost each time.
const TRIES: u32 = 3;

impl<'a> Job<'a> {
    /// Fetches the files of a plan as new ones: with the bits of the source less those of the umask, with the time of the
    /// copy, whatever has their names, and without a journal. Servers that are lost stay so, and nothing is waited for.
    pub fn new(
        servers: &'a [Arc<dyn Fetcher>],
        plan: &'a Plan,
        store: Arc<dyn Store>,
        (meter, stop): (&'a Meter, &'a AtomicBool),
    ) -> Self {
        Self {
            servers,
            pools: &[],
            redial: &|_| None,
            plan,
            store,
            patience: Duration::ZERO,
            dress: Modes::Usual.dress(),
            times: Times::New,
            same: Same::Never,
            taking: Taking::AnyOrder,
            existing: Existing::Replaced,
            pass: Pass::Copy,
            journal: None,
            writing: Writing::default(),
            growth: None,
            hashes: Hashes::Dropped,
            expected: None,
            after_failure: AfterFailure::GoOn,
            tries: TRIES,
            parameters: Parameters::default(),
            meter,
            stop,
        }
    }
}

/// Reads bytes of a file at an offset.
pub type ReadAt<'a> = dyn Fn(u64, &mut [u8]) -> Result<usize, StoreError> + 'a;

/// A condition for files, such as a digest that the user knows.
pub trait Expected: Sync {
    /// Whether this file, which has come whole, is the expected one. `read` reads bytes of it at an offset. A file that is not
    /// gets no name, and stays for the next run if that continues it.
    ///
    /// # Errors
    ///
    /// It cannot be read or compared. It is not kept.
    fn is_met(&self, file: &File, read: &ReadAt<'_>) -> Result<bool, StoreError>;
}

/// The effect of a failed file on the other files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AfterFailure {
    /// They are fetched.
    #[default]
    GoOn,
    /// Those of which bytes are missing fail as [`FetchError::Stopped`].
    Stop,
}

/// How files are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Writing {
    /// Whether a file that exists is written under its own name.
    pub write: Write,
    /// When a file counts as written.
    pub durable: Durable,
    /// How it is checked.
    pub verify: Verify,
}

impl From<&Rules> for Writing {
    fn from(rules: &Rules) -> Self {
        let Rules { write, durable, verify, .. } = *rules;
        Self { write, durable, verify }
    }
}

/// Whether the hashes of files are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hashes {
    /// They are not.
    #[default]
    Dropped,
    /// [`Fetched::hashes`] has those of all files that are copied, or were copied before.
    Listed,
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

/// The result of a transfer.
#[derive(Debug, Default)]
pub struct Fetched {
    /// Files that were fetched and have their names.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that were there already with the same size and time, or that the user wants to stay.
    pub kept: u64,
    /// The hashes of files by their paths at the target, if they are wanted.
    pub hashes: BTreeMap<Vec<u8>, FileHash>,
    /// Paths at the target that a rehearsal would write.
    pub would: Vec<Vec<u8>>,
    /// What could not be fetched or written, and why.
    pub failed: Vec<(Vec<u8>, FetchError)>,
    /// Properties of the sources that the target does not keep.
    pub losses: Vec<Loss>,
    /// Servers whose connection was lost, each once, and the first reason.
    pub lost: Vec<(ServerId, String)>,
    /// Addresses of servers of the target whose connection was lost, if there are several, and the first reason.
    pub lost_targets: Vec<(Address, String)>,
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
    Source(StoreError),
    /// A server of the target cannot take it.
    #[error("{0}")]
    Server(RemoteError),
    /// All servers that have it are gone.
    #[error("every server that has it is gone")]
    OutOfReach,
    /// The transfer has lost all servers that could take it.
    #[error("every server that could take it is gone")]
    NoTaker,
    /// A server of the target has an older version, which has to be replaced, and the transfer has lost this server.
    #[error("a server that has another version of it is gone")]
    OldOneAway,
    /// Its bytes came damaged again and again.
    #[error("its bytes come damaged")]
    Damaged,
    /// It is not what its user expects.
    #[error("it is not the file that is expected")]
    Unexpected,
    /// It is larger than any file.
    #[error("it is larger than any file")]
    TooLarge,
    /// The target cannot have its modification time. Its content is copied.
    #[error("its time is not kept: the target has no times before 1970 or after 2106")]
    NoTime,
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
}

impl FetchError {
    /// Whether the next run of the same command continues the file.
    const fn leaves_the_file(&self) -> bool {
        match self {
            Self::Stopped | Self::OutOfReach | Self::Unexpected => true,
            Self::Target(error) => error.kind.is_away(),
            _ => false,
        }
    }
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
    if let Some(several) = &job.plan.several {
        return several.take(job);
    }
    let dress = job.dress.within(job.store.abilities().umask);
    // A stream has neither a size nor a time that could be those of a file.
    let (times, same) = match job.plan.stream {
        Some(_) => (Times::New, Same::Never),
        None => (job.times, job.same),
    };
    let job = &Job { dress, times, same, store: job.store.clone(), ..*job };
    let losses = losses::of(job.plan, (job.dress, job.times), &job.store.abilities());
    let mut fetched = Fetched { losses, ..Fetched::default() };
    let made = match job.pass {
        Pass::Copy => dirs::make(job, &mut fetched),
        Pass::DryRun => dirs::rehearse(job, &mut fetched),
    };
    let (targets, same) = targets(job, &made, &mut fetched);
    if job.pass == Pass::DryRun {
        return Ok(fetched);
    }
    if let Some(stream) = &job.plan.stream {
        stream::take(job, (stream, &targets), &mut fetched);
        if job.taking == Taking::AnyOrder {
            dirs::finish(job, &made, &mut fetched);
        }
        return Ok(fetched);
    }
    if job.journal.is_some_and(|opened| opened.attempt == Attempt::Beside) {
        job.meter.set_beside();
    }
    if resume::is_continued(job) {
        job.meter.set_continued();
    }
    let mut fetched = Run::new(job, targets, fetched).all()?;
    if job.taking == Taking::AnyOrder {
        dirs::finish(job, &made, &mut fetched);
    }
    if job.hashes == Hashes::Listed {
        hashes::add(job, &same, &mut fetched);
    }
    resume::end(job, &fetched);
    Ok(fetched)
}

/// Where each file is written, `None` for one that is not; and the numbers of those that were copied before.
fn targets<'a>(
    job: &Job<'a>,
    made: &Made,
    fetched: &mut Fetched,
) -> (Vec<Option<Target<'a>>>, Vec<usize>) {
    let files = &job.plan.files;
    let is_wanted = |file: &&File| !made.blocked.is_above(&file.to);
    // Nothing is in a directory that this transfer has made.
    let new = made.new_dirs(job);
    let is_free = |file: &File| file.to.split().is_some_and(|(dir, _)| new.contains(&dir));
    let found = match job.taking {
        Taking::InOrder => files.iter().map(|_| Ok(None)).collect(),
        Taking::AnyOrder => {
            let asked = files.iter().filter(is_wanted).filter(|file| !is_free(file));
            many::look(&*job.store, asked.map(|file| &file.to))
        }
    };
    let (mut found, mut changes, mut same) = (found.into_iter(), Vec::new(), Vec::new());
    let target = |(number, file): (usize, &File)| {
        let found = match (is_wanted(&file), job.taking) {
            (false, _) => return None,
            (true, Taking::AnyOrder) if is_free(file) => Ok(None),
            (true, _) => found.next()?,
        };
        match decide(job, file, found, &mut changes) {
            Ok(Fate::Written(target)) => {
                if job.times == Times::Kept && !target.keeps_time() {
                    fetched.failed.push((file.path.as_bytes().to_vec(), FetchError::NoTime));
                }
                return Some(*target);
            }
            Ok(Fate::Told) => fetched.would.push(file.to.as_bytes().to_vec()),
            Ok(fate @ (Fate::Same | Fate::Kept)) => {
                fetched.kept += 1;
                job.meter.add_kept(file.seen.size);
                same.extend(matches!(fate, Fate::Same).then_some(number));
            }
            Err(error) => fetched.failed.push((file.path.as_bytes().to_vec(), error)),
        }
        None
    };
    let targets = files.iter().enumerate().map(target).collect();
    let ops: Vec<Op<'_>> =
        changes.iter().map(|(place, change)| Op::Change(place, change)).collect();
    for ((place, _), changed) in changes.iter().zip(many::all(&*job.store, &ops)) {
        if let Err(error) = changed {
            fetched.failed.push((place.as_bytes().to_vec(), error.into()));
        }
    }
    (targets, same)
}

/// The target, which grows under its own name if that is wanted, and if nothing but a file has the name.
fn grown<'a>(
    job: &Job<'a>,
    (file, found): (&File, Option<&Found>),
    target: Target<'a>,
) -> Result<Target<'a>, FetchError> {
    let is_free = found.is_none_or(|found| found.kind == Kind::File);
    let Some(growth) = job.growth.filter(|_| is_free && job.taking == Taking::AnyOrder) else {
        return Ok(target);
    };
    let there = found.map_or(0, |found| found.size);
    let growing = growth
        .of((there, file.seen.size))
        .map_err(|kind| FetchError::Target(StoreError::new(RESUME, &file.to, kind)))?;
    let target = target.growing(growing, job.dress == Dress::Kept);
    job.meter.add_kept(target.skipped());
    Ok(target)
}

/// The decision on a file.
enum Fate<'a> {
    Written(Box<Target<'a>>),
    /// It would be written.
    Told,
    /// It was copied before.
    Same,
    /// The user wants that what is there stays.
    Kept,
}

/// Decides what becomes of a file where `found` has its name. A file that stays may get other permission bits.
fn decide<'a>(
    job: &Job<'a>,
    file: &File,
    found: Result<Option<Found>, StoreError>,
    changes: &mut Vec<(StorePath, Change)>,
) -> Result<Fate<'a>, FetchError> {
    let found = found?;
    let clock = job.store.abilities().clock;
    match action(file.seen, found.as_ref(), (job.existing, job.same), clock) {
        Action::Write if job.pass == Pass::DryRun => Ok(Fate::Told),
        Action::Write if resume::is_whole(job, file, found.as_ref()) => Ok(Fate::Same),
        Action::Write => {
            let (store, mode) = (job.store.clone(), job.dress.file_mode(file.mode, found.as_ref()));
            let is_file = found.as_ref().is_some_and(|found| found.kind == Kind::File);
            let write = if is_file { job.writing.write } else { Write::Beside };
            let how = (job.taking, Writing { write, ..job.writing });
            let target = Target::new(store, file.to.clone(), (file.seen, mode), how);
            let target = target.ok_or(FetchError::TooLarge)?;
            let target = target.with_times(job.times).with_data(file.data);
            let target = target.with_existing(job.existing);
            let target = grown(job, (file, found.as_ref()), target)?;
            Ok(Fate::Written(Box::new(resume::continued(job, file, target))))
        }
        action @ (Action::Stay | Action::Same) => {
            let change = found.filter(|_| action == Action::Same && job.pass == Pass::Copy);
            let change = change.and_then(|found| job.dress.same_file(file.mode, &found));
            let change = change.filter(|_| job.store.abilities().modes);
            changes.extend(change.map(|change| (file.to.clone(), change)));
            Ok(if action == Action::Same { Fate::Same } else { Fate::Kept })
        }
        Action::Refuse(way) => Err(FetchError::InTheWay(way)),
    }
}
