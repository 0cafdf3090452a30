//! The port, and who may come in.

use crate::sessions::Sessions;
use crate::tcp;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{
    AcceptError, EndpointError, Fingerprint, Identity, Listener, ListenerConfig, ServerCredentials,
    code,
};
use hikyaku_reach::Connection as Carried;
use hikyaku_reach::daemon::codes::{FULL, NOT_AUTHORISED};
use hikyaku_reach::daemon::{IMAGES, MOUNTS, Offered, PICKS, STORE, WRITES, offer};
use hikyaku_reach::tcp::TcpDoor;
use hikyaku_remote::{Limits, Render, Server, Writes};
use hikyaku_store::Store;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What a daemon is to do.
pub struct Settings {
    /// The address and port. Port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The key by which clients know the daemon.
    pub identity: Identity,
    /// What the holder of a key may do; `None` for one that may not come in.
    pub authorize: Authorize,
    /// What makes windows of pictures, if clients may have them.
    pub render: Option<Render>,
    /// Sessions at once. One more is refused. Default of `hikyaku serve`: 200.
    pub sessions: usize,
    /// How long sessions may go on after the daemon was told to end. Default: 30 s.
    pub drain: Duration,
}

/// Tells what the holder of a key may do; `None` for one that may not come in.
pub type Authorize = Box<dyn Fn(&Fingerprint) -> Option<Grant> + Send + Sync>;

/// What the holder of a key may do.
pub struct Grant {
    /// The files that it sees.
    pub store: Arc<dyn Store>,
    /// Limits that the client cannot raise.
    pub limits: Limits,
}

/// A daemon that has its port.
pub struct Daemon {
    listener: Listener,
    door: TcpDoor,
    attendance: Attendance,
}

/// What a session needs. Clones share it.
#[derive(Clone)]
pub(crate) struct Attendance {
    settings: Arc<Settings>,
    sessions: Arc<Sessions>,
}

/// Why the daemon has no port.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}")]
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

/// A client says within this what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
impl Daemon {
    /// Takes the port.
    ///
    /// # Errors
    ///
    /// The port is taken, or the user may not have it.
    pub fn bind(settings: Settings) -> Result<Self, BindDaemon> {
        let address = settings.listen;
        let mut ports = ports(address, &settings.identity);
        // A port that is free for UDP may be taken for TCP.
        for _ in 1..TRIES {
            if ports.is_ok() || address.port() != 0 {
                break;
            }
            ports = self::ports(address, &settings.identity);
        }
        let (listener, door) = ports.map_err(|source| BindDaemon { address, source })?;
        let attendance = Attendance { settings: Arc::new(settings), sessions: Arc::default() };
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

/// How often another port is tried, where any will do.
const TRIES: usize = 8;

fn ports(address: SocketAddr, identity: &Identity) -> Result<(Listener, TcpDoor), NoPort> {
    let credentials = ServerCredentials::mutual(identity);
    let listener = Listener::bind(address, ListenerConfig::new(credentials.clone()))?;
    let door = TcpDoor::bind(listener.local_addr(), credentials)?;
    Ok((listener, door))
}

impl Attendance {
    /// Lets a client in, or tells it why not.
    pub(crate) fn admit(&self, connection: &Carried, key: Option<Fingerprint>) {
        let refuse = |code, text: &str| connection.close(code, text);
        let Some(key) = key else {
            return refuse(NOT_AUTHORISED, "this server wants to see a key");
        };
        let Some(grant) = (self.settings.authorize)(&key) else {
            let text = format!("the key {key} is not authorised here");
            return refuse(NOT_AUTHORISED, &text);
        };
        let Some(place) = self.sessions.enter(connection.clone(), self.settings.sessions) else {
            return refuse(FULL, "this server has as many sessions as it may have: try later");
        };
        let carried = connection.clone();
        let render = self.settings.render.clone();
        let attend = move || {
            // A client that asks for nothing, or for something else, has been told.
            let features: &[&str] = match (render.is_some(), grant.limits.writes) {
                (true, Writes::Allowed) => &[IMAGES, MOUNTS, PICKS, WRITES],
                (true, Writes::Refused) => &[IMAGES, MOUNTS, PICKS],
                (false, Writes::Allowed) => &[MOUNTS, PICKS, WRITES],
                (false, Writes::Refused) => &[MOUNTS, PICKS],
            };
            let store = Offered { features, ..STORE };
            if offer(&carried, &[store], PATIENCE).is_ok() {
                let server = Server::new(grant.store, grant.limits).with_views(render);
                if let Err(error) = server.attend(carried.clone()) {
                    carried.close(code::APPLICATION, &error.to_string());
                }
            } else {
                carried.close(code::APPLICATION, "no service");
            }
            drop(place);
        };
        let named = thread::Builder::new().name("serve-session".to_owned());
        if named.spawn(attend).is_err() {
            refuse(FULL, "this server has no room for another thread: try later");
        }
    }
}
