//! Copies from and to daemons (`hikyaku serve`): one, or many that have parts of the same tree; and from the nodes of a
//! Gfarm file system.

mod fleet;
mod gfarm;
mod log;
mod upload;

pub(crate) use fleet::explained;

use crate::args::CopyArgs;
use crate::interrupt::Interrupted;
use crate::location::GfarmPath;
use crate::log::Direction;
use crate::outcome::{code_of_failures, exit_code, failed};
use anyhow::{Context, Error, Result, bail, ensure};
use fleet::Fleet;
use hikyaku_console::{
    Audience, Board, Counts, Ending, ExitCode, Failed, Interrupt, Message, MeterId, PathFigures,
    Scope, UPDATE_EVERY, headline, print_end,
};
use hikyaku_fan::{Census, FetchError, Fetched, Job, Meter, Server, ServerId, Why, census, fetch};
use hikyaku_fs::{PeerPath, Shown};
use hikyaku_reach::dial::Servers;
use hikyaku_remote::RemoteError;
use hikyaku_run_log::Recorder;
use hikyaku_store::{ErrorKind, StorePath};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::FailureKind;
use log::Watch;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Files whose servers are all gone are waited for so long: a server is tried again after 5 and 15 s.
const GONE_MAX: Duration = Duration::from_secs(20);
/// Failures that are told one by one.
const TOLD: usize = 1000;

/// What is copied, and whereto.
#[derive(Clone, Debug)]
pub(crate) enum Transfer {
    /// From servers to a path of this machine.
    Down(Sources, PathBuf),
    /// From paths of this machine to daemons.
    Up(Vec<PathBuf>, Servers),
    /// From paths of this machine into a Gfarm file system.
    UpToGfarm(Vec<PathBuf>, GfarmPath),
}

/// What is copied from servers.
#[derive(Clone, Debug)]
pub(crate) enum Sources {
    /// Paths on daemons.
    Daemons(Vec<Servers>),
    /// Paths in a Gfarm file system.
    Gfarm(Vec<GfarmPath>),
}

/// Copies.
pub(crate) fn run(
    args: &CopyArgs,
    interrupt: &Interrupt,
    transfer: &Transfer,
    recorder: Option<Arc<Recorder>>,
) -> Result<ExitCode> {
    interrupt.listen().context("cannot listen for signals")?;
    let (scope, begin) = (interrupt.scope(), Instant::now());
    let mut outcome = Outcome { recorder, ..Outcome::default() };
    let done = match transfer {
        Transfer::Down(Sources::Daemons(sources), target) => {
            all(args, &scope, (sources, target), &mut outcome)
        }
        Transfer::Down(Sources::Gfarm(sources), target) => {
            gfarm::all(args, &scope, (sources, target), &mut outcome)
        }
        Transfer::Up(sources, target) => upload::all(args, &scope, (sources, target), &mut outcome),
        Transfer::UpToGfarm(sources, target) => {
            upload::into_gfarm(args, &scope, (sources, target), &mut outcome)
        }
    };
    let code = match &done {
        Ok(()) if outcome.kinds.is_empty() => ExitCode::Success,
        Ok(()) => code_of_failures(&outcome.kinds),
        Err(error) => ExitCode::of(error, &[exit_code]),
    };
    if let Some(recorder) = &outcome.recorder {
        crate::log::end(recorder, code, outcome.counts.files, outcome.counts.sent());
    }
    if args.audience() == Audience::Program {
        let error = done.as_ref().err().map(headline);
        print_end(&outcome.counts, begin.elapsed(), code, error.as_deref())?;
    }
    done.map(|()| code)
}

fn all(
    args: &CopyArgs,
    scope: &Scope,
    (sources, target): (&[Servers], &Path),
    outcome: &mut Outcome,
) -> Result<()> {
    let options = args.options()?;
    let first = sources.first().context("no source")?;
    ensure!(
        sources.iter().all(|source| source.servers == first.servers),
        "sources on several sets of servers go into several commands"
    );
    let fleet = Fleet::connect(args, first)?;
    for source in sources {
        let root = StorePath::new(&source.path)
            .map_err(|error| failed(FailureKind::BadName, format!("{source}: {error}")))?;
        let found = census(&fleet.clients, &root);
        let servers: Vec<Server> = fleet.clients.iter().cloned().map(Server::from).collect();
        let names = fleet.names();
        let reached = Reached {
            servers: &servers,
            names: &names,
            again: &|server| fleet.again(server).map(Server::from),
            watch: Watch::new(outcome.recorder.as_ref(), &names, Some(&fleet), Direction::In),
        };
        for (server, error) in &found.lost {
            // One that does not have this path takes no part.
            if error.is_of_server() {
                eprintln!("hikyaku: {}: {error}", fleet.addresses[server.0]);
            }
        }
        let is_nothing = found.files.is_empty() && found.dirs.is_empty() && found.links.is_empty();
        if is_nothing && found.left_out.is_empty() && root != StorePath::ROOT {
            return Err(nothing(source, &found));
        }
        check_recursive(&found, (&root, options.recursive), source)?;
        let place = Place::new(&root, target, sources.len() > 1)?;
        let umask = if options.preserve { 0 } else { umask() };
        one((args, scope), &reached, &found, (place, umask), outcome)?;
    }
    Ok(())
}

/// A directory is copied only with `-r`.
fn check_recursive(
    found: &Census,
    (root, is_recursive): (&StorePath, bool),
    source: &dyn fmt::Display,
) -> Result<()> {
    let is_dir = *root == StorePath::ROOT
        || found.dirs.first().is_some_and(|(path, _)| path.as_bytes() == root.as_bytes());
    if is_dir && !is_recursive {
        let text = format!("{source}: is a directory, and -r was not given");
        return Err(failed(FailureKind::IsDirectory, text));
    }
    Ok(())
}

/// The servers of a transfer.
struct Reached<'a> {
    /// In the order of the census.
    servers: &'a [Server],
    /// How they are called, in the same order.
    names: &'a [String],
    /// Connects again to a server whose connection was lost.
    again: &'a (dyn Fn(ServerId) -> Option<Server> + Sync),
    /// Where it is written what the transfer looks like.
    watch: Option<Watch>,
}

/// What came of it so far.
#[derive(Default)]
struct Outcome {
    kinds: BTreeSet<FailureKind>,
    told: usize,
    counts: Counts,
    /// Where it is written what the copy looks like.
    recorder: Option<Arc<Recorder>>,
}

/// The error where no server has anything of this name.
fn nothing(source: &Servers, found: &Census) -> Error {
    let refused = found.lost.iter().find_map(|(_, error)| match error {
        RemoteError::Refused { kind, .. } => Some(*kind),
        _ => None,
    });
    match refused {
        Some(kind) => failed(kind_of(kind), format!("{source}: {kind}")),
        None => Error::msg(format!("{source}: no server answers any more")),
    }
}

/// Where files of the servers go.
struct Place {
    store: Arc<Local>,
    /// Bytes of the path at the servers before the name of the source.
    skipped: usize,
    /// The name that the source gets, in place of its own.
    renamed: Option<PeerPath>,
}

impl Place {
    /// As scp has it: a target that is a directory receives the source, any other target is its new name.
    fn new(root: &StorePath, target: &Path, are_several: bool) -> Result<Self> {
        let modes = NewModes { file: 0o666 & !umask() };
        let open = |path: &Path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            Local::open(path, modes).with_context(|| format!("cannot write to {}", path.display()))
        };
        let skipped = match root.split() {
            Some((dir, _)) if dir != StorePath::ROOT => dir.as_bytes().len() + 1,
            _ => 0,
        };
        if are_several || target.is_dir() || root == &StorePath::ROOT {
            return Ok(Self { store: Arc::new(open(target)?), skipped, renamed: None });
        }
        let name = target.file_name().unwrap_or_else(|| OsStr::new("."));
        let renamed = PeerPath::new(name.as_bytes())
            .with_context(|| format!("{} cannot be the name of a file", target.display()))?;
        let dir = target.parent().unwrap_or_else(|| Path::new("."));
        Ok(Self { store: Arc::new(open(dir)?), skipped, renamed: Some(renamed) })
    }

    fn of(&self, path: &PeerPath) -> Option<StorePath> {
        let below = path.as_bytes().get(self.skipped..)?;
        let Some(renamed) = &self.renamed else { return StorePath::new(below).ok() };
        let rest = below.iter().position(|&byte| byte == b'/').map_or(&b""[..], |at| &below[at..]);
        StorePath::new(&[renamed.as_bytes(), rest].concat()).ok()
    }
}

/// Fetches what one source means.
fn one(
    (args, scope): (&CopyArgs, &Scope),
    reached: &Reached<'_>,
    found: &Census,
    (place, umask): (Place, u32),
    outcome: &mut Outcome,
) -> Result<()> {
    let watch = reached.watch.as_ref();
    let meter = Meter::new(reached.servers.len()).heard_by(watch.map(Watch::on_file));
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let _stopped = scope.on_stop(move || told.store(true, Ordering::Relaxed));
    let job = Job {
        servers: reached.servers,
        redial: reached.again,
        census: found,
        store: place.store.clone(),
        place: &|path| place.of(path),
        patience: GONE_MAX,
        umask,
        meter: &meter,
        stop: &stop,
    };
    let totals = (found.files.len() as u64, found.bytes());
    let (fetched, mut shown) = follow(args, (&meter, totals, watch), || fetch(&job))?;
    let fetched: Fetched = fetched.context("cannot start a thread")?;
    outcome.counts.add(&shown.counts);
    if stop.load(Ordering::Relaxed) {
        return shown.interrupted();
    }
    for (server, error) in &fetched.lost {
        let name = &reached.names[server.0];
        shown.board.remark(&format!("{name}: {error}; the others have taken over"));
    }
    shown.end(failures(found, &fetched), outcome)
}

/// What is shown of a transfer after its work has ended.
struct Display {
    board: Board,
    id: MeterId,
    counts: Counts,
}

/// Shows how far the work is until it has ended.
fn follow<T: Send>(
    args: &CopyArgs,
    (meter, (files, bytes), watch): (&Meter, (u64, u64), Option<&Watch>),
    work: impl FnOnce() -> T + Send,
) -> Result<(T, Display)> {
    let mut board = Board::new(args.audience(), args.stats_every());
    let id = board.add(None, Instant::now());
    let counts = || counts(meter, files, bytes);
    let main = thread::current();
    let done = thread::scope(|scope| {
        let work = scope.spawn(|| {
            let done = work();
            main.unpark();
            done
        });
        while !work.is_finished() {
            thread::park_timeout(UPDATE_EVERY);
            board.update(id, (counts(), PathFigures::default()), &[], Instant::now());
            watch.iter().for_each(|watch| watch.poll(meter));
        }
        work.join()
    });
    watch.iter().for_each(|watch| watch.last(meter));
    match done {
        Ok(done) => Ok((done, Display { board, id, counts: counts() })),
        Err(_) => bail!("a thread of the copy panicked"),
    }
}

impl Display {
    /// The user has stopped it.
    fn interrupted(mut self) -> Result<()> {
        self.board.finish(self.id, Ending::Untold, Instant::now());
        bail!(Interrupted::GoesOn);
    }

    /// Tells what could not be copied, and how much was.
    fn end<'a>(
        mut self,
        failures: impl Iterator<Item = (&'a [u8], FailureKind, String)>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let messages: Vec<Message> = failures.filter_map(|failure| outcome.add(failure)).collect();
        let figures = (self.counts, PathFigures::default());
        self.board.update(self.id, figures, &messages, Instant::now());
        if outcome.told > TOLD {
            self.board.remark(&format!("{} more could not be copied", outcome.told - TOLD));
        }
        self.board.finish(self.id, Ending::Done, Instant::now());
        match self.board.into_lost() {
            Some(error) => Err(Error::new(error).context("cannot write to standard output")),
            None => Ok(()),
        }
    }
}

/// What could not be copied: its path, the kind of failure, and the cause.
fn failures<'a>(
    found: &'a Census,
    fetched: &'a Fetched,
) -> impl Iterator<Item = (&'a [u8], FailureKind, String)> {
    let left_out = found.left_out.iter();
    let left_out =
        left_out.map(|left| (&left.path[..], kind_of_why(left.why), left.why.to_string()));
    let failed = fetched.failed.iter();
    left_out.chain(failed.map(|(path, error)| (&path[..], kind_of_fetch(error), error.to_string())))
}

impl Outcome {
    /// Counts a failure; the message that tells it, unless so many were told before.
    fn add(&mut self, (path, kind, text): (&[u8], FailureKind, String)) -> Option<Message> {
        self.kinds.insert(kind);
        self.told += 1;
        let path = Shown::new(path).to_string();
        // Errors of a store begin with the path.
        let text =
            text.strip_prefix(&format!("{path}: ")).map_or_else(|| text.clone(), str::to_owned);
        (self.told <= TOLD).then(|| {
            let (line, kind) = (format!("{path}: {text}"), crate::show::word(kind));
            Message::Failure(Failed { line, host: None, path, kind, text })
        })
    }
}

fn counts(meter: &Meter, total_files: u64, total_bytes: u64) -> Counts {
    let kept_bytes = meter.kept();
    Counts {
        total_files,
        total_bytes,
        is_counted: true,
        files: meter.files(),
        bytes: meter.written() + kept_bytes,
        kept_bytes,
    }
}

const fn kind_of_why(why: Why) -> FailureKind {
    match why {
        Why::Server(kind) => kind_of(kind),
        Why::Differs => FailureKind::Changed,
        Why::Special => FailureKind::Special,
        Why::BadName => FailureKind::BadName,
    }
}

const fn kind_of_fetch(error: &FetchError) -> FailureKind {
    match error {
        FetchError::Target(error) => kind_of(error.kind),
        FetchError::Server(RemoteError::Refused { kind, .. }) => kind_of(*kind),
        FetchError::Server(_) | FetchError::OutOfReach | FetchError::Stopped => FailureKind::Busy,
        FetchError::Damaged => FailureKind::Damaged,
        FetchError::TooLarge => FailureKind::TooLarge,
    }
}

/// The kind of failure for a program, of an error of a store.
pub(crate) const fn kind_of(kind: ErrorKind) -> FailureKind {
    match kind {
        ErrorKind::NotFound | ErrorKind::Gone => FailureKind::NotFound,
        ErrorKind::Exists | ErrorKind::NotEmpty => FailureKind::Exists,
        ErrorKind::NotDir => FailureKind::NotDirectory,
        ErrorKind::IsDir => FailureKind::IsDirectory,
        ErrorKind::Denied => FailureKind::Denied,
        ErrorKind::ReadOnly => FailureKind::ReadOnly,
        ErrorKind::NoSpace => FailureKind::NoSpace,
        ErrorKind::Quota => FailureKind::Quota,
        ErrorKind::TooLarge => FailureKind::TooLarge,
        ErrorKind::BadName => FailureKind::BadName,
        ErrorKind::Link => FailureKind::Link,
        ErrorKind::Busy | ErrorKind::Unreachable | ErrorKind::TimedOut => FailureKind::Busy,
        ErrorKind::Changed => FailureKind::Changed,
        ErrorKind::Unsupported(_) => FailureKind::Unsupported,
        ErrorKind::Damaged => FailureKind::Damaged,
        ErrorKind::System(_) => FailureKind::Io,
    }
}

/// The bits that new files of this process do not get.
pub(crate) fn umask() -> u32 {
    // The kernel tells it without changing it (proc(5), `Umask`).
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o022)
}
