//! Accepting connections.

use crate::command::Command;
use crate::config::ListenerConfig;
use crate::connection::{Connection, Known};
use crate::driver::Door;
use crate::endpoint::Endpoint;
use crate::error::{AcceptError, EndpointError};
use crate::lobby::Lobby;
use crate::notify::Place;
use hikyaku_udp::{Granted, UdpSocket};
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

/// A port that accepts connections, and the threads that drive them: [`EndpointConfig::drivers`](crate::EndpointConfig::drivers).
///
/// To a datagram that belongs to no connection the listener replies only if it is a well-formed
/// first packet. Shutting the listener down or dropping it ends the connections that it accepted, as
/// with an [`Endpoint`].
pub struct Listener {
    endpoint: Endpoint,
    lobby: Arc<Lobby>,
}

impl Listener {
    /// Binds to `address` and listens. `[::]` listens for both IPv4 and IPv6.
    pub fn bind(address: SocketAddr, config: ListenerConfig) -> Result<Self, EndpointError> {
        let endpoint = config.endpoint.clone();
        let sockets = UdpSocket::bind_group(address, &endpoint.socket, endpoint.drivers.number())?;
        let lobby = Arc::new(Lobby::default());
        let endpoint = Endpoint::listen(sockets, endpoint, &Door::new(config, lobby.clone()))?;
        Ok(Self { endpoint, lobby })
    }

    /// Waits for the next connection whose handshake is complete.
    pub async fn accept(&self) -> Result<Connection, AcceptError> {
        let place = Arc::new(Place::default());
        let guest = poll_fn(|context| self.lobby.poll(&place, context)).await?;
        Ok(Connection::new(guest.handle, Known::Client(guest.shown)))
    }

    /// Accepts no more connections. Those that are established stay open; those that wait to be
    /// accepted are closed.
    pub fn stop_accepting(&self) {
        self.endpoint.tell(|| Command::StopListening);
    }

    /// The endpoint of the listener's socket, to connect from the same port.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address that the socket is bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// See [`Endpoint::advice`].
    pub fn advice(&self) -> Option<&str> {
        self.endpoint.advice()
    }

    /// See [`Endpoint::granted`].
    pub const fn granted(&self) -> Granted {
        self.endpoint.granted()
    }

    /// Ends the listener in good order, without blocking a thread; see [`Endpoint::shutdown`].
    pub async fn shutdown(self) {
        self.endpoint.shutdown().await;
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
