//! Operations without async, in the shape of [`std::net`]. Each call parks the calling
//! thread until the operation is complete.
//!
//! ```
//! use hikyaku_net::blocking::{NetListener, NetStream};
//! use hikyaku_net::{ConnectConfig, Identity, ListenerConfig, ServerCredentials, Trust};
//! use std::io::{Read, Write};
//! use std::thread;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::generate()?;
//! let config = ListenerConfig::new(ServerCredentials::new(&identity));
//! let listener = NetListener::bind("127.0.0.1:0".parse()?, config)?;
//! let address = listener.local_addr();
//!
//! let client = thread::spawn(move || {
//!     let config = ConnectConfig::new(Trust::Pinned(identity.fingerprint()));
//!     let mut stream = NetStream::connect(address, config).expect("the listener is bound");
//!     stream.write_all(b"ping")?;
//!     stream.finish();
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).map(|_| answer)
//! });
//!
//! let (mut stream, _peer) = listener.accept()?;
//! let mut question = String::new();
//! stream.read_to_string(&mut question)?;
//! assert_eq!(question, "ping");
//! stream.write_all(b"pong")?;
//! stream.finish();
//! stream.delivered()?;
//! assert_eq!(client.join().expect("the client does not panic")?, "pong");
//! # Ok(())
//! # }
//! ```

mod park;

pub use park::{Cut, Stop, block_on, wait};

use crate::config::{ConnectConfig, EndpointConfig, ListenerConfig, OnDrop};
use crate::error::{AcceptError, ConnectError, EndpointError, OpenError, ReadError, WriteError};
use crate::target::Target;
use crate::{Connection, Endpoint, Stream};
use bytes::Bytes;
use hikyaku_proto::Run;
use std::io::{self, Read, Write};
use std::net::{Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that has a connection of its own, like a [`std::net::TcpStream`].
#[derive(Debug)]
pub struct NetStream {
    // Fields are dropped in this order. The endpoint's drop waits for the connection, which ends
    // when its streams are dropped.
    stream: Stream,
    connection: Connection,
    endpoint: Option<Arc<Endpoint>>,
}

/// Accepts [`NetStream`]s, like a [`std::net::TcpListener`].
#[derive(Debug)]
pub struct NetListener {
    listener: crate::Listener,
}

/// Why [`NetStream::connect`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetConnectError {
    /// The endpoint did not start.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The connection was not established.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The stream was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Why [`NetListener::accept`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetAcceptError {
    /// The listener accepts no more connections.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// The connection ended before the peer opened a stream.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl NetStream {
    /// Connects from an ephemeral port and opens a stream.
    pub fn connect(
        target: impl Into<Target>,
        config: ConnectConfig,
    ) -> Result<Self, NetConnectError> {
        Self::connect_with(target, config, EndpointConfig::default())
    }

    /// Connects with settings for the socket and the driver. Dropping the stream always blocks
    /// until the driver has ended ([`OnDrop::Wait`]).
    pub fn connect_with(
        target: impl Into<Target>,
        mut config: ConnectConfig,
        mut endpoint: EndpointConfig,
    ) -> Result<Self, NetConnectError> {
        endpoint.on_drop = OnDrop::Wait;
        // The connection carries one stream, so that stream may use the whole window.
        config.transport.stream_window = config.transport.initial_window;
        let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        let any_v4 = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
        // A host without IPv6 refuses the first bind.
        let endpoint =
            Endpoint::bind(any, endpoint.clone()).or_else(|_| Endpoint::bind(any_v4, endpoint))?;
        let connection = block_on(endpoint.connect(target, config))?;
        let stream = block_on(connection.open_stream())?;
        Ok(Self { stream, connection, endpoint: Some(Arc::new(endpoint)) })
    }

    /// The connection that carries the stream.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.connection.remote_addr()
    }

    /// Writes `bytes` without copying them.
    pub fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        block_on(self.stream.write_chunk(bytes))
    }

    /// Reads the next bytes without copying them: the result borrows nothing and holds the receive
    /// buffer. `None` is the end of the stream.
    pub fn read_chunk(&mut self) -> Result<Option<Run>, ReadError> {
        block_on(self.stream.read_chunk())
    }

    /// Ends the sending half: the peer reads to the end of what was written. Does not block; see
    /// [`NetStream::delivered`].
    pub fn finish(&mut self) {
        self.stream.finish();
    }

    /// Waits until the peer's transport has acknowledged every byte of the finished stream.
    pub fn delivered(&mut self) -> Result<(), WriteError> {
        block_on(self.stream.delivered())
    }

    /// The local address. `None` for an accepted stream, whose address is that of its listener.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.endpoint.as_ref().map(|endpoint| endpoint.local_addr())
    }
}

impl Read for NetStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut out = ReadBuf::new(out);
        let stream = &mut self.stream;
        block_on(std::future::poll_fn(|context| {
            Pin::new(&mut *stream).poll_read(context, &mut out)
        }))?;
        Ok(out.filled().len())
    }
}

impl Write for NetStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stream = &mut self.stream;
        block_on(std::future::poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NetListener {
    /// Binds to `address` and listens. Dropping the listener always blocks until the driver has ended
    /// ([`OnDrop::Wait`]).
    pub fn bind(address: SocketAddr, mut config: ListenerConfig) -> Result<Self, EndpointError> {
        // Each connection carries one stream, so that stream may use the whole window.
        config.transport.stream_window = config.transport.initial_window;
        config.endpoint.on_drop = OnDrop::Wait;
        Ok(Self { listener: crate::Listener::bind(address, config)? })
    }

    /// Waits for the first stream of the next connection. The stream exists here once the peer has
    /// written to it. The address is the peer's.
    pub fn accept(&self) -> Result<(NetStream, SocketAddr), NetAcceptError> {
        let connection = block_on(self.listener.accept())?;
        let stream = block_on(connection.accept_stream())?;
        let peer = connection.remote_addr();
        Ok((NetStream { stream, connection, endpoint: None }, peer))
    }

    /// The address that the socket is bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }
}
