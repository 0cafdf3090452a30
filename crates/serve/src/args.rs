//! `hikyaku serve`: from arguments to a daemon that runs.

use crate::authorized::{Authorized, Permit};
use crate::daemon::{Admission, BindDaemon, Carries, Daemon, Forward, Grant, Settings};
use crate::images;
use crate::shares::{KeyRate, PerKey};
use anyhow::{Context, Error, Result, bail, ensure};
use clap::{ArgGroup, Args};
use hikyaku_console::{
    Folder, Interrupt, NoiseArgs, Tone, announce, begun, causes, misuse, say, with_remedy,
};
use hikyaku_crypto::{Fingerprint, Identity};
use hikyaku_forward::{AllowList, Pattern, Share};
use hikyaku_net::blocking::Stop;
use hikyaku_reach::dial::PORT;
use hikyaku_remote::{Limits, Writes};
use hikyaku_run_log::{Recorder, SharedProbe};
use hikyaku_store::{Store, StorePath};
use hikyaku_store_gfarm::{Dial, Gfarm, Here};
use hikyaku_store_local::{Local, NewModes, Sizes};
use hikyaku_units::{DataSize, Rate, parse_limit};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;

/// Options of the daemon.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("serve").multiple(true), group = ArgGroup::new("files"))]
pub struct DaemonArgs {
    /// Serve the files below this directory
    #[arg(long, value_name = "DIR", groups = ["serve", "files"], conflicts_with = "gfarm")]
    pub root: Option<PathBuf>,
    /// Serve the Gfarm file system of this user's Gfarm settings; on a node of it, replicas of the node are read from its
    /// own disk. With a value, replicas of that node only
    #[arg(long, value_name = "NODE", num_args = 0..=1, default_missing_value = "", groups = ["serve", "files"])]
    pub gfarm: Option<String>,
    /// Be a far gateway of 'hikyaku proxy' for these targets, beside files or alone: HOST is a name, *.NAME, an address,
    /// ADDRESS/BITS or *; PORTS are a number, FROM-TO or *. Without this nothing is forwarded
    #[arg(long, value_name = "HOST:PORTS", group = "serve")]
    pub allow: Vec<Pattern>,
    /// Address and port, of UDP and TCP: PORT, ADDRESS or ADDRESS:PORT (port 0: any that is free)
    #[arg(long, value_name = "ADDRESS", value_parser = listen, requires = "serve")]
    pub listen: Option<SocketAddr>,
    /// File with the keys of clients that may come in, a line each: [root=DIR,ro,max-rate=RATE,max-sessions=NUMBER,max-flows=NUMBER,forward=HOST:PORTS,no-forward,listen=ADDRESS:PORTS] ed25519:KEY. Default: authorized_keys beside the server's own key
    #[arg(long, value_name = "FILE", requires = "serve")]
    pub authorized_keys: Option<PathBuf>,
    /// The server's own key. Default: server_key in the state folder, made at the first start
    #[arg(long, value_name = "FILE", requires = "serve")]
    pub key: Option<PathBuf>,
    /// Send the sessions of each key at most this much together, and take at most as much from them
    #[arg(long, value_name = "RATE", requires = "serve", value_parser = parse_limit)]
    pub rate: Option<Rate>,
    /// Let clients change files; without this they can only read
    #[arg(long, requires = "files")]
    pub writable: bool,
    /// Let clients rely on what they have seen of a directory until this daemon tells them otherwise, and decide on changes
    /// themselves. Only where nothing but this daemon changes the files
    #[arg(long, requires = "files")]
    pub leases: bool,
    /// Let clients have windows of pictures, decoded here, which need little of a slow path. With a value, so many that take
    /// long to decode are made at once, and as many others; without one, as many as there are processors
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "0", requires = "serve")]
    pub images: Option<usize>,
    /// Write the state of this machine and of its sessions into this directory, for 'hikyaku report'
    #[arg(long, value_name = "DIR", requires = "serve")]
    pub log_dir: Option<PathBuf>,
    /// Attend to so many clients at once; one key may have a quarter of them, at least two if that leaves one to others, unless its line says max-sessions=
    #[arg(long, value_name = "COUNT", default_value = "200", requires = "serve")]
    pub max_clients: NonZeroUsize,
    /// The messages about clients.
    #[command(flatten)]
    pub noise: NoiseArgs,
}

/// How long sessions may go on after SIGTERM.
const DRAIN: Duration = Duration::from_secs(30);

/// What clients have sent and nothing has read may take this part (1/n) of the memory.
const UNREAD_PART: u64 = 2;

/// Runs the daemon until SIGTERM or SIGINT. `forward` attends to clients whose flows are forwarded. `memory` is what this
/// process may take.
///
/// # Errors
///
/// A file or a key cannot be read, or the port cannot be had.
pub fn run(
    args: &DaemonArgs,
    forward: Forward,
    memory: DataSize,
    interrupt: &Interrupt,
) -> Result<()> {
    let (served, name) = Served::of(args)?;
    let state = Folder::State.of_user()?;
    let key = args.key.clone().unwrap_or_else(|| state.join("server_key"));
    let identity = Identity::load_or_create(&key).map_err(|error| {
        let remedy = error.remedy();
        with_remedy(error.into(), remedy)
    })?;
    let list = args.authorized_keys.clone().unwrap_or_else(|| state.join("authorized_keys"));
    let authorized = Authorized::read(&list)?;
    let waits_for_keys = authorized.waits_for_keys();
    let fingerprint = identity.fingerprint();
    let admission = OfList {
        authorized,
        served,
        rate: args.rate,
        writes: if args.writable { Writes::Allowed } else { Writes::Refused },
        allowed: args.allow.iter().cloned().collect(),
        flows: PerKey::default(),
        rates: PerKey::default(),
    };
    let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);
    let listen = args.listen.unwrap_or(any);
    let recorder = args.log_dir.as_deref().map(|dir| {
        let (file, title) = (format!("serve-{}", listen.port()), format!("serve {name}"));
        Recorder::of_daemon(dir, &file, ("serve", &title), args.root.clone())
    });
    let settings = Settings {
        listen,
        identity: identity.clone(),
        admission: Box::new(admission),
        render: args.images.map(|count| match count {
            0 => images::render(thread::available_parallelism().map_or(1, usize::from)),
            count => images::render(count),
        }),
        probe: Arc::new(SharedProbe::new(args.root.clone())),
        recorder: recorder.transpose()?,
        leases: args.leases.then(Default::default),
        sessions: args.max_clients.get(),
        unread: DataSize::from_bytes(memory.bytes() / UNREAD_PART),
        drain: DRAIN,
        forward,
        carries: match (args.allow.is_empty(), args.root.is_some() || args.gfarm.is_some()) {
            (true, _) => Carries::Files,
            (false, true) => Carries::Both,
            (false, false) => Carries::Flows,
        },
    };
    let daemon = Daemon::bind(settings).map_err(no_port)?;
    if let Some(advice) = daemon.advice() {
        say(Tone::Note, advice);
    }
    if waits_for_keys {
        let place = Place { list: &list, is_usual: args.authorized_keys.is_none() };
        say(Tone::Note, place.advice(daemon.local_addr().port()));
    }
    announce(format!("serving {name} at {}, key {fingerprint}\n", daemon.local_addr()))?;
    interrupt.listen().context("cannot listen for signals")?;
    let stop = Stop::default();
    let (scope, told, main) = (interrupt.scope(), stop.clone(), thread::current());
    let _stopped = scope.on_stop(move || {
        told.set();
        main.unpark();
    });
    Ok(daemon.run(&stop)?)
}

/// Where the list of a daemon is.
struct Place<'a> {
    list: &'a Path,
    is_usual: bool,
}

impl Place<'_> {
    /// Advice for an empty list: the command that adds a client to it.
    fn advice(&self, port: u16) -> String {
        let list = self.list.display();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut command = "hikyaku keys install".to_owned();
        if port != PORT {
            command += &format!(" --port {port}");
        }
        if !self.is_usual {
            command += &format!(" --list {list}");
        }
        format!(
            "{list} has no keys: no client can connect yet\n\
             try: on a client: {command} {}",
            host.trim()
        )
    }
}

/// The port cannot be had: its kind decides the exit code.
fn no_port(error: BindDaemon) -> Error {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => Some("--listen PORT; ss -ulpn and ss -tlpn show who has this one"),
        ErrorKind::PermissionDenied => Some("a port of 1024 or above"),
        _ => None,
    };
    with_remedy(io::Error::new(error.kind(), error).into(), remedy)
}

/// The keys of the list, and what their holders get.
struct OfList {
    authorized: Authorized,
    served: Served,
    rate: Option<Rate>,
    writes: Writes,
    allowed: AllowList,
    flows: PerKey<AtomicU32>,
    rates: PerKey<KeyRate>,
}

impl Admission for OfList {
    fn permit(&self, key: &Fingerprint) -> Option<Permit> {
        self.authorized.find(key)
    }

    /// A key whose directory cannot be opened lets nobody in: whoever wrote `root=` wanted to show that and nothing else.
    fn grant(&self, key: &Fingerprint, permit: &Permit) -> Result<Grant, String> {
        let of_key = || self.flows.of(key, |_| true, AtomicU32::default);
        let flows = permit.flows(&self.allowed, |most| Share::new(of_key(), most));
        let store = self.served.for_key(permit.root.as_ref()).map_err(|error| {
            say(Tone::Error, format_args!("{key}: {}", causes(&error)));
            format!("what the key {key} may see is not served: {error:#}")
        })?;
        let rate = [self.rate, permit.max_rate].into_iter().flatten().min();
        let rate = rate
            .map(|rate| self.rates.of(key, |before| before.rate() == rate, || KeyRate::new(rate)));
        let writes = match self.writes {
            Writes::Allowed => permit.writes,
            Writes::Refused => Writes::Refused,
        };
        Ok(Grant { store, limits: Limits { writes, ..Limits::default() }, flows, rate })
    }
}

/// What is served.
enum Served {
    /// A directory of this machine.
    Dir(Arc<Local>),
    /// A Gfarm file system.
    Gfarm(Arc<dyn Store>),
    /// No files.
    Nothing,
}

impl Served {
    /// What the user wants to be served, and its name.
    fn of(args: &DaemonArgs) -> Result<(Self, String)> {
        if let Some(node) = &args.gfarm {
            let here = if node.is_empty() { Here::Any } else { Here::Node(node.clone()) };
            let gfarm = Gfarm::connect(None, Dial::default()).map_err(|error| {
                let remedy = error.remedy();
                with_remedy(error.into(), remedy)
            })?;
            let name = format!("gfarm://{}/", gfarm.server());
            let gfarm = gfarm.reading_here(here).recorded(begun());
            return Ok((Self::Gfarm(Arc::new(gfarm)), name));
        }
        let Some(root) = &args.root else {
            let allowed: Vec<String> = args.allow.iter().map(ToString::to_string).collect();
            if allowed.is_empty() {
                return Err(misuse("nothing to serve is named", "hikyaku serve --root DIR"));
            }
            return Ok((Self::Nothing, format!("connections to {}", allowed.join(", "))));
        };
        Ok((Self::Dir(open(root)?), root.display().to_string()))
    }

    /// What the holder of a key sees of it: all, or what is below `root`.
    fn for_key(&self, root: Option<&StorePath>) -> Result<Option<Arc<dyn Store>>> {
        match (self, root) {
            (Self::Nothing, _) => Ok(None),
            (Self::Dir(store), None) => Ok(Some(store.clone())),
            (Self::Gfarm(store), None) => Ok(Some(store.clone())),
            // Clients may write above it: a link that one of them has made is not followed.
            (Self::Dir(store), Some(root)) => {
                let below = store.below(root);
                let below = below.with_context(|| format!("cannot open root={root}"))?;
                Ok(Some(Arc::new(below)))
            }
            (Self::Gfarm(_), Some(_)) => {
                bail!("a Gfarm file system is not served in parts (root=)")
            }
        }
    }
}

/// The tree below `root`, as clients see it.
pub(crate) fn open(root: &Path) -> Result<Arc<Local>> {
    let store = Local::open(root, NewModes::default())
        .map(|store| store.recorded(begun().as_deref()).with_sizes(Sizes::Known));
    Ok(Arc::new(store?))
}

/// `PORT`, `ADDRESS` or `ADDRESS:PORT`.
fn listen(text: &str) -> Result<SocketAddr> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(any, port));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    let plain = text.trim_start_matches('[').trim_end_matches(']');
    let ip: Result<IpAddr, _> = plain.parse();
    ensure!(ip.is_ok(), "expected PORT, ADDRESS or ADDRESS:PORT, as in 5209 or 0.0.0.0:5209");
    Ok(SocketAddr::new(ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), PORT))
}
