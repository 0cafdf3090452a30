//! Errors between this end and a server.

use crate::block::BlockError;
use crate::reply::ReplyError;
use hikyaku_tcp::ConnectError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// An operation on a channel failed. After any error but those of [`leaves_channel`](Self::leaves_channel) the channel
/// is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum FtpError {
    /// The host has no address.
    #[error("{host}{}", if source.is_none() { ": the name has no address" } else { "" })]
    NoAddress {
        /// As it was named.
        host: String,
        /// The resolver's error, if it had one.
        source: Option<io::Error>,
    },
    /// The server does not accept a connection.
    #[error("cannot connect to {address}{}", in_place_of(*.told))]
    Connect {
        /// Where to.
        address: SocketAddr,
        /// The address that the server sent for data connections, if this end used another one.
        told: Option<SocketAddr>,
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
    /// The authority that has signed the server's certificate may not sign its name.
    #[error("the signing policy of {authority} does not allow it to sign {subject}")]
    Forbidden {
        /// The name of the authority, on one line.
        authority: String,
        /// The name that it has signed.
        subject: String,
    },
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
    /// The server leaves bytes of a path out that are not ASCII, so that it would take another file for it.
    #[error(
        "{path}: the server leaves out what is not ASCII in a name, and would take another file for it"
    )]
    LosesName {
        /// The path, escaped for a terminal.
        path: String,
    },
    /// The operation failed after this end had closed data connections of another host.
    #[error("data connections came from {from} in place of {server}, and were closed")]
    Stranger {
        /// Where they came from.
        from: IpAddr,
        /// The host of the control connection.
        server: IpAddr,
        /// The error of the operation.
        source: Box<Self>,
    },
    /// The operation failed after this end had replaced the address that the server sent for data connections.
    #[error("the server tells {told} for data connections, and {used} was taken in its place")]
    Elsewhere {
        /// The address that the server sent.
        told: SocketAddr,
        /// The address that was used: that port of the control connection's host.
        used: SocketAddr,
        /// The error of the operation.
        source: Box<Self>,
    },
    /// The server does not have a feature that is needed.
    #[error("the server cannot {0}")]
    Lacks(&'static str),
    /// One of two servers does not have extended block mode.
    #[error(
        "one of the two servers speaks plain FTP, without GridFTP's extended block mode (MODE E)"
    )]
    PlainFtp,
    /// No byte has arrived for this time.
    #[error("nothing has come from the server for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The server did not connect to where this end listens.
    #[error("the server did not connect to this host within {} s", .0.as_secs())]
    NotReached(Duration),
    /// The caller requested to stop.
    #[error("stopped")]
    Stopped,
}

impl FtpError {
    /// Whether the channel is of use after this error, if every command has been answered.
    pub const fn leaves_channel(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::BadPath | Self::LosesName { .. })
    }

    /// Whether the server has refused this command.
    pub(crate) fn is_of(&self, verb: &str) -> bool {
        matches!(self, Self::Refused { command, .. } if command == verb)
    }

    /// Whether no program listens at the server's port.
    pub fn is_port_closed(&self) -> bool {
        matches!(self, Self::Connect { source, .. } if source.is_refusal())
    }

    /// Whether the same operation may succeed later, over a new channel.
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Control(_) | Self::Data(_) | Self::Stalled(_) => true,
            // The next attempt is in stream mode.
            Self::NotReached(_) => true,
            Self::Connect { told, .. } => told.is_none(),
            Self::Refused { code, .. } => *code < 500,
            _ => false,
        }
    }
}

fn in_place_of(told: Option<SocketAddr>) -> String {
    told.map(|told| format!(", which was taken in place of {told}")).unwrap_or_default()
}
