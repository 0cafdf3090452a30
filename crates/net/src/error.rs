//! The errors of the crate: one enum for each operation that can fail.
//!
//! The texts are for users of any application, so they name no command. An application that knows a
//! remedy finds what it needs in the fields.

use crate::codes::StreamCode;
use hikyaku_crypto::{NotAPeerName, SettleTrust, StartClient, Untrusted};
use hikyaku_proto::CloseReason;
use hikyaku_udp::BindError;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why an endpoint or listener did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The socket cannot be created or bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The driver thread cannot be started.
    #[error("cannot start the thread that drives the socket: {0}")]
    Thread(#[source] io::Error),
}

impl EndpointError {
    /// The kind of failure, as for the system's sockets.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Bind(BindError::PortTaken { .. }) => io::ErrorKind::AddrInUse,
            Self::Bind(BindError::PortForbidden { .. }) => io::ErrorKind::PermissionDenied,
            Self::Bind(
                BindError::AddressUnavailable { .. } | BindError::FamilyUnsupported { .. },
            ) => io::ErrorKind::AddrNotAvailable,
            _ => io::ErrorKind::Other,
        }
    }
}

/// Why a connection was not established.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is neither a host name nor an address.
    #[error(transparent)]
    Name(#[from] NotAPeerName),
    /// The resolver found no address for the name.
    #[error("cannot find an address for {host}: {source}")]
    NotFound {
        /// The name.
        host: String,
        /// The resolver's error.
        source: io::Error,
    },
    /// The name has addresses, but none of a family that the endpoint's socket can send to.
    #[error("{host} has no address that this endpoint can reach (it is bound to {local})")]
    WrongFamily {
        /// The name.
        host: String,
        /// The address that the endpoint is bound to.
        local: SocketAddr,
    },
    /// The kernel refuses to send to the address: there is no route, for example.
    #[error("cannot send to {address}: {text}")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        text: String,
    },
    /// No datagram came back within the time-out of the connection: no listener runs there, or a
    /// firewall drops UDP.
    #[error("no answer from {host} UDP port {port} within {seconds} s")]
    NoAnswer {
        /// The host as the caller named it.
        host: String,
        /// The port.
        port: u16,
        /// The time-out in seconds, rounded up.
        seconds: u64,
    },
    /// The server's key is not the one that [`crate::Trust`] demands.
    #[error(transparent)]
    Untrusted(Untrusted),
    /// The peer speaks no version of the protocol that this crate speaks.
    #[error("{host} speaks another version of the protocol: update the older of the two programs")]
    Version {
        /// The host.
        host: String,
    },
    /// The handshake failed.
    #[error("cannot connect to {host}: {text}")]
    Handshake {
        /// The host.
        host: String,
        /// The error of the handshake.
        text: String,
    },
    /// The peer closed the connection during the handshake.
    #[error("{host} refused the connection: {reason}")]
    Refused {
        /// The host.
        host: String,
        /// The peer's reason.
        reason: CloseReason,
    },
    /// The server's key cannot be added to the list of known servers.
    #[error(transparent)]
    Trust(SettleTrust),
    /// The handshake cannot begin: the list of known servers cannot be read, for example.
    #[error("cannot begin a handshake: {0}")]
    Start(#[from] StartClient),
    /// The endpoint ended first.
    #[error("the endpoint was closed")]
    EndpointClosed,
}

/// Why [`crate::Listener::accept`] failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The listener accepts no more connections, or its driver has ended.
    #[error("the listener was closed")]
    Closed,
}

/// Why a stream was not opened or accepted.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The connection has ended.
    #[error("the connection is over: {0}")]
    Closed(CloseReason),
}

/// Why a write, or the wait for its delivery, failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The connection has ended.
    #[error("the connection is over: {0}")]
    Closed(CloseReason),
    /// The peer stopped the stream with this code: it reads no more.
    #[error("the other side wants no more of this stream (code {0})")]
    Stopped(StreamCode),
    /// This side has finished or reset the stream.
    #[error("the stream was finished")]
    Finished,
}

/// Why a read failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The connection ended before the stream did.
    #[error("the connection ended before the stream did: {0}")]
    Closed(CloseReason),
    /// The peer reset the stream with this code: it sends no more.
    #[error("the other side gave up sending (code {0})")]
    Reset(StreamCode),
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Closed(reason) => kind_of(reason),
            WriteError::Stopped(_) | WriteError::Finished => io::ErrorKind::BrokenPipe,
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Closed(reason) => kind_of(reason),
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
        };
        Self::new(kind, error)
    }
}

const fn kind_of(reason: &CloseReason) -> io::ErrorKind {
    match reason {
        CloseReason::Local => io::ErrorKind::NotConnected,
        CloseReason::TimedOut | CloseReason::Unreachable => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::ConnectionAborted,
    }
}
