//! What can go wrong between this end and a server.

use crate::block::BlockError;
use crate::reply::ReplyError;
use hikyaku_tcp::ConnectError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// An operation on a channel failed. After any error but [`Refused`](Self::Refused) and [`BadPath`](Self::BadPath) the
/// channel is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum FtpError {
    /// The host has no address.
    #[error("{host} has no address")]
    NoAddress {
        /// As it was named.
        host: String,
        /// The resolver's error, if it had one.
        source: Option<io::Error>,
    },
    /// The server does not accept a connection.
    #[error("cannot connect to {address}")]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// Why.
        source: ConnectError,
    },
    /// This end cannot listen for data connections.
    #[error("cannot listen for data connections")]
    Listen(#[source] ConnectError),
    /// The control connection is lost.
    #[error("the control connection is lost")]
    Control(#[source] io::Error),
    /// A data connection is lost before its last block.
    #[error("a data connection is lost")]
    Data(#[source] io::Error),
    /// The server refuses a command.
    #[error("the server refuses {command}: {code} {text}")]
    Refused {
        /// The command's first word.
        command: String,
        /// The reply's code. Codes below 500 are for reasons that may pass.
        code: u16,
        /// The reply's text.
        text: String,
    },
    /// The server breaks a rule of the control connection.
    #[error(transparent)]
    Reply(#[from] ReplyError),
    /// The server sends a block that cannot be used.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The server sends what was not asked for.
    #[error("the server {0}")]
    Lie(&'static str),
    /// The TLS of a login by certificate fails.
    #[error("the login by certificate fails")]
    Tls(#[source] rustls::Error),
    /// A data connection cannot be authenticated, or its TLS fails.
    #[error("a data connection cannot be authenticated")]
    DataTls(#[source] rustls::Error),
    /// The server cannot authenticate data connections without a credential of the user.
    #[error("the server takes no key for data connections (DCSC)")]
    Unguarded,
    /// This end cannot store or read the bytes.
    #[error("{0}")]
    Local(#[source] io::Error),
    /// A path cannot be put into a command.
    #[error("a path with a line end or a zero byte cannot be asked for")]
    BadPath,
    /// The server does not have a feature that is needed.
    #[error("the server cannot {0}")]
    Lacks(&'static str),
    /// Nothing has come for so long.
    #[error("nothing has come from the server for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The server did not connect to where this end listens.
    #[error("the server did not connect to this host within {} s", .0.as_secs())]
    NotReached(Duration),
    /// This end was told to stop.
    #[error("stopped")]
    Stopped,
}

impl FtpError {
    /// Whether the same operation may succeed later, over a new channel.
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Control(_) | Self::Data(_) | Self::Stalled(_) | Self::Connect { .. } => true,
            Self::Refused { code, .. } => *code < 500,
            _ => false,
        }
    }
}
