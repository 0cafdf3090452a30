//! Files to a server, sent by the mover: the parameters of the command, and its errors.

use crate::args::GucArgs;
use crate::checksum::{Checksum, compare};
use crate::fetching::{Ended, Told, code, ended, shown};
use crate::outcome::{explained, lasting};
use anyhow::{Context, Error, Result};
use hikyaku_console::{At, Scope, Totals};
use hikyaku_fs::Shown;
use hikyaku_mover::{
    AfterFailure, FetchError, Growth, Job, Kind, Landed, Meter, Sources, Why, fetch,
};
use hikyaku_store::{ErrorKind, StorePath, fetcher, fetcher_of_files};
use hikyaku_store_ftp::{Condition, Ftp, Names, NewModes, Sum, Writing};
use hikyaku_transfer::Links;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Parts of one large file that are read at once.
const READS: u32 = 4;
/// A file whose connection is lost for good is begun so many times at most.
const TRIES: u32 = 3;

/// Files that are compared with their sources by a checksum that the server computes.
pub(crate) struct Compared {
    how: Checksum,
    told: Arc<Told>,
    /// The source of each, by its path at the target.
    sources: Mutex<HashMap<StorePath, PathBuf>>,
}

impl Condition for Compared {
    fn check(&self, path: &StorePath, size: u64, sum: &mut Sum<'_>) -> Result<(), ErrorKind> {
        let source = self.sources.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        let Some(source) = source.filter(|_| size > 0) else { return Ok(()) };
        let compared = self.compare(&source, size, sum);
        compared.map_err(|error| {
            self.told.files().insert(path.as_bytes().to_vec(), error);
            ErrorKind::Damaged
        })
    }
}

impl Compared {
    fn compare(&self, source: &PathBuf, size: u64, sum: &mut Sum<'_>) -> Result<()> {
        let Told { server, parts, .. } = &*self.told;
        let theirs = sum(self.how.name()).map_err(|error| explained(server, *parts, error))?;
        let file = File::open(source).at(source.display())?;
        let supply = |at: u64, bytes: &mut [u8]| file.read_exact_at(bytes, at);
        compare(self.how, &self.how.of(0..size, &supply)?, &theirs)
    }
}

/// How the store of the server writes, and what compares files if the user wants that.
pub(crate) fn writing(args: &GucArgs, told: &Arc<Told>) -> (Writing, Option<Arc<Compared>>) {
    let new = |how| Compared { how, told: Arc::clone(told), sources: Mutex::default() };
    let compared = args.cksm.map(|how| Arc::new(new(how)));
    let condition = compared.clone().map(|compared| compared as Arc<dyn Condition>);
    let writing = Writing {
        connections: args.connections(),
        ahead: args.pp as usize,
        retry: args.retry(),
        observer: Some(told.clone()),
        condition,
        links: Links::Followed,
        modes: NewModes::OfServer,
        // The mover looks at each.
        names: Names::Looked,
    };
    (writing, compared)
}

/// Files of this machine, and their places at the server.
pub(crate) struct Sending<'a> {
    pub(crate) args: &'a GucArgs,
    pub(crate) ftp: &'a Ftp,
    pub(crate) sources: &'a Sources,
    pub(crate) landed: Landed,
    pub(crate) compared: Option<Arc<Compared>>,
    pub(crate) told: &'a Told,
    pub(crate) show: &'a Arc<Totals>,
    pub(crate) scope: &'a Scope,
    pub(crate) stop: Arc<AtomicBool>,
}

/// A failure: of the file with this path at the source, or about this path at the target.
pub(crate) enum About {
    Source(PathBuf),
    Target(Vec<u8>),
}

impl Sending<'_> {
    /// Sends the files. Returns what came of them, and each failure.
    ///
    /// # Errors
    /// The machine has no room for a thread.
    pub(crate) fn run(self) -> Result<(Ended, Vec<(About, Error)>)> {
        let Landed { store, journal, mut plan, .. } = self.landed;
        let here =
            |path: &[u8]| PathBuf::from(OsStr::from_bytes(&[&self.sources.root, path].concat()));
        if let Some(compared) = &self.compared {
            let sources =
                plan.files.iter().map(|file| (file.to.clone(), here(file.path.as_bytes())));
            compared.sources.lock().unwrap_or_else(PoisonError::into_inner).extend(sources);
        }
        plan.is_from(1);
        let files = u32::try_from(plan.files.len()).unwrap_or(u32::MAX);
        let at_once = self.args.cc.min(files);
        let servers = [match at_once {
            0 | 1 => fetcher(&self.sources.store, READS),
            _ => fetcher_of_files(&self.sources.store, at_once),
        }];
        let meter = Meter::new(servers.len());
        let job = Job {
            journal: journal.as_ref(),
            growth: self.args.inplace.then_some(Growth::Anew),
            after_failure: match self.args.continue_on_error {
                true => AfterFailure::GoOn,
                false => AfterFailure::Stop,
            },
            tries: self.args.retry().attempts.saturating_add(1).min(TRIES),
            pass: self.args.pass(),
            parameters: self.args.parameters(),
            ..Job::new(&servers, &plan, store, (&meter, &self.stop))
        };
        let before = self.ftp.sent_bytes();
        let sent = || self.ftp.sent_bytes().saturating_sub(before);
        let fetched = shown(self.show, (&meter, &sent), || fetch(&job));
        let fetched = fetched.context("cannot start a thread")?;
        let places: HashMap<&[u8], &StorePath> =
            plan.files.iter().map(|file| (file.path.as_bytes(), &file.to)).collect();
        let told = |(path, error): (Vec<u8>, FetchError)| match places.get(&path[..]) {
            Some(place) => {
                let source = here(&path);
                let shown = source.as_os_str().as_bytes();
                let error = self.told.of_file(place.as_bytes(), shown, error);
                (About::Source(source), error)
            }
            None => {
                let error = self.told.of_file(&path, &path, error);
                (About::Target(path), error)
            }
        };
        let (ended, failed) = ended((self.scope, self.show), (&meter, journal.as_ref()), fetched);
        Ok((ended, failed.into_iter().map(told).collect()))
    }
}

/// Why an entry of a tree is left out, as an error.
pub(crate) fn left_out(path: &[u8], why: Why) -> Error {
    let shown = Shown::new(path);
    match why {
        Why::Server(kind) => code(Kind::from(kind)).error(format!("{shown}: {kind}")),
        why => lasting(format!("{shown} is left out: {why}")),
    }
}
