//! Where to listen, and where to go from there: `[BIND:]PORT` and `[BIND:]PORT:HOST:HOSTPORT`.

use hikyaku_forward::{Host, Target};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A port to listen on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listen {
    pub(crate) bind: Bind,
    /// 0 lets the system choose one.
    pub(crate) port: u16,
}

/// On which addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bind {
    /// None is given: loopback, or all with `-g`.
    Default,
    /// `localhost`.
    Loopback,
    /// `*`, or nothing before the colon.
    All,
    /// This one; its port means nothing.
    Address(SocketAddr),
}

/// A port to listen on, and where its flows go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LocalForward {
    pub(crate) listen: Listen,
    pub(crate) target: Target,
}

impl Listen {
    /// Reads `[BIND:]PORT`.
    // fuzz: none, the user's own words
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        match words.as_slice() {
            [port] => Self::of(None, port),
            [bind, port] => Self::of(Some(bind), port),
            _ => Err("expected [BIND:]PORT, such as 1080 or 127.0.0.1:1080".to_owned()),
        }
    }

    fn of(bind: Option<&Word<'_>>, port: &Word<'_>) -> Result<Self, String> {
        let number = port.text.parse::<u16>().ok().filter(|_| !port.has_brackets);
        let port = number.ok_or_else(|| format!("'{}' is not a port", port.text))?;
        let bind = match bind.map(|word| word.text) {
            None => Bind::Default,
            Some("" | "*") => Bind::All,
            Some("localhost") => Bind::Loopback,
            Some(text) => match text.parse::<IpAddr>() {
                Ok(address) if address.is_unspecified() => Bind::All,
                Ok(address) => Bind::Address(SocketAddr::new(address, 0)),
                Err(_) => {
                    return Err(format!(
                        "'{text}' is no address to listen on: expected an IP address, * or \
                         localhost"
                    ));
                }
            },
        };
        Ok(Self { bind, port })
    }
}

impl LocalForward {
    /// Reads `[BIND:]PORT:HOST:HOSTPORT`.
    // fuzz: none, the user's own words
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        let (bind, [port, host, host_port]) = match words.as_slice() {
            [port, host, host_port] => (None, [port, host, host_port]),
            [bind, port, host, host_port] => (Some(bind), [port, host, host_port]),
            _ => {
                return Err("expected [BIND:]PORT:HOST:HOSTPORT, such as 8080:web:80; an IPv6 \
                     address has brackets"
                    .to_owned());
            }
        };
        let listen = Listen::of(bind, port)?;
        let host = Host::parse(host.text).map_err(|error| error.to_string())?;
        let port = host_port.text.parse::<u16>().ok().filter(|&port| port != 0);
        let port = port.ok_or_else(|| format!("'{}' is not a port of a server", host_port.text))?;
        Ok(Self { listen, target: Target { host, port } })
    }
}

/// A word between colons.
struct Word<'a> {
    text: &'a str,
    has_brackets: bool,
}

/// Divides a text at its colons; those in brackets belong to an address.
fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let (mut words, mut rest) = (Vec::new(), text);
    loop {
        let (word, after) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (address, after) = inner.split_once(']').ok_or("a '[' without a ']'")?;
                (Word { text: address, has_brackets: true }, after)
            }
            None => {
                let end = rest.find(':').unwrap_or(rest.len());
                (Word { text: &rest[..end], has_brackets: false }, &rest[end..])
            }
        };
        words.push(word);
        match after.strip_prefix(':') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(words),
            None => return Err("only a colon follows a ']'".to_owned()),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.bind {
            Bind::Default => port.fmt(f),
            Bind::Loopback => write!(f, "localhost:{port}"),
            Bind::All => write!(f, "*:{port}"),
            Bind::Address(address) => SocketAddr::new(address.ip(), port).fmt(f),
        }
    }
}
