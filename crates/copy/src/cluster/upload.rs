//! Copies of files of this machine to daemons, and into a Gfarm file system.

use super::fleet::Fleet;
use super::log::Watch;
use super::{Display, GONE_MAX, Outcome, follow, gfarm, kind_of, kind_of_why, umask};
use crate::args::CopyArgs;
use crate::engine::{Existing, Options};
use crate::location::GfarmPath;
use crate::log::Direction;
use crate::outcome::failed;
use anyhow::{Context, Result, ensure};
use hikyaku_console::Scope;
use hikyaku_fan::{
    DepositJob, LeftOut, Meter, Older, UploadError, UploadJob, UploadPlan, Uploaded, Why, deposit,
    upload,
};
use hikyaku_fs::{Name, Shown};
use hikyaku_reach::dial::Servers;
use hikyaku_remote::RemoteError;
use hikyaku_store::{ErrorKind, Kind, Store, StorePath};
use hikyaku_store_gfarm::Gfarm;
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::FailureKind;
use hikyaku_units::Rate;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Copies these files and directories to the servers of `target`.
pub(super) fn all(
    args: &CopyArgs,
    scope: &Scope,
    (sources, target): (&[PathBuf], &Servers),
    outcome: &mut Outcome,
) -> Result<()> {
    let options = args.options()?;
    check_options(args, &options)?;
    let root = StorePath::new(&target.path)
        .map_err(|error| failed(FailureKind::BadName, format!("{target}: {error}")))?;
    let mut failures = Vec::new();
    let sources = readable(sources, &options, &mut failures)?;
    let fleet = Fleet::connect(args, target)?;
    fleet.check_uploads()?;
    let shown = target.to_string();
    let look = |path: &StorePath| kinds(&fleet, path, &shown);
    let target = Target::find(&look, &shown, root)?;
    let plan = target.plan(&sources, &mut failures)?;
    let names = fleet.names();
    let watch = Watch::new(outcome.recorder.as_ref(), &names, Some(&fleet), Direction::Out);
    let meter = Meter::new(fleet.clients.len()).heard_by(watch.as_ref().map(Watch::on_file));
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let _stopped = scope.on_stop(move || told.store(true, Ordering::Relaxed));
    let job = UploadJob {
        servers: &fleet.clients,
        redial: &|server| fleet.again(server),
        plan: &plan,
        older: older(&options),
        umask: if options.preserve { 0 } else { umask() },
        rate: options.limit.map(Rate::from_bits_per_sec),
        patience: GONE_MAX,
        meter: &meter,
        stop: &stop,
    };
    let totals = (plan.files.len() as u64, plan.bytes());
    let (uploaded, mut shown) = follow(args, (&meter, totals, watch.as_ref()), || upload(&job))?;
    let uploaded: Uploaded = uploaded.context("cannot start a thread")?;
    outcome.counts.add(&shown.counts);
    if stop.load(Ordering::Relaxed) {
        return shown.interrupted();
    }
    for (server, error) in &uploaded.lost {
        let name = &fleet.addresses[server.0];
        shown
            .board
            .remark(&format!("{name}: {error}; its files went to others, or were tried again"));
    }
    tell(shown, (&failures, &plan, &uploaded), outcome)
}

/// Copies these files and directories into a Gfarm file system.
pub(super) fn into_gfarm(
    args: &CopyArgs,
    scope: &Scope,
    (sources, target): (&[PathBuf], &GfarmPath),
    outcome: &mut Outcome,
) -> Result<()> {
    let options = args.options()?;
    check_options(args, &options)?;
    let root = StorePath::new(&target.path)
        .map_err(|error| failed(FailureKind::BadName, format!("{target}: {error}")))?;
    let mut failures = Vec::new();
    let sources = readable(sources, &options, &mut failures)?;
    let store = Gfarm::connect(target.server.clone()).map_err(gfarm::explained)?;
    let shown = target.to_string();
    let look = |path: &StorePath| match store.look(path) {
        Ok(found) => Ok(vec![Some(found.kind)]),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(vec![None]),
        Err(error) => Err(failed(kind_of(error.kind), format!("{shown}: {}", error.kind))),
    };
    let plan = Target::find(&look, &shown, root)?.plan(&sources, &mut failures)?;
    let names = [target.to_string()];
    let watch = Watch::new(outcome.recorder.as_ref(), &names, None, Direction::Out);
    let meter = Meter::new(0).heard_by(watch.as_ref().map(Watch::on_file));
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let _stopped = scope.on_stop(move || told.store(true, Ordering::Relaxed));
    let job = DepositJob {
        store: &store,
        plan: &plan,
        older: older(&options),
        umask: if options.preserve { 0 } else { umask() },
        rate: options.limit.map(Rate::from_bits_per_sec),
        meter: &meter,
        stop: &stop,
    };
    let totals = (plan.files.len() as u64, plan.bytes());
    let (uploaded, display) = follow(args, (&meter, totals, watch.as_ref()), || deposit(&job))?;
    let uploaded: Uploaded = uploaded.context("cannot start a thread")?;
    outcome.counts.add(&display.counts);
    if stop.load(Ordering::Relaxed) {
        return display.interrupted();
    }
    tell(display, (&failures, &plan, &uploaded), outcome)
}

/// What the user wants of files that are there.
const fn older(options: &Options) -> Older {
    match options.existing {
        Existing::Replaced => Older::Replaced,
        Existing::Kept => Older::Kept,
        Existing::KeptIfNewer => Older::KeptIfNewer,
    }
}

/// Tells what could not be copied.
fn tell(
    shown: Display,
    (failures, plan, uploaded): (&Failures, &UploadPlan, &Uploaded),
    outcome: &mut Outcome,
) -> Result<()> {
    let left_out = plan.left_out.iter();
    let left_out =
        left_out.map(|left| (&left.path[..], kind_of_why(left.why), left.why.to_string()));
    let of_source = failures.iter().map(|(path, kind, text)| (&path[..], *kind, text.clone()));
    let of_file = uploaded.failed.iter();
    let of_file =
        of_file.map(|(path, error)| (&path[..], kind_of_upload(error), error.to_string()));
    shown.end(of_source.chain(left_out).chain(of_file), outcome)
}

/// A failure: its path, its kind, and the cause.
type Failures = Vec<(Vec<u8>, FailureKind, String)>;

/// Refuses options that would be taken for granted and have no effect.
fn check_options(args: &CopyArgs, options: &Options) -> Result<()> {
    let has_patterns = !options.patterns.exclude.is_empty() || !options.patterns.include.is_empty();
    for (is_given, flag) in [
        (options.rehearsal, "--dry-run"),
        (has_patterns, "--exclude and --include"),
        (!options.files.is_empty(), "--files-from"),
        (options.verify, "--verify"),
        (options.in_place, "--inplace"),
        (args.manifest().is_some(), "--manifest"),
    ] {
        ensure!(!is_given, "{flag} cannot be used for copies to daemons yet");
    }
    if options.keep_attributes && !args.is_quiet() {
        eprintln!("hikyaku: owners and extended attributes are not kept at daemons");
    }
    Ok(())
}

/// A source of this machine.
struct Source {
    /// The directory that has it, and its path there.
    store: Arc<dyn Store>,
    from: StorePath,
    /// What it is called at the target; `None` if only its contents are meant, as with `dir/.`.
    name: Option<Name>,
    kind: Kind,
}

/// The sources that can be read. One must be there; those that are not are failures.
fn readable(
    sources: &[PathBuf],
    options: &Options,
    failures: &mut Failures,
) -> Result<Vec<Source>> {
    let mut readable = Vec::new();
    for path in sources {
        let shown = Shown::new(path.as_os_str().as_bytes()).to_string();
        match source(path) {
            Ok(source) if source.kind == Kind::Dir && !options.recursive => {
                let text = "is a directory, and -r was not given".to_owned();
                failures.push((shown.into_bytes(), FailureKind::IsDirectory, text));
            }
            Ok(source) => readable.push(source),
            Err((kind, text)) => failures.push((shown.into_bytes(), kind, text)),
        }
    }
    match failures.first() {
        Some((path, kind, text)) if readable.is_empty() => {
            Err(failed(*kind, format!("{}: {text}", String::from_utf8_lossy(path))))
        }
        _ => Ok(readable),
    }
}

/// Finds a source. The user's own links are followed to it.
fn source(path: &Path) -> Result<Source, (FailureKind, String)> {
    let io = |error: std::io::Error| {
        let errno = rustix::io::Errno::from_io_error(&error);
        let kind = errno.map_or(ErrorKind::NotFound, ErrorKind::of);
        (kind_of(kind), kind.to_string())
    };
    let bad = |error: &dyn ToString| (FailureKind::BadName, error.to_string());
    let real = std::fs::canonicalize(path).map_err(io)?;
    let (dir, from) = match (real.parent(), real.file_name()) {
        (Some(dir), Some(name)) => (dir, name.as_bytes()),
        _ => (Path::new("/"), &b""[..]),
    };
    let is_contents = path.as_os_str().as_bytes().ends_with(b"/.");
    let name = match path.components().next_back() {
        Some(Component::Normal(name)) if !is_contents => Some(name),
        _ => None,
    };
    let name = name.map(|name: &OsStr| Name::new(name.as_bytes())).transpose();
    let name = name.map_err(|error| bad(&error))?;
    let from = StorePath::new(from).map_err(|error| bad(&error))?;
    let store = Local::open(dir, NewModes::default());
    let store: Arc<dyn Store> =
        Arc::new(store.map_err(|error| (FailureKind::Io, error.to_string()))?);
    let found = store.look(&from).map_err(|error| (kind_of(error.kind), error.kind.to_string()))?;
    Ok(Source { store, from, name, kind: found.kind })
}

/// Tells what each server has of a name.
type Look<'a> = &'a dyn Fn(&StorePath) -> Result<Vec<Option<Kind>>>;

/// Where the sources go at the servers, as scp has it.
struct Target {
    path: StorePath,
    kind: TargetKind,
    /// Directories that some servers have, and that the others are to have as well.
    parents: Vec<StorePath>,
    shown: String,
}

/// What is at the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TargetKind {
    /// A directory, which receives the sources.
    Dir,
    /// Something else, which a single file replaces.
    Other,
    /// Nothing: it is the new name of a single source.
    New,
}

impl Target {
    /// Asks the servers what they have there.
    fn find(look: Look<'_>, shown: &str, path: StorePath) -> Result<Self> {
        let shown = shown.to_owned();
        let kinds = look(&path)?;
        let has = |kind: Kind| kinds.iter().flatten().any(|found| *found == kind);
        let is_other = kinds.iter().flatten().any(|found| *found != Kind::Dir);
        if has(Kind::Dir) && is_other {
            let text = format!("{shown}: is a directory on some servers, and a file on others");
            return Err(failed(FailureKind::NotDirectory, text));
        }
        let (kind, dir) = match (has(Kind::Dir), is_other) {
            (true, _) => (TargetKind::Dir, Some(path.clone())),
            (false, true) => (TargetKind::Other, path.split().map(|(dir, _)| dir)),
            (false, false) => (TargetKind::New, path.split().map(|(dir, _)| dir)),
        };
        let dir = dir.unwrap_or(StorePath::ROOT);
        if kind == TargetKind::New {
            let above = look(&dir)?;
            if !above.iter().flatten().any(|found| *found == Kind::Dir) {
                let text = format!("{shown}: there is no directory '{dir}'");
                return Err(failed(FailureKind::NotFound, text));
            }
        }
        let mut parents = Vec::new();
        let mut above = Some(dir);
        while let Some(dir) = above.filter(|dir| *dir != StorePath::ROOT) {
            above = dir.split().map(|(dir, _)| dir);
            parents.push(dir);
        }
        parents.reverse();
        Ok(Self { path, kind, parents, shown })
    }

    /// What is to be uploaded.
    fn plan(self, sources: &[Source], failures: &mut Failures) -> Result<UploadPlan> {
        let mut plan = UploadPlan { parents: self.parents.clone(), ..UploadPlan::default() };
        let mut names = BTreeSet::new();
        for source in sources {
            let to = self.place(source, sources.len() > 1)?;
            if !names.insert(to.clone()) && source.name.is_some() {
                let (path, text) = (source.from.to_string(), "another source has this name");
                failures.push((path.into_bytes(), FailureKind::Exists, text.to_owned()));
                continue;
            }
            if let Err(error) = plan.add(&source.store, &source.from, &to) {
                let path = source.from.as_bytes().to_vec();
                plan.left_out.push(LeftOut { path, why: Why::Server(error.kind) });
            }
        }
        Ok(plan)
    }

    /// The place of one source.
    fn place(&self, source: &Source, are_several: bool) -> Result<StorePath> {
        match (self.kind, &source.name) {
            (TargetKind::Dir, Some(name)) => {
                let place = self.path.join(name);
                place.map_err(|error| {
                    failed(FailureKind::BadName, format!("{}: {error}", self.shown))
                })
            }
            (TargetKind::Dir, None) => Ok(self.path.clone()),
            (TargetKind::New, _) if are_several => {
                let text =
                    format!("{}: no such directory, and several sources need one", self.shown);
                Err(failed(FailureKind::NotFound, text))
            }
            (TargetKind::Other, _) if are_several || source.kind == Kind::Dir => {
                let text = format!("{}: is not a directory", self.shown);
                Err(failed(FailureKind::NotDirectory, text))
            }
            (TargetKind::New | TargetKind::Other, _) => Ok(self.path.clone()),
        }
    }
}

/// What each server has of this name; `None` if it has nothing.
fn kinds(fleet: &Fleet, path: &StorePath, shown: &str) -> Result<Vec<Option<Kind>>> {
    let found: Vec<_> = thread::scope(|scope| {
        let look = |client| scope.spawn(move || hikyaku_remote::Client::look(client, path));
        let all: Vec<_> = fleet.clients.iter().map(look).collect();
        let closed = |_| Err(RemoteError::Closed(None));
        all.into_iter().map(|one| one.join().unwrap_or_else(closed)).collect()
    });
    let kind = |(number, found): (usize, Result<hikyaku_store::Found, RemoteError>)| match found {
        Ok(found) => Ok(Some(found.kind)),
        Err(RemoteError::Refused { kind: ErrorKind::NotFound, .. }) => Ok(None),
        Err(RemoteError::Refused { kind, .. }) => {
            Err(failed(kind_of(kind), format!("{shown}: {kind}")))
        }
        Err(error) => {
            Err(failed(FailureKind::Busy, format!("{}: {error}", fleet.addresses[number])))
        }
    };
    found.into_iter().enumerate().map(kind).collect()
}

const fn kind_of_upload(error: &UploadError) -> FailureKind {
    match error {
        UploadError::Source(error) | UploadError::Target(error) => kind_of(error.kind),
        UploadError::Server(RemoteError::Refused { kind, .. }) => kind_of(*kind),
        UploadError::Server(_)
        | UploadError::OutOfReach
        | UploadError::OldOneAway
        | UploadError::Stopped => FailureKind::Busy,
    }
}
