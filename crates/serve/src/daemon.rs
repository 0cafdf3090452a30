//! The daemon: its ports, and the admission of clients.

use crate::authorized::Permit;
use crate::log;
use crate::sessions::{Guest, Sessions, not_authorised};
use crate::shares::KeyRate;
use crate::tcp;
use hikyaku_console::{Tone, say};
use hikyaku_forward::Permits;
use hikyaku_net::blocking::{Cut, Stop, block_on, wait};
use hikyaku_net::{
    AcceptError, EndpointError, Fingerprint, Identity, Listener, ListenerConfig, ServerCredentials,
    StalledStreams, code,
};
use hikyaku_reach::Connection as Carried;
use hikyaku_reach::daemon::codes::{FULL, NOT_AUTHORISED, NOT_SERVED};
use hikyaku_reach::daemon::{
    FORWARD, HOMES, IMAGES, LEASES, Offered, STORE, UNSIZED_UPLOADS, UPLOADS, WITHDRAWALS, WRITES,
    offer,
};
use hikyaku_reach::tcp::TcpDoor;
use hikyaku_remote::{Leases, Limits, Locks, Party, Processes, Render, Server, Writes};
use hikyaku_run_log::{Recorder, SharedProbe};
use hikyaku_store::Store;
use hikyaku_units::DataSize;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Settings of a daemon.
pub struct Settings {
    /// Address and port, for UDP and TCP. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// The key by which clients know the daemon.
    pub identity: Identity,
    /// Decides which clients are admitted.
    pub admission: Box<dyn Admission>,
    /// Decodes windows of pictures, if clients may request them.
    pub render: Option<Render>,
    /// Reads the state of this machine, which clients may request.
    pub probe: Arc<SharedProbe>,
    /// The log for samples of this machine and of the sessions.
    pub recorder: Option<Recorder>,
    /// The leases of all clients, if all changes of the files go through this daemon.
    pub leases: Option<Arc<Leases>>,
    /// Maximum number of concurrent sessions. Default of `hikyaku serve`: 200.
    pub sessions: usize,
    /// Maximum of received and unread bytes of all sessions. Above it, the sessions that hold most are closed. Default of
    /// `hikyaku serve`: half of the memory that the process may take.
    pub unread: DataSize,
    /// Runs sessions with forwarded flows.
    pub forward: Forward,
    /// The services of the daemon.
    pub carries: Carries,
    /// Time for which sessions may continue after the daemon was stopped. Default: 30 s.
    pub drain: Duration,
}

/// Decides which clients are admitted, and with which rights. It is called again while a session lasts.
pub trait Admission: Send + Sync {
    /// The rights of the holder of a key; `None` if the holder is not admitted.
    fn permit(&self, key: &Fingerprint) -> Option<Permit>;

    /// The files, flows and limits of the holder of a key with this permit.
    ///
    /// # Errors
    ///
    /// A directory or list of the key cannot be opened. The text is sent to the client, which is not admitted.
    fn grant(&self, key: &Fingerprint, permit: &Permit) -> Result<Grant, String>;
}

/// Admits every key for which the function returns a grant.
impl<F: Fn(&Fingerprint) -> Option<Grant> + Send + Sync> Admission for F {
    fn permit(&self, _: &Fingerprint) -> Option<Permit> {
        Some(Permit { max_sessions: Some(usize::MAX), ..Permit::default() })
    }

    fn grant(&self, key: &Fingerprint, _: &Permit) -> Result<Grant, String> {
        self(key).ok_or_else(|| not_authorised(key))
    }
}

/// Runs a session with forwarded flows, as far as the lists permit them, until its connection ends.
pub type Forward = fn(Carried, Permits) -> anyhow::Result<()>;

/// The services of a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carries {
    /// Files.
    Files,
    /// Flows of a proxy.
    Flows,
    /// Both.
    Both,
}

/// Files, flows and limits of the holder of a key.
pub struct Grant {
    /// The visible files, if any.
    pub store: Option<Arc<dyn Store>>,
    /// The flows that are forwarded; `None` if none are.
    pub flows: Option<Permits>,
    /// Limits that the client cannot raise.
    pub limits: Limits,
    /// The most payload of all sessions of the key.
    pub rate: Option<Arc<KeyRate>>,
}

/// A daemon that has its port.
pub struct Daemon {
    listener: Listener,
    door: TcpDoor,
    attendance: Attendance,
}

/// State that all sessions share.
#[derive(Clone)]
pub(crate) struct Attendance {
    settings: Arc<Settings>,
    sessions: Arc<Sessions>,
    locks: Arc<Locks>,
    /// The names of the processes of clients.
    processes: Arc<Processes>,
}

/// Why the daemon has no port.
#[derive(Debug, thiserror::Error)]
#[error("{address}: cannot listen")]
pub struct BindDaemon {
    address: SocketAddr,
    source: NoPort,
}

/// Why one of the two ports cannot be had.
#[derive(Debug, thiserror::Error)]
enum NoPort {
    #[error(transparent)]
    Udp(#[from] EndpointError),
    #[error("the port of TCP")]
    Tcp(#[from] io::Error),
}

impl BindDaemon {
    /// The kind of failure.
    pub fn kind(&self) -> io::ErrorKind {
        match &self.source {
            NoPort::Udp(error) => error.kind(),
            NoPort::Tcp(error) => error.kind(),
        }
    }
}

/// Time within which a client must choose a service.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between checks whether the sessions are still permitted.
const REVIEW_EVERY: Duration = Duration::from_secs(2);
/// Interval at which that thread checks whether the daemon ends.
const LOOK: Duration = Duration::from_millis(200);

impl Daemon {
    /// Takes the port.
    ///
    /// # Errors
    ///
    /// The port is taken, or the user may not have it.
    pub fn bind(settings: Settings) -> Result<Self, BindDaemon> {
        let (address, carries) = (settings.listen, settings.carries);
        let mut ports = ports(address, &settings.identity, carries);
        // A port that is free for UDP may be taken for TCP.
        for _ in 1..TRIES {
            if ports.is_ok() || address.port() != 0 {
                break;
            }
            ports = self::ports(address, &settings.identity, carries);
        }
        let (listener, door) = ports.map_err(|source| BindDaemon { address, source })?;
        let attendance = Attendance {
            settings: Arc::new(settings),
            sessions: Arc::default(),
            locks: Arc::default(),
            processes: Arc::default(),
        };
        Ok(Self { listener, door, attendance })
    }

    /// The address and the port that it has.
    pub const fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// A command that would make the socket faster, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.listener.advice()
    }

    /// Attends to clients until `stop` is set; then no more are accepted, and those that are there have the time of
    /// [`Settings::drain`].
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn run(&self, stop: &Stop) -> Result<(), AcceptError> {
        let is_over = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            let guests = scope.spawn(|| tcp::accept(&self.door, &self.attendance, &is_over));
            scope.spawn(|| self.attendance.review(&is_over));
            if let Some(recorder) = &self.attendance.settings.recorder {
                scope.spawn(|| log::keep(recorder, &self.attendance.sessions, &is_over));
            }
            let ended = loop {
                match wait(self.listener.accept(), stop, None) {
                    Ok(Ok(connection)) => {
                        let key = connection.client_key();
                        self.attendance.admit(&connection.into(), key);
                    }
                    Ok(Err(error)) => break Err(error),
                    Err(Cut::Stopped | Cut::TooLate) => break Ok(()),
                }
            };
            is_over.store(true, Ordering::Relaxed);
            // A panic there has been printed; what remains is to end.
            let _ = guests.join();
            ended
        });
        self.listener.stop_accepting();
        self.attendance.sessions.drain(self.attendance.settings.drain);
        ended
    }
}

/// Streams of a client: flows that are open or end.
const FLOWS_MAX: u32 = 5120;
/// Flows survive an outage of this length, where the client waits as long.
const SILENCE_OF_FLOWS: Duration = Duration::from_secs(180);

/// How often another port is tried, where any will do.
const TRIES: usize = 8;

fn ports(
    address: SocketAddr,
    identity: &Identity,
    carries: Carries,
) -> Result<(Listener, TcpDoor), NoPort> {
    let credentials = ServerCredentials::mutual(identity);
    let mut config = ListenerConfig::new(credentials.clone());
    if carries != Carries::Files {
        config.transport.max_streams = FLOWS_MAX;
        config.transport.idle_timeout = SILENCE_OF_FLOWS;
    }
    if carries == Carries::Flows {
        // A destination that reads nothing must not block the other flows of the client. This is not used where files are
        // written as well, because a slow disk would have the same effect.
        config.transport.stalled = StalledStreams::Stop;
    }
    let listener = Listener::bind(address, config)?;
    let door = TcpDoor::bind(listener.local_addr(), credentials)?;
    Ok((listener, door))
}

/// Received and unread bytes of a client. Connections over pipes have small windows of their own, and count as zero.
fn unread(guest: &Guest) -> DataSize {
    let seen = block_on(guest.connection.seen());
    DataSize::from_bytes(seen.and_then(|seen| seen.unread).map_or(0, |unread| unread.bytes))
}

impl Attendance {
    /// Ends sessions that are not permitted any more, until `is_over` is set.
    fn review(&self, is_over: &AtomicBool) {
        let mut last = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
            self.sessions.relieve(self.settings.unread, unread);
            if last.elapsed() >= REVIEW_EVERY {
                last = Instant::now();
                self.sessions.review(|key| self.settings.admission.permit(key));
            }
        }
    }

    /// Admits a client, or closes its connection with the reason.
    pub(crate) fn admit(&self, connection: &Carried, key: Option<Fingerprint>) {
        let refuse = |code, text: &str| connection.close(code, text);
        let Some(key) = key else {
            return refuse(NOT_AUTHORISED, "this server wants to see a key");
        };
        let admission = &self.settings.admission;
        let Some(permit) = admission.permit(&key) else {
            return refuse(NOT_AUTHORISED, &not_authorised(&key));
        };
        let grant = match admission.grant(&key, &permit) {
            Ok(grant) => grant,
            Err(text) => return refuse(NOT_SERVED, &text),
        };
        let guest = Guest { connection: connection.clone(), key, permit };
        let place = match self.sessions.enter(guest, self.settings.sessions) {
            Ok(place) => place,
            Err(full) => return refuse(FULL, &full.to_string()),
        };
        if let Some(rate) = &grant.rate {
            rate.limit(connection);
        }
        let (carried, forward) = (connection.clone(), self.settings.forward);
        let (render, leases) = (self.settings.render.clone(), self.settings.leases.clone());
        let (locks, probe) = (self.locks.clone(), self.settings.probe.clone());
        let processes = self.processes.clone();
        let attend = move || {
            say(Tone::Detail, format_args!("{key} begins a session"));
            // `offer` has sent the reason to a client that requests no service, or one that is not offered.
            let changes = Changes::of(grant.limits.writes, grant.store.as_ref());
            let features = features(render.is_some(), leases.is_some(), changes);
            let store = Offered { features: &features, ..STORE };
            let offered: Vec<Offered<'_>> =
                [grant.store.is_some().then_some(store), grant.flows.is_some().then_some(FORWARD)]
                    .into_iter()
                    .flatten()
                    .collect();
            let chosen = offer(&carried, &offered, PATIENCE).map(|(service, _)| service.name);
            let ended = match (chosen, grant.store, grant.flows) {
                (Ok(name), _, Some(flows)) if name == FORWARD.name => {
                    forward(carried.clone(), flows).map_err(|error| format!("{error:#}"))
                }
                (Ok(_), Some(store), _) => {
                    let server = Server::new(store, grant.limits);
                    let server = server.with_views(render).with_reports(Some(probe));
                    let party = Party(*key.as_bytes());
                    let server = server.with_leases(leases, party).with_locks(Some(locks));
                    let server = server.with_processes(processes, party);
                    server.attend(carried.clone()).map(drop).map_err(|error| error.to_string())
                }
                _ => Err("no service".to_owned()),
            };
            say(Tone::Detail, format_args!("{key} ends a session"));
            if let Err(text) = ended {
                carried.close(code::APPLICATION, &text);
            }
            // Sessions of the key that come later share its rate as long as this one lasts.
            drop((place, grant.rate));
        };
        let named = thread::Builder::new().name("serve-session".to_owned());
        if named.spawn(attend).is_err() {
            refuse(FULL, "this server has no room for another thread: try later");
        }
    }
}

/// The changes that a client may make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changes {
    Nothing,
    /// It may store whole files. A mount needs changes in place, so it is offered none of its writing: it would learn only
    /// when a new file is closed, and empty, that the store cannot take the bytes.
    WholeFiles,
    Everything,
}

impl Changes {
    fn of(writes: Writes, store: Option<&Arc<dyn Store>>) -> Self {
        let in_place = store.is_some_and(|store| store.abilities().update);
        match (writes, in_place) {
            (Writes::Refused, _) => Self::Nothing,
            (Writes::Allowed, false) => Self::WholeFiles,
            (Writes::Allowed, true) => Self::Everything,
        }
    }
}

/// The features of the files that are offered to a client of a daemon, whose paths begin at the root.
pub(crate) fn features(has_images: bool, has_leases: bool, changes: Changes) -> Vec<&'static str> {
    let is_offered = |feature: &&str| match *feature {
        HOMES => false,
        IMAGES => has_images,
        LEASES => has_leases,
        UNSIZED_UPLOADS | UPLOADS => changes != Changes::Nothing,
        WITHDRAWALS | WRITES => changes == Changes::Everything,
        _ => true,
    };
    STORE.features.iter().copied().filter(is_offered).collect()
}
