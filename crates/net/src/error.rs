//! What can go wrong, one enum an operation, in words for a user.

use hikyaku_crypto::{NotAPeerName, SettleTrust, StartClient};
use hikyaku_proto::CloseReason;
use hikyaku_udp::BindError;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why there is no endpoint.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The socket cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The driver thread cannot be started.
    #[error("cannot start the thread that drives the socket: {0}")]
    Thread(#[source] io::Error),
}

impl EndpointError {
    /// What the user can do about it, if there is something.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Bind(BindError::PortTaken { address }) => Some(format!(
                "try: ss -ulpn 'sport = :{}' shows who has it; any other port will do",
                address.port()
            )),
            Self::Bind(BindError::PortForbidden { .. }) => {
                Some("try: a port of 1024 or above".to_owned())
            }
            _ => None,
        }
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The name cannot stand for a host.
    #[error(transparent)]
    Name(#[from] NotAPeerName),
    /// The name has no address.
    #[error("cannot find an address for {host}: {source}")]
    NotFound {
        /// The name.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The name has addresses, but none that this endpoint's socket can reach.
    #[error("{host} has no address that this endpoint can reach (it is bound to {local})")]
    WrongFamily {
        /// The name.
        host: String,
        /// Where this endpoint is bound.
        local: SocketAddr,
    },
    /// This machine cannot send there.
    #[error("cannot send to {address}: {text}")]
    Unreachable {
        /// Where to.
        address: SocketAddr,
        /// What the kernel said.
        text: String,
    },
    /// Nothing came back.
    #[error(
        "no answer from {host} UDP port {port} within {seconds} s: is `hikyaku perf -s` running \
         there, and does a firewall let UDP {port} through?"
    )]
    NoAnswer {
        /// The host as the user named it.
        host: String,
        /// The port.
        port: u16,
        /// How long the answer was waited for.
        seconds: u64,
    },
    /// The other side's key is not the one that was expected, or is not trusted.
    #[error("{text}")]
    Untrusted {
        /// What was found.
        text: String,
        /// What to do.
        remedy: String,
    },
    /// The other side speaks other versions of the protocol.
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
        /// What went wrong.
        text: String,
    },
    /// The other side did not want the connection.
    #[error("{host} refused the connection: {reason}")]
    Refused {
        /// The host.
        host: String,
        /// What it said.
        reason: CloseReason,
    },
    /// The server's key cannot be remembered.
    #[error(transparent)]
    Trust(SettleTrust),
    /// The handshake cannot begin.
    #[error("cannot begin a handshake: {0}")]
    Start(#[from] StartClient),
    /// The endpoint is gone.
    #[error("the endpoint was closed")]
    EndpointClosed,
}

impl ConnectError {
    /// What the user can do about it, if the text does not say so already.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Untrusted { remedy, .. } => Some(remedy),
            Self::NotFound { .. } => Some("try: the address in place of the name"),
            _ => None,
        }
    }
}

/// Why there is no next connection.
#[derive(Clone, Debug, Error)]
pub enum AcceptError {
    /// The listener's driver has ended.
    #[error("the listener was closed")]
    Closed,
}

/// Why there is no stream.
#[derive(Clone, Debug, Error)]
pub enum OpenError {
    /// The connection is over.
    #[error("the connection is over: {0}")]
    Closed(CloseReason),
}

/// Why bytes cannot be written.
#[derive(Clone, Debug, Error)]
pub enum WriteError {
    /// The connection is over.
    #[error("the connection is over: {0}")]
    Closed(CloseReason),
    /// The other side wants no more of this stream.
    #[error("the other side wants no more of this stream (code {0})")]
    Stopped(u64),
    /// The stream was finished or reset by this side.
    #[error("the stream was finished")]
    Finished,
}

/// Why the next bytes will not come.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// The connection ended before the stream did.
    #[error("the connection ended before the stream did: {0}")]
    Closed(CloseReason),
    /// The other side gave up sending.
    #[error("the other side gave up sending (code {0})")]
    Reset(u64),
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
