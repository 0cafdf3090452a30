//! Reasons for which an answer of a server cannot be used.

use crate::proxy::Unusable;
use hikyaku_console::no_listener;
use hikyaku_forward::Weaker;
use hikyaku_tcp::ConnectError;
use std::io;
use std::time::Duration;

/// A request that did not deliver the requested bytes.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The name has no address.
    #[error("{host}")]
    NoAddress {
        /// The name.
        host: String,
        /// The error of the lookup.
        source: io::Error,
    },
    /// No address of the host accepts a connection.
    #[error("{}", not_reached(host, *port, .source))]
    NotReached {
        /// The host.
        host: String,
        /// The TCP port.
        port: u16,
        /// The error of the last address.
        source: ConnectError,
    },
    /// The connection failed.
    #[error("the connection failed")]
    Connection(#[source] io::Error),
    /// The connection ended in the middle of an answer.
    #[error("the server closed the connection before the end of its answer")]
    Closed,
    /// The server sent nothing for this time.
    #[error("the server sent nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// The head of an answer was not complete after this time.
    #[error("the server did not complete the head of its answer within {} s", .0.as_secs())]
    Slow(Duration),
    /// TLS could not be established.
    #[error("no secure connection to {host}")]
    Tls {
        /// The host.
        host: String,
        /// The error of TLS.
        source: rustls::Error,
    },
    /// Certificates of authorities cannot be used.
    #[error("{0}")]
    Authorities(String),
    /// The environment names a proxy of another kind.
    #[error("{0}")]
    Unusable(#[from] Unusable),
    /// The proxy refused to connect.
    #[error("the proxy answers with status {0}")]
    Proxy(u16),
    /// The server refuses.
    #[error("the server answers with status {code}{}{}", meaning(*.code), later(*.retry_after))]
    Status {
        /// The status code.
        code: u16,
        /// The value of `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The answer is not HTTP/1.1, or exceeds the limits of this client.
    #[error("the server does not send a valid answer of HTTP/1.1")]
    Invalid(#[source] hyper::Error),
    /// The answer contradicts itself or the request.
    #[error("the server {0}")]
    Lie(&'static str),
    /// A header of the user is one that no request can have.
    #[error("the request cannot be sent")]
    Request(#[source] hyper::http::Error),
    /// A redirect cannot be followed.
    #[error("a redirect {0}")]
    Redirect(&'static str),
    /// A redirect leads from `https` to `http`.
    #[error("a redirect {0}")]
    Weaker(#[from] Weaker),
    /// The file has changed since the first answer.
    #[error("the file changed on the server")]
    Changed,
    /// An answer does not name the version of its file, and no digest of the file is known.
    #[error("the server does not say which version of the file it sends")]
    Unrecognised,
    /// The server sent the whole file instead of a range.
    #[error("the server sends the whole file when it is asked for a part")]
    NoRanges,
    /// A mirror has another file.
    #[error("it has another file: {0}")]
    OtherFile(String),
    /// The server goes on with the connections that it has, and has refused others.
    #[error("the server accepts no further connection")]
    Full,
    /// The [`Stop`](crate::Stop) was set.
    #[error("stopped")]
    Stopped,
}

impl Fault {
    /// Whether another attempt may succeed without a change on this host.
    pub const fn may_pass(&self) -> bool {
        match self {
            // The kernel of this host lacks the congestion control: another attempt does not help.
            Self::NotReached { source, .. } => matches!(source, ConnectError::Io(_)),
            Self::Connection(_) | Self::Closed => true,
            Self::Silent(_) | Self::Slow(_) | Self::Full => true,
            Self::Status { code, .. } | Self::Proxy(code) => {
                matches!(code, 408 | 425 | 429 | 500 | 502 | 503 | 504)
            }
            _ => false,
        }
    }

    /// The time after which the server accepts another request.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether no program listens on the port.
    pub fn is_port_closed(&self) -> bool {
        matches!(self, Self::NotReached { source, .. } if source.is_refusal())
    }

    /// Whether a server that has sent nothing may have refused because it has too many connections of this host.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::NotReached { source, .. } => source.is_refusal(),
            Self::Connection(error) => error.kind() == io::ErrorKind::ConnectionReset,
            Self::Closed | Self::Status { code: 403, .. } => true,
            _ => self.is_busy(),
        }
    }

    /// Whether no answer has come to an attempt to connect: a lossy path does that without the server.
    pub fn is_connect_timeout(&self) -> bool {
        matches!(self, Self::NotReached { source: ConnectError::Io(error), .. }
            if error.kind() == io::ErrorKind::TimedOut)
    }

    /// Whether the certificate of the server is not one of a known authority for its name.
    pub const fn is_certificate(&self) -> bool {
        matches!(self, Self::Tls { source: rustls::Error::InvalidCertificate(_), .. })
    }

    /// Whether the server is overloaded by its own account.
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::Status { code: 429 | 503, .. } | Self::Full)
    }
}

/// Why no address of a host accepts a connection.
fn not_reached(host: &str, port: u16, source: &ConnectError) -> String {
    match source.is_refusal() {
        true => no_listener(host, "TCP", port),
        false => format!("cannot connect to {host} port {port}"),
    }
}

/// The server's wish for the time of the next request.
fn later(retry_after: Option<Duration>) -> String {
    let wait = retry_after.filter(|wait| !wait.is_zero());
    wait.map(|wait| format!(", and wants to be asked again in {} s", wait.as_secs()))
        .unwrap_or_default()
}

const fn meaning(code: u16) -> &'static str {
    match code {
        400 => " (bad request)",
        401 => " (a login is needed)",
        403 => " (forbidden)",
        404 => " (no such file)",
        407 => " (the proxy wants a login)",
        410 => " (the file is gone)",
        416 => " (no such range)",
        429 => " (too many requests)",
        500 => " (internal error)",
        502 => " (bad gateway)",
        503 => " (not available at the moment)",
        504 => " (gateway timeout)",
        _ => "",
    }
}
