//! Why an answer of a server cannot be used.

use super::proxy::Unusable;
use hikyaku_console::no_listener;
use hikyaku_forward::Weaker;
use hikyaku_tcp::ConnectError;
use std::io;
use std::time::Duration;

/// A request did not lead to the bytes that were asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The name has no address.
    #[error("{host}")]
    NoAddress { host: String, source: io::Error },
    /// No address of the host accepts a connection.
    #[error("{}", not_reached(host, *port, .source))]
    NotReached { host: String, port: u16, source: ConnectError },
    /// The connection failed.
    #[error("the connection failed")]
    Connection(#[source] io::Error),
    /// The connection ended in the middle of an answer.
    #[error("the server closed the connection before the end of its answer")]
    Closed,
    /// Nothing came for so long.
    #[error("the server sent nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// The head of an answer was not complete after so long.
    #[error("the server did not complete the head of its answer within {} s", .0.as_secs())]
    Slow(Duration),
    /// TLS could not be established.
    #[error("no secure connection to {host}")]
    Tls { host: String, source: rustls::Error },
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
    Status { code: u16, retry_after: Option<Duration> },
    /// What the server says is not HTTP, or contradicts itself or the question.
    #[error("the server {0}")]
    Lie(&'static str),
    /// A redirect cannot be followed.
    #[error("a redirect {0}")]
    Redirect(&'static str),
    /// A redirect leads to where the file would not be safe.
    #[error("a redirect {0}")]
    Weaker(#[from] Weaker),
    /// The file is another one than at the beginning.
    #[error("the file changed on the server")]
    Changed,
    /// An answer does not say which version of the file it has, and nothing else would tell.
    #[error("the server does not say which version of the file it sends")]
    Unrecognised,
    /// The server sent the whole file in place of a range.
    #[error("the server sends the whole file when it is asked for a part")]
    NoRanges,
    /// A mirror has another file.
    #[error("it has another file: {0}")]
    OtherFile(String),
    /// The download is over for another reason.
    #[error("stopped")]
    Stopped,
}

impl Fault {
    /// Whether another attempt may succeed without a change at this end.
    pub(crate) const fn may_pass(&self) -> bool {
        match self {
            // This kernel has no such congestion control, whenever it is asked.
            Self::NotReached { source, .. } => matches!(source, ConnectError::Io(_)),
            Self::Connection(_) | Self::Closed => true,
            Self::Silent(_) | Self::Slow(_) => true,
            Self::Status { code, .. } | Self::Proxy(code) => {
                matches!(code, 408 | 425 | 429 | 500 | 502 | 503 | 504)
            }
            _ => false,
        }
    }

    /// The time after which the server wants to be asked again.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether nobody listens at the port.
    pub(crate) fn is_port_closed(&self) -> bool {
        matches!(self, Self::NotReached { source, .. } if source.is_refusal())
    }

    /// Whether the server may have refused because it has enough connections of this host.
    pub(crate) const fn is_refusal(&self) -> bool {
        matches!(self, Self::NotReached { .. }) || self.is_busy()
    }

    /// Whether the server says that it has too much to do.
    pub(crate) const fn is_busy(&self) -> bool {
        matches!(self, Self::Status { code: 429 | 503, .. })
    }

    /// What the user can do.
    pub(crate) fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Status { code: 401 | 403, .. } => Some(
                "-u USER:PASSWORD, a line in ~/.netrc with --netrc, or -H 'Authorization: ...'",
            ),
            Self::Status { code: 407, .. } | Self::Proxy(407) => {
                Some("--proxy http://USER:PASSWORD@HOST:PORT")
            }
            Self::Tls { source: rustls::Error::InvalidCertificate(_), .. } => {
                Some("--ca FILE with the certificate of the authority that the server uses")
            }
            Self::Unusable(_) => Some("--proxy http://HOST:PORT, or no_proxy with the host's name"),
            _ => None,
        }
    }
}

/// Why no address of a host accepts a connection.
fn not_reached(host: &str, port: u16, source: &ConnectError) -> String {
    match source.is_refusal() {
        true => no_listener(host, "TCP", port),
        false => format!("cannot connect to {host} port {port}"),
    }
}

/// When the server wants to be asked again.
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
