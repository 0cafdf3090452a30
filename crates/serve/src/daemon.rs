//! The port, and who may come in.

use crate::sessions::Sessions;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{
    AcceptError, AppCode, Connection, EndpointError, Fingerprint, Identity, Listener,
    ListenerConfig, ServerCredentials, code,
};
use hikyaku_reach::Connection as Carried;
use hikyaku_reach::daemon::codes::{FULL, NOT_AUTHORISED};
use hikyaku_reach::daemon::{STORE, STORE_TO_READ, offer};
use hikyaku_remote::{Limits, Server, Writes};
use hikyaku_store::Store;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What a daemon is to do.
pub struct Settings {
    /// The address and port. Port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The key by which clients know the daemon.
    pub identity: Identity,
    /// The files that it serves.
    pub store: Arc<dyn Store>,
    /// What the holder of a key may do; `None` for one that may not come in.
    pub authorize: Authorize,
    /// Sessions at once. One more is refused. Default of `hikyaku serve`: 200.
    pub sessions: usize,
    /// How long sessions may go on after the daemon was told to end. Default: 30 s.
    pub drain: Duration,
}

/// Tells what the holder of a key may do; `None` for one that may not come in.
pub type Authorize = Box<dyn Fn(&Fingerprint) -> Option<Grant> + Send + Sync>;

/// What the holder of a key may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Grant {
    /// Limits that the client cannot raise.
    pub limits: Limits,
}

/// A daemon that has its port.
pub struct Daemon {
    listener: Listener,
    settings: Arc<Settings>,
    sessions: Arc<Sessions>,
}

/// Why the daemon has no port.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}")]
pub struct BindDaemon {
    address: SocketAddr,
    source: EndpointError,
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
        let credentials = ServerCredentials::mutual(&settings.identity);
        let config = ListenerConfig::new(credentials);
        let address = settings.listen;
        let listener = Listener::bind(address, config);
        let listener = listener.map_err(|source| BindDaemon { address, source })?;
        Ok(Self { listener, settings: Arc::new(settings), sessions: Arc::default() })
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
        let ended = loop {
            match wait(self.listener.accept(), stop, None) {
                Ok(Ok(connection)) => self.admit(connection),
                Ok(Err(error)) => break Err(error),
                Err(Cut::Stopped | Cut::TooLate) => break Ok(()),
            }
        };
        self.listener.stop_accepting();
        self.sessions.drain(self.settings.drain);
        ended
    }

    /// Lets a client in, or tells it why not.
    fn admit(&self, connection: Connection) {
        let refuse = |code, text: &str| connection.close(AppCode::new(code), text);
        let Some(key) = connection.client_key() else {
            return refuse(NOT_AUTHORISED, "this server wants to see a key");
        };
        let Some(grant) = (self.settings.authorize)(&key) else {
            let text = format!("the key {key} is not authorised here");
            return refuse(NOT_AUTHORISED, &text);
        };
        let carried = Carried::from(connection.clone());
        let Some(place) = self.sessions.enter(carried.clone(), self.settings.sessions) else {
            return refuse(FULL, "this server has as many sessions as it may have: try later");
        };
        let settings = self.settings.clone();
        let attend = move || {
            // A client that asks for nothing, or for something else, has been told.
            let store = match grant.limits.writes {
                Writes::Allowed => STORE,
                Writes::Refused => STORE_TO_READ,
            };
            if offer(&carried, &[store], PATIENCE).is_ok() {
                let server = Server::new(settings.store.clone(), grant.limits);
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
