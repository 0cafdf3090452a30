//! Copies from daemons (`hikyaku serve`): one, or many that have parts of the same tree.

use crate::args::CopyArgs;
use crate::location::Servers;
use crate::outcome::{code_of_failures, failed};
use anyhow::{Context, Error, Result, bail, ensure};
use hikyaku_crypto::{Identity, KnownPeers};
use hikyaku_fan::{Census, FetchError, Fetched, Job, Meter, Why, census, fetch};
use hikyaku_fs::{PeerPath, Shown};
use hikyaku_net::{Memory, Trust};
use hikyaku_reach::dial::{DialError, Dialler};
use hikyaku_reach::service::{NoService, STORE};
use hikyaku_remote::{Client, RemoteError};
use hikyaku_store::{ErrorKind, StorePath};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::FailureKind;
use hikyaku_units::{DataSize, Rate};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// How long a daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the line of progress is written.
const EVERY: Duration = Duration::from_millis(250);
/// Failures that are told one by one.
const TOLD: usize = 1000;

/// Copies what the servers have at these paths to `target`.
pub(crate) fn run(args: &CopyArgs, sources: &[Servers], target: &Path) -> Result<ExitCode> {
    let options = args.options()?;
    let first = sources.first().context("no source")?;
    ensure!(
        sources.iter().all(|source| source.servers == first.servers),
        "sources on several sets of servers go into several commands"
    );
    let clients = connect(args, first)?;
    let mut outcome = Outcome::default();
    for source in sources {
        let root = StorePath::new(&source.path)
            .map_err(|error| failed(FailureKind::BadName, format!("{source}: {error}")))?;
        let found = census(&clients, &root);
        for (server, error) in &found.lost {
            // One that does not have this path takes no part.
            if error.is_of_server() {
                eprintln!("hikyaku: {}: {error}", first.servers[server.0]);
            }
        }
        let is_nothing = found.files.is_empty() && found.dirs.is_empty() && found.links.is_empty();
        if is_nothing && found.left_out.is_empty() && root != StorePath::ROOT {
            return Err(nothing(source, &found));
        }
        let is_dir = root == StorePath::ROOT
            || found.dirs.first().is_some_and(|(path, _)| path.as_bytes() == root.as_bytes());
        if is_dir && !options.recursive {
            let text = format!("{source}: is a directory, and -r was not given");
            return Err(failed(FailureKind::IsDirectory, text));
        }
        let place = Place::new(&root, target, sources.len() > 1)?;
        let umask = if options.preserve { 0 } else { umask() };
        one(args, (&clients, first), &found, (place, umask), &mut outcome)?;
    }
    Ok(ExitCode::from(match outcome.kinds.is_empty() {
        true => 0,
        false => code_of_failures(&outcome.kinds),
    }))
}

/// What came of it so far.
#[derive(Default)]
struct Outcome {
    kinds: BTreeSet<FailureKind>,
    told: usize,
}

/// Connects to all servers at once. Those that cannot be reached are told; one must be there.
fn connect(args: &CopyArgs, servers: &Servers) -> Result<Vec<Client>> {
    let known = KnownPeers::of_user()
        .context("try: set HOME or XDG_STATE_HOME")
        .context("no directory to keep keys in")?;
    let path = known.path().with_file_name("identity");
    let identity = Identity::load_or_create(&path)?;
    let fingerprint = identity.fingerprint();
    let count = servers.servers.len();
    let dialler = Dialler::new(identity, count, Memory::of_user())?;
    if let Some(advice) = dialler.advice().filter(|_| !args.is_quiet()) {
        eprintln!("hikyaku: {advice}");
    }
    let dial = |address| -> Result<_, DialError> {
        dialler.dial(address, Trust::FirstUse(known.clone()), &STORE, PATIENCE)
    };
    let dialled: Vec<Result<_, DialError>> = thread::scope(|scope| {
        let all: Vec<_> =
            servers.servers.iter().map(|address| scope.spawn(|| dial(address))).collect();
        let all = all.into_iter().filter_map(|one| one.join().ok());
        all.collect()
    });
    let mut clients = Vec::new();
    let mut first = None;
    for (address, dialled) in servers.servers.iter().zip(dialled) {
        match dialled {
            Ok(dialled) => {
                if let Some(key) = dialled.first_use.filter(|_| !args.is_quiet()) {
                    eprintln!("hikyaku: {address} is new, its key is {key}");
                }
                clients.push(Client::new(dialled.connection)?);
            }
            Err(error) => {
                let error = explained(error, &fingerprint.to_string());
                if count > 1 {
                    eprintln!("hikyaku: {address}: {}", error.root_cause());
                }
                first.get_or_insert_with(|| error.context(address.to_string()));
            }
        }
    }
    // The sockets must outlive the connections: they end with the program.
    std::mem::forget(dialler);
    match (clients.is_empty(), first) {
        (true, Some(error)) => Err(error),
        _ => Ok(clients),
    }
}

/// What the user can do about a daemon that cannot be used.
fn explained(error: DialError, key: &str) -> Error {
    match error {
        DialError::Service(NoService::NotAuthorised(text)) => failed(FailureKind::Denied, text)
            .context(format!(
                "try: let the server's administrator put this line into its list of keys: {key}"
            )),
        DialError::Service(NoService::Later(text)) => failed(FailureKind::Busy, text),
        DialError::Service(error) => failed(FailureKind::Unsupported, error.to_string()),
        DialError::Connect(error) => error.into(),
    }
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
    shown: PathBuf,
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
            let (store, shown) = (Arc::new(open(target)?), target.to_path_buf());
            return Ok(Self { store, skipped, renamed: None, shown });
        }
        let name = target.file_name().unwrap_or_else(|| OsStr::new("."));
        let renamed = PeerPath::new(name.as_bytes())
            .with_context(|| format!("{} cannot be the name of a file", target.display()))?;
        let dir = target.parent().unwrap_or_else(|| Path::new("."));
        let (store, shown) = (Arc::new(open(dir)?), dir.to_path_buf());
        Ok(Self { store, skipped, renamed: Some(renamed), shown })
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
    args: &CopyArgs,
    (clients, servers): (&[Client], &Servers),
    found: &Census,
    (place, umask): (Place, u32),
    outcome: &mut Outcome,
) -> Result<()> {
    let meter = Meter::new(clients.len());
    let stop = AtomicBool::new(false);
    let job = Job {
        servers: clients,
        census: found,
        store: place.store.clone(),
        place: &|path| place.of(path),
        umask,
        meter: &meter,
        stop: &stop,
    };
    let begin = Instant::now();
    let main = thread::current();
    let fetched = thread::scope(|scope| {
        let work = scope.spawn(|| {
            let fetched = fetch(&job);
            main.unpark();
            fetched
        });
        let is_shown = !args.is_quiet() && std::io::stderr().is_terminal();
        while !work.is_finished() {
            thread::park_timeout(EVERY);
            if is_shown {
                eprint!("\r{}\x1b[K", progress(&meter, found, begin));
                let _ = std::io::stderr().flush();
            }
        }
        if is_shown {
            eprint!("\r\x1b[K");
        }
        work.join()
    });
    let fetched: Fetched = match fetched {
        Ok(fetched) => fetched.context("cannot start a thread")?,
        Err(_) => bail!("a thread of the copy panicked"),
    };
    for (server, error) in &fetched.lost {
        eprintln!("hikyaku: {}: {error}; the others have taken over", servers.servers[server.0]);
    }
    let failures =
        found.left_out.iter().map(|left| (&left.path, kind_of_why(left.why), left.why.to_string()));
    let failures = failures.chain(
        fetched.failed.iter().map(|(path, error)| (path, kind_of_fetch(error), error.to_string())),
    );
    for (path, kind, text) in failures {
        outcome.kinds.insert(kind);
        outcome.told += 1;
        if outcome.told <= TOLD {
            eprintln!("hikyaku: {}: {text}", Shown::new(path));
        }
    }
    if !args.is_quiet() {
        let time = begin.elapsed().as_secs_f64();
        let rate = Rate::from_bits_per_sec((fetched.bytes as f64 * 8.0 / time) as u64);
        eprintln!(
            "{} files, {} from {} servers to {} in {time:.2} s, {rate}{}",
            fetched.files,
            DataSize::from_bytes(fetched.bytes),
            meter.servers().iter().filter(|server| server.bytes() > 0).count(),
            place.shown.display(),
            match fetched.kept {
                0 => String::new(),
                kept => format!("; {kept} were there"),
            }
        );
    }
    Ok(())
}

/// The line of progress.
fn progress(meter: &Meter, found: &Census, begin: Instant) -> String {
    let (done, all) = (meter.written() + meter.kept(), found.bytes());
    let rate = meter.written() as f64 * 8.0 / begin.elapsed().as_secs_f64();
    format!(
        "{} of {}, {} of {} files, {}",
        DataSize::from_bytes(done),
        DataSize::from_bytes(all),
        meter.files(),
        found.files.len(),
        Rate::from_bits_per_sec(rate as u64)
    )
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
const fn kind_of(kind: ErrorKind) -> FailureKind {
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

fn umask() -> u32 {
    // The kernel tells it without changing it (proc(5), `Umask`).
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o022)
}
