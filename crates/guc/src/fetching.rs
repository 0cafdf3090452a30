//! Files from a server, fetched by the mover: the parameters of the command, its display, and its errors.

use crate::args::GucArgs;
use crate::checksum::{Checksum, compare};
use crate::outcome::{Changed, Record, explained};
use crate::show::{chunk, retries};
use anyhow::{Context, Error, Result};
use hikyaku_console::{ExitCode, Kept, Scope, Totals};
use hikyaku_gridftp::{Facts, FtpError, Server, Transferred};
use hikyaku_job::{Opened, exit_code_of};
use hikyaku_mover::{
    AfterFailure, DirMeta, Expected, FetchError, Fetched, File, Job, Kind, Meter, Origin, Plan,
    ReadAt, Seen, Writing, fetch, local_target,
};
use hikyaku_store::{ErrorKind, StoreError, StorePath, Time, Versions};
use hikyaku_store_ftp::{Ftp, Observer, Parts, Reading};
use hikyaku_transfer::{Links, Pass, Resume, Write};
use hikyaku_tuner::{Decision, Measured, Phase};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the display gets the figures of the mover.
const SHOWN_EVERY: Duration = Duration::from_millis(50);
/// Permission bits of new files and directories, before those of the umask are removed. Servers need not send any.
const FILE_MODE: u32 = 0o666;
const DIR_MODE: u32 = 0o777;

/// Files of a server, and where they go.
pub(crate) struct Fetching<'a> {
    pub(crate) args: &'a GucArgs,
    /// The directory of the server to which the paths of the plan belong.
    pub(crate) ftp: &'a Ftp,
    pub(crate) server: &'a Server,
    pub(crate) plan: &'a Plan,
    /// The directory of this machine, and the name of a single file.
    pub(crate) to: (&'a Path, Option<&'a [u8]>),
    /// The source as its user named it.
    pub(crate) source: &'a str,
    pub(crate) parts: Parts,
    pub(crate) show: &'a Arc<Totals>,
    pub(crate) scope: &'a Scope,
    pub(crate) stop: Arc<AtomicBool>,
}

/// The result of a transfer.
pub(crate) struct Ended {
    /// Whether complete files are recorded for the next run.
    pub(crate) record: Record,
    /// What the next run uses, if the user has stopped it.
    pub(crate) stopped: Option<Kept>,
    /// Paths at the target that a dry run would write.
    pub(crate) would: Vec<Vec<u8>>,
}

/// The failure of each file, by its path; of all that is left, if there is no path.
pub(crate) type Failures = Vec<(Option<Vec<u8>>, Error)>;

/// Adds a file of the server to a plan.
pub(crate) fn add_file(
    plan: &mut Plan,
    (path, to): (&StorePath, StorePath),
    facts: &Facts,
) -> Result<()> {
    let size = facts.size.context("the server does not tell its size")?;
    let (secs, nanos) = facts.time().unwrap_or_default();
    let (seen, mode) = (Seen { size, modified: Time { secs, nanos } }, FILE_MODE);
    let path = hikyaku_fs::PeerPath::new(path.as_bytes())?;
    plan.files.push(File { path, to, seen, content: None, mode, at: Vec::new(), data: size });
    Ok(())
}

/// Adds a directory to a plan.
pub(crate) fn add_dir(plan: &mut Plan, path: StorePath) {
    plan.dirs.push((path, DirMeta { mode: DIR_MODE, modified: None }));
}

/// An empty plan.
pub(crate) fn new_plan() -> Plan {
    // A server that sends no time has only sizes. The end of what an earlier run has left is compared with the source.
    Plan { versions: Versions::SizeAndTime, ..Plan::default() }
}

impl Fetching<'_> {
    /// Fetches the files.
    ///
    /// # Errors
    /// The directory of the target cannot be used.
    pub(crate) fn run(&self) -> Result<(Ended, Failures)> {
        // The data nodes of a striped server send whole files only.
        let origin = Origin { name: self.source, resume: Resume::Journal };
        let is_kept = self.parts != Parts::Whole && self.args.pass() == Pass::Copy;
        let origin = Some(origin).filter(|_| is_kept);
        let (store, journal) = local_target(self.to, origin).map_err(|error| {
            exit_code_of(error.kind().map_or(hikyaku_transfer::FailureKind::Io, Kind::as_file))
                .error(error.to_string())
        })?;
        let told = Arc::new(Told::new((self.server, self.parts), self.show));
        let observer: Arc<dyn Observer> = told.clone();
        let sessions = if self.parts == Parts::Whole { 1 } else { self.args.cc as usize };
        let servers = self.ftp.readers(
            sessions.min(self.plan.files.len().max(1)),
            &Reading {
                links: Links::Followed,
                connections: self.args.connections(),
                ahead: self.args.pp as usize,
                retry: self.args.retry(),
                observer: Some(observer),
            },
        );
        let compared = Compared { fetching: self, told: &told };
        let meter = Meter::new(servers.len());
        let write = if self.args.inplace { Write::InPlace } else { Write::Beside };
        let job = Job {
            journal: journal.as_ref(),
            writing: Writing { write, ..Writing::default() },
            expected: self.args.cksm.is_some().then_some(&compared as &dyn Expected),
            after_failure: match self.args.continue_on_error {
                true => AfterFailure::GoOn,
                false => AfterFailure::Stop,
            },
            pass: self.args.pass(),
            parameters: self.args.parameters(),
            ..Job::new(&servers, self.plan, store, (&meter, &self.stop))
        };
        let fetched = shown(self.show, (&meter, &|| meter.written()), || fetch(&job))
            .context("cannot start a thread")?;
        let (ended, failed) = ended((self.scope, self.show), (&meter, journal.as_ref()), fetched);
        let mut failed: Vec<_> =
            failed.into_iter().filter_map(|(path, error)| told.error(path, error)).collect();
        if ended.stopped.is_none() {
            failed.extend(told.lost().take().map(|error| (None, error)));
        }
        Ok((ended, failed))
    }
}

/// The result of a transfer, and the failures of files that are not due to a stop.
pub(crate) fn ended(
    (scope, show): (&Scope, &Totals),
    (meter, journal): (&Meter, Option<&Opened>),
    fetched: Fetched,
) -> (Ended, Vec<(Vec<u8>, FetchError)>) {
    // Complete files of an earlier run.
    show.count(|counts| counts.files += fetched.kept);
    let record = if journal.is_some() { Record::Kept } else { Record::None };
    if scope.stop_cause().is_some() {
        let has_part = meter.is_continued() && meter.written() > 0;
        let kept = if has_part { Kept::Everything } else { Kept::Nothing };
        return (Ended { record, stopped: Some(kept), would: Vec::new() }, Vec::new());
    }
    let is_wanted = |(_, error): &(Vec<u8>, FetchError)| *error != FetchError::Stopped;
    let failed = fetched.failed.into_iter().filter(is_wanted).collect();
    (Ended { record, stopped: None, would: fetched.would }, failed)
}

/// Compares files with their sources by a checksum that the server computes.
struct Compared<'a> {
    fetching: &'a Fetching<'a>,
    told: &'a Told,
}

impl Expected for Compared<'_> {
    /// A file that differs is an error, so that it is not kept.
    fn is_met(&self, file: &File, read: &ReadAt<'_>) -> Result<bool, StoreError> {
        let Some(how) = self.fetching.args.cksm.filter(|_| file.seen.size > 0) else {
            return Ok(true);
        };
        let path = StorePath::from(file.path.clone());
        let compared = self.compare(how, (&path, file.seen.size), read);
        compared.map(|()| true).map_err(|error| {
            self.told.files().insert(path.as_bytes().to_vec(), error);
            StoreError::new("compare", &path, ErrorKind::Damaged)
        })
    }
}

impl Compared<'_> {
    fn compare(
        &self,
        how: Checksum,
        (path, size): (&StorePath, u64),
        read: &ReadAt<'_>,
    ) -> Result<()> {
        let Fetching { ftp, server, parts, .. } = *self.fetching;
        let theirs = ftp.checksum(path, how.name(), size);
        let theirs = theirs.map_err(|error| explained(server, parts, error))?;
        let supply = |at: u64, bytes: &mut [u8]| match read(at, bytes) {
            Ok(length) if length == bytes.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => Err(io::Error::other(error)),
        };
        compare(how, &how.of(0..size, &supply)?, &theirs)
    }
}

/// Does work, and shows meanwhile how far it is: the number of bytes that `moved` returns.
pub(crate) fn shown<T: Send>(
    show: &Totals,
    (meter, moved): (&Meter, &dyn Fn() -> u64),
    work: impl FnOnce() -> T + Send,
) -> T {
    let (before, counted) = (show.counts(), show.counted(0));
    let bytes = counted.load(Ordering::Relaxed);
    let update = |moved: u64| {
        counted.store(bytes + moved, Ordering::Relaxed);
        show.count(|counts| {
            counts.files = before.files + meter.files();
            counts.kept_bytes = before.kept_bytes + meter.kept();
        });
    };
    let main = thread::current();
    let done = thread::scope(|scope| {
        let work = scope.spawn(|| {
            let done = work();
            main.unpark();
            done
        });
        while !work.is_finished() {
            thread::park_timeout(SHOWN_EVERY);
            update(moved());
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    update(meter.written());
    done
}

/// The errors of the server, which say more than those of a store.
pub(crate) struct Told {
    pub(crate) server: Server,
    pub(crate) parts: Parts,
    show: Arc<Totals>,
    /// By the path of the file.
    files: Mutex<HashMap<Vec<u8>, Error>>,
    /// The first one of a session that was lost.
    lost: Mutex<Option<Error>>,
}

impl Told {
    /// Of a server that is asked for files in these parts.
    pub(crate) fn new((server, parts): (&Server, Parts), show: &Arc<Totals>) -> Self {
        let (server, show) = (server.clone(), Arc::clone(show));
        Self { server, parts, show, files: Mutex::default(), lost: Mutex::default() }
    }

    pub(crate) fn files(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u8>, Error>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a file; `None` if it is that of a session that was lost.
    fn error(&self, path: Vec<u8>, error: FetchError) -> Option<(Option<Vec<u8>>, Error)> {
        let is_told = self.files().contains_key(&path);
        if !is_told && error == FetchError::OutOfReach && self.lost().is_some() {
            return None;
        }
        let error = self.of_file(&path, &path, error);
        Some((Some(path), error))
    }

    /// The error of a file that is known to the store by `path`; `shown` is its source.
    pub(crate) fn of_file(&self, path: &[u8], shown: &[u8], error: FetchError) -> Error {
        let kind = Kind::from(&error);
        match (self.files().remove(path), error) {
            // It says more than what the server made of it.
            (_, FetchError::Source(StoreError { kind: ErrorKind::Changed, .. })) => {
                Changed::new(shown).into()
            }
            (Some(told), _) => told,
            (None, FetchError::Source(error) | FetchError::Target(error)) => {
                code(kind).error(error.kind.to_string())
            }
            (None, error) => code(kind).error(error.to_string()),
        }
    }
}

pub(crate) fn code(kind: Kind) -> ExitCode {
    exit_code_of(kind.as_file())
}

impl Observer for Told {
    fn chunk(&self, asked: &Decision, bytes: u64, done: &Transferred) {
        chunk(&self.show, asked, bytes, done);
    }

    fn epoch(&self, measured: &Measured, phase: Phase) {
        self.show.decided(measured, phase);
    }

    fn retries(&self, error: &FtpError) {
        retries(&self.show, &self.server, error);
    }

    fn failed(&self, path: Option<&StorePath>, error: FtpError) {
        if matches!(error, FtpError::Stopped) {
            return;
        }
        let error = explained(&self.server, self.parts, error);
        match path {
            Some(path) => drop(self.files().insert(path.as_bytes().to_vec(), error)),
            None => drop(self.lost().get_or_insert(error)),
        }
    }
}
