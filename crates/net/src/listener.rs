//! Accepting connections.

use crate::command::Command;
use crate::config::ListenerConfig;
use crate::connection::{Connection, Known};
use crate::driver::Door;
use crate::endpoint::Endpoint;
use crate::error::{AcceptError, EndpointError};
use crate::lobby::Lobby;
use crate::notify::Place;
use hikyaku_udp::Granted;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

/// A socket that accepts connections, and the thread that drives them.
///
/// It answers nothing but well-formed first packets. Dropping it ends the connections that came
/// through it, as dropping an [`Endpoint`] does.
pub struct Listener {
    endpoint: Endpoint,
    lobby: Arc<Lobby>,
}

impl Listener {
    /// Binds to `address` and listens. `[::]` listens on IPv4 and IPv6.
    pub fn bind(address: SocketAddr, config: ListenerConfig) -> Result<Self, EndpointError> {
        let lobby = Arc::new(Lobby::default());
        let endpoint = config.endpoint.clone();
        let endpoint = Endpoint::start(address, endpoint, Some(Door::new(config, lobby.clone())))?;
        Ok(Self { endpoint, lobby })
    }

    /// The next connection whose handshake is complete.
    pub async fn accept(&self) -> Result<Connection, AcceptError> {
        let place = Arc::new(Place::default());
        let guest = poll_fn(|context| self.lobby.poll(&place, context)).await?;
        Ok(Connection::new(guest.handle, Known::Client(guest.shown)))
    }

    /// Takes no more connections; those that there are go on.
    pub fn stop_accepting(&self) {
        self.endpoint.mailbox.send(Command::StopListening);
    }

    /// The endpoint below, to connect from the port that is listened at.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// A command for the administrator that would make the listener faster, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.endpoint.advice()
    }

    /// What the kernel granted.
    pub const fn granted(&self) -> Granted {
        self.endpoint.granted()
    }
}
