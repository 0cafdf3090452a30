//! Sessions with daemons on loopback: one connection for many calls, and the words for what goes wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use hikyaku_crypto::KnownPeers;
use hikyaku_mover::{
    Choice, Destination, Done, Download, HostState, Kind, Meter, Modes, Parameters, Session,
    SessionError, Setup, Streams, Together, Upload, remote_path,
};
use hikyaku_net::blocking::{Stop, block_on};
use hikyaku_net::{Fingerprint, Identity, Listener, ListenerConfig, Memory as Paths};
use hikyaku_net::{ServerCredentials, code};
use hikyaku_reach::Versions;
use hikyaku_reach::daemon::{Offered, STORE, offer};
use hikyaku_reach::dial::{Address, Via};
use hikyaku_reach::tcp::Pipes;
use hikyaku_remote::{Limits, Writes};
use hikyaku_run_log::SharedProbe;
use hikyaku_serve::{Carries, Daemon, Grant, Settings};
use hikyaku_session::ClientConfig;
use hikyaku_store::{Finish, Make, Memory, Naming, Store, StorePath};
use hikyaku_transfer::FailureKind;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A daemon that runs in a thread of this process.
struct Running {
    address: SocketAddr,
    /// Connections of clients so far.
    connections: Arc<AtomicUsize>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(store: Arc<dyn Store>, sessions: usize) -> Self {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let daemon = Daemon::bind(Settings {
            listen: "127.0.0.1:0".parse().unwrap(),
            identity: Identity::generate().unwrap(),
            admission: Box::new(move |_: &Fingerprint| {
                counted.fetch_add(1, Ordering::Relaxed);
                let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
                Some(Grant { store: Some(store.clone()), flows: None, limits, rate: None })
            }),
            render: None,
            leases: None,
            probe: Arc::new(SharedProbe::new(None)),
            recorder: None,
            sessions,
            forward: |_, _| Ok(()),
            unread: hikyaku_units::DataSize::from_bytes(1 << 30),
            carries: Carries::Files,
            drain: Duration::ZERO,
        })
        .unwrap();
        let (stop, address) = (Stop::default(), daemon.local_addr());
        let told = stop.clone();
        let thread = Some(thread::spawn(move || daemon.run(&told).unwrap()));
        Self { address, connections, stop, thread }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("hikyaku-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn setup(scratch: &Scratch, servers: &[SocketAddr]) -> Setup {
    let address = |at: &SocketAddr| Address { host: at.ip().to_string(), port: at.port() };
    Setup {
        servers: servers.iter().map(address).collect(),
        keys: Vec::new(),
        client: ClientConfig {
            identity: Identity::generate().unwrap(),
            known: KnownPeers::at(scratch.0.join("known_peers")),
            memory: Paths::Off,
            // The counts are exact only if no second carrier is tried on a busy machine.
            via: Via::Udp,
            pipes: Pipes::Auto,
            family: None,
            window: None,
            rate: None,
            silence: None,
        },
        parameters: Parameters::default(),
        log_dir: None,
    }
}

fn put(store: &Memory, at: &str, bytes: &[u8]) {
    let draft = store.create(&path(at), &Make::default()).unwrap();
    draft.write_at(0, bytes).unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
}

fn path(text: &str) -> StorePath {
    remote_path(text.as_bytes()).unwrap()
}

fn download(
    session: &Session,
    source: &str,
    target: &Path,
    stop: bool,
) -> Result<Done, SessionError> {
    session.download(&Download {
        sources: &[path(source)],
        target: Destination::Here(target),
        together: Together { others: 0, claims: &Mutex::default() },
        choice: &Choice::TREES,
        modes: Modes::Usual,
        streams: &Streams::Refused,
        meter: &Meter::new(session.met().len()),
        stop: &AtomicBool::new(stop),
    })
}

fn upload(session: &Session, source: &Path, target: &str) -> Result<Done, SessionError> {
    session.upload(&Upload {
        sources: &[source.to_owned()],
        target: &path(target),
        together: Together { others: 0, claims: &Mutex::default() },
        choice: &Choice::TREES,
        modes: Modes::Usual,
        meter: &Meter::new(session.met().len()),
        stop: &AtomicBool::new(false),
    })
}

/// How often each server was connected, as the session tells.
fn connections(session: &Session) -> Vec<u32> {
    let up = |state| match state {
        HostState::Up(up) => {
            assert!(up.is_writable && up.space.is_some(), "{up:?}");
            up.connections
        }
        HostState::Away(why) => panic!("{why}"),
    };
    session.status().into_iter().map(|host| up(host.state)).collect()
}

#[test]
fn many_calls_of_a_session_need_one_connection_to_each_server() {
    let scratch = Scratch::new("session");
    let stores: Vec<_> = (0..2).map(|_| Arc::new(Memory::default())).collect();
    for (n, store) in stores.iter().enumerate() {
        store.make_dir(&path("run7"), 0o755).unwrap();
        put(store, &format!("run7/{n}"), &vec![n as u8; 3_000_000]);
    }
    let daemons: Vec<_> = stores.iter().map(|store| Running::start(store.clone(), 9)).collect();
    let addresses: Vec<_> = daemons.iter().map(|daemon| daemon.address).collect();
    let session = setup(&scratch, &addresses).start().unwrap();

    let first = download(&session, "run7", &scratch.0.join("a"), false).unwrap();
    assert_eq!((first.files, first.failed), (2, vec![]));
    assert_eq!(connections(&session), [1, 1]);
    fs::create_dir(scratch.0.join("run8")).unwrap();
    for n in 0..20u8 {
        fs::write(scratch.0.join(format!("run8/{n}")), vec![n; 400_000]).unwrap();
    }
    let sent = upload(&session, &scratch.0.join("run8"), "").unwrap();
    assert_eq!((sent.files, sent.failed), (20, vec![]));
    assert_eq!(connections(&session), [1, 1]);
    let back = download(&session, "/run8/", &scratch.0.join("b"), false).unwrap();
    assert_eq!((back.files, back.failed), (20, vec![]));
    for n in 0..20u8 {
        assert!(fs::read(scratch.0.join(format!("b/{n}"))).unwrap() == vec![n; 400_000]);
    }
    let counted = || -> Vec<usize> {
        daemons.iter().map(|daemon| daemon.connections.load(Ordering::Relaxed)).collect()
    };
    assert_eq!(counted(), [1, 1]);

    // A call that is stopped ends the connections, and the next call makes new ones. Where the call saw one of them end
    // before it saw that it is stopped, it has connected again itself.
    let is_new = |count: usize| (2..=3).contains(&count);
    let stopped = download(&session, "run8", &scratch.0.join("c"), true).unwrap_err();
    assert_eq!(stopped.kind(), Some(Kind::Stopped), "{stopped}");
    let made = connections(&session);
    assert!(made.iter().all(|&count| is_new(count as usize)), "{made:?}");
    session.stop();
    let made = counted();
    assert!(made.iter().all(|&count| is_new(count)), "{made:?}");
}

/// A server that speaks another version of the protocol than this program.
fn of_another_version() -> SocketAddr {
    let credentials = ServerCredentials::mutual(&Identity::generate().unwrap());
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::bind(any, ListenerConfig::new(credentials)).unwrap();
    let address = listener.local_addr();
    thread::spawn(move || {
        let connection = block_on(listener.accept()).unwrap();
        let newer = [Offered { versions: Versions::only(77), ..STORE }];
        let offered = offer(&connection.clone().into(), &newer, Duration::from_secs(60));
        assert!(offered.is_err());
        connection.close(hikyaku_net::AppCode::new(code::APPLICATION), "no service");
        block_on(connection.closed());
    });
    address
}

#[test]
fn what_goes_wrong_has_a_kind_and_words() {
    let scratch = Scratch::new("session-errors");
    let store = Arc::new(Memory::with_room(1 << 20));
    let daemon = Running::start(store, 1);
    let kind = |setup: Setup| match setup.start() {
        Ok(_) => panic!("a session began"),
        Err(error) => {
            let (kind, remedy) = (error.kind().unwrap(), error.remedy().unwrap());
            assert!(remedy.starts_with("try: "), "{remedy}");
            (kind, error.to_string())
        }
    };
    let mut unknown = setup(&scratch, &[]);
    unknown.servers = vec!["no-such-host.invalid".parse().unwrap()];
    let (unknown, words) = kind(unknown);
    assert_eq!(unknown, Kind::UnknownHost, "{words}");
    assert!(words.contains("no-such-host.invalid"), "{words}");

    let other: Fingerprint = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU".parse().unwrap();
    for via in [Via::Auto, Via::Tcp] {
        let mut wrong = setup(&scratch, &[daemon.address]);
        (wrong.keys, wrong.client.via) = (vec![other], via);
        let (wrong, words) = kind(wrong);
        assert_eq!(wrong, Kind::WrongKey, "{via:?}: {words}");
    }
    let (version, words) = kind(setup(&scratch, &[of_another_version()]));
    assert_eq!(version, Kind::OtherVersion, "{words}");
    assert!(words.contains("version"), "{words}");

    // The only place is taken.
    let session = setup(&scratch, &[daemon.address]).start().unwrap();
    let (full, words) = kind(setup(&scratch, &[daemon.address]));
    assert_eq!(full, Kind::ServerFull, "{words}");
    assert!(words.contains("as many sessions as it may have"), "{words}");

    // Two kinds of files, and the session goes on.
    fs::write(scratch.0.join("large"), vec![7; 2 << 20]).unwrap();
    let done = upload(&session, &scratch.0.join("large"), "").unwrap();
    let failed = done.failed.first().unwrap();
    assert_eq!(failed.kind, Kind::File(FailureKind::NoSpace), "{}", failed.text);
    let outside = remote_path(b"run7/../../secret").unwrap_err();
    assert_eq!(outside.kind(), Some(Kind::OutsideRoot), "{outside}");
    assert!(outside.to_string().contains("../../secret"), "{outside}");
    let nothing = download(&session, "nothing", &scratch.0, false).unwrap_err();
    assert_eq!(nothing.kind(), Some(Kind::File(FailureKind::NotFound)), "{nothing}");
    assert_eq!(connections(&session), [1]);
}

#[test]
fn the_log_directory_of_a_session_has_samples_and_files_of_each_transfer() {
    let scratch = Scratch::new("session-log");
    let store = Arc::new(Memory::default());
    for (name, length) in [("a", 3_000_000), ("b", 10)] {
        put(&store, name, &vec![7; length]);
    }
    let server = Running::start(store, 8);
    let dir = scratch.0.join("logs/of/sessions");
    let setup = Setup { log_dir: Some(dir.clone()), ..setup(&scratch, &[server.address]) };
    let session = setup.start().unwrap();
    for round in ["one", "two"] {
        let target = scratch.0.join(round);
        fs::create_dir(&target).unwrap();
        for name in ["a", "b"] {
            assert_eq!(download(&session, name, &target, false).unwrap().files, 1);
        }
    }
    fs::write(scratch.0.join("c"), "up").unwrap();
    upload(&session, &scratch.0.join("c"), "").unwrap();
    session.stop();
    let logs: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|log| log.unwrap().path()).collect();
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    let text = fs::read_to_string(log).unwrap();
    let lines = |words: &[&str]| {
        text.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    };
    // On a busy machine a server may be silent for so long that a file is begun there once more.
    for (path, times) in [("a", 2), ("b", 2), ("c", 1)] {
        let path = format!("\"path\":\"{path}\"");
        for stage in ["begin", "end"] {
            let found = lines(&[&path, &format!("\"{stage}\"")]);
            assert!(found >= times, "{path} {stage}: {text}");
        }
    }
    assert!(lines(&["\"flow\""]) >= 3, "{text}");
    assert_eq!(lines(&["\"files\":5", "\"bytes\":6000022"]), 1, "{text}");

    let file = scratch.0.join("c");
    let refused = Setup { log_dir: Some(file), ..self::setup(&scratch, &[server.address]) }.start();
    assert!(refused.is_err_and(|error| error.to_string().contains("cannot write the log")));
}
