//! The same without async, shaped as `std::net`: each call parks the thread until it is done.

mod park;

pub use park::{Cut, Stop, block_on, wait};

use crate::config::{ConnectConfig, EndpointConfig, ListenerConfig};
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

/// A stream over a connection of its own, as a `TcpStream` is.
pub struct NetStream {
    // Dropped in this order: the endpoint waits for the connection, which waits for the stream.
    stream: Stream,
    connection: Connection,
    endpoint: Option<Arc<Endpoint>>,
}

/// Accepts [`NetStream`]s, as a `TcpListener` does.
pub struct NetListener {
    listener: crate::Listener,
}

/// Why [`NetStream::connect`] gave no stream.
#[derive(Debug, thiserror::Error)]
pub enum NetConnectError {
    /// There is no socket.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no stream.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Why [`NetListener::accept`] gave no stream.
#[derive(Debug, thiserror::Error)]
pub enum NetAcceptError {
    /// There will be no connections.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// The connection ended before it had a stream.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl NetStream {
    /// Connects from any port and opens a stream.
    pub fn connect(
        target: impl Into<Target>,
        config: ConnectConfig,
    ) -> Result<Self, NetConnectError> {
        Self::connect_with(target, config, EndpointConfig::default())
    }

    /// Connects from any port of a socket with these settings and opens a stream.
    pub fn connect_with(
        target: impl Into<Target>,
        config: ConnectConfig,
        endpoint: EndpointConfig,
    ) -> Result<Self, NetConnectError> {
        let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        let any_v4 = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
        // A machine without IPv6 has no socket for it.
        let endpoint =
            Endpoint::bind(any, endpoint.clone()).or_else(|_| Endpoint::bind(any_v4, endpoint))?;
        let connection = block_on(endpoint.connect(target, config))?;
        let stream = block_on(connection.open_stream())?;
        Ok(Self { stream, connection, endpoint: Some(Arc::new(endpoint)) })
    }

    /// The connection below.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.connection.remote_addr()
    }

    /// Writes `bytes` without a copy.
    pub fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        block_on(self.stream.write_chunk(bytes))
    }

    /// The next bytes in the buffer in which they arrived; `None` at the end.
    pub fn read_chunk(&mut self) -> Result<Option<Run>, ReadError> {
        block_on(self.stream.read_chunk())
    }

    /// Ends the sending half.
    pub fn finish(&mut self) {
        self.stream.finish();
    }

    /// Waits until the peer's transport has all of what was written and finished.
    pub fn delivered(&mut self) -> Result<(), WriteError> {
        block_on(self.stream.delivered())
    }

    /// The local address; `None` for an accepted stream, whose address is the listener's.
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
    /// Binds to `address` and listens.
    pub fn bind(address: SocketAddr, config: ListenerConfig) -> Result<Self, EndpointError> {
        Ok(Self { listener: crate::Listener::bind(address, config)? })
    }

    /// The next connection's first stream. The peer shows it by writing.
    pub fn accept(&self) -> Result<(NetStream, SocketAddr), NetAcceptError> {
        let connection = block_on(self.listener.accept())?;
        let stream = block_on(connection.accept_stream())?;
        let peer = connection.remote_addr();
        Ok((NetStream { stream, connection, endpoint: None }, peer))
    }

    /// The next connection, whose streams are the caller's to accept with [`block_on`].
    pub fn accept_connection(&self) -> Result<Connection, AcceptError> {
        block_on(self.listener.accept())
    }

    /// The address bound to.
    pub const fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }
}
