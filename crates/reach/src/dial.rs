//! A connection to a daemon's address.

mod servers;

pub use servers::Servers;

use crate::carrier::Connection;
use crate::daemon::{NoService, Offered, ask};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{
    ConnectConfig, ConnectError, DataSize, Endpoint, EndpointConfig, EndpointError, Fingerprint,
    Identity, Memory, Target, Trust, TrustOutcome,
};
use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

/// The port of `hikyaku serve`, UDP and TCP, unless another is given.
pub const PORT: u16 = 5209;

/// Where a daemon listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The text is no address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not an address of a server: expected HOST, HOST:PORT or [IPV6]:PORT")]
pub struct NotAnAddress(String);

impl FromStr for Address {
    type Err = NotAnAddress;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let error = || NotAnAddress(text.to_owned());
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(error)?;
                match rest.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if rest.is_empty() => (host, None),
                    None => return Err(error()),
                }
            }
            // More than one colon: an IPv6 address without a port.
            None if text.matches(':').count() > 1 => (text, None),
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port.map(str::parse::<u16>) {
            None => PORT,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(error()),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
        match !host.is_empty() && host.chars().all(is_name) && !host.starts_with('-') {
            true => Ok(Self { host: host.to_owned(), port }),
            false => Err(error()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A socket for connections to many daemons.
pub struct Dialler {
    endpoint: Endpoint,
    identity: Identity,
    window: DataSize,
}

/// Why there is no connection to a daemon.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// It cannot be reached, or its key is not the expected one.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It is there, and does not offer the service.
    #[error(transparent)]
    Service(#[from] NoService),
}

/// A connection to a daemon.
pub struct Dialled {
    /// The connection, which belongs to the service.
    pub connection: Connection,
    /// The daemon's key, if it was met for the first time. A person may want to compare it.
    pub first_use: Option<Fingerprint>,
    /// Features of the service that both ends have.
    pub features: BTreeSet<String>,
}

/// Memory of all connections of a socket for data that is not read yet, and what one connection has of it at least.
const WINDOWS_BYTES: u64 = 512_000_000;
const WINDOW_BYTES_MIN: u64 = 16_000_000;

impl Dialler {
    /// Binds a socket for connections to about `servers` daemons, which know this end by `identity`.
    ///
    /// # Errors
    ///
    /// No socket can be had.
    pub fn new(identity: Identity, servers: usize, memory: Memory) -> Result<Self, EndpointError> {
        let mut config = EndpointConfig::default();
        config.memory = memory;
        // A machine without IPv6 has no socket for it.
        let endpoint = Endpoint::bind((Ipv6Addr::UNSPECIFIED, 0).into(), config.clone())
            .or_else(|_| Endpoint::bind((Ipv4Addr::UNSPECIFIED, 0).into(), config))?;
        let window = (WINDOWS_BYTES / servers.max(1) as u64).max(WINDOW_BYTES_MIN);
        Ok(Self { endpoint, identity, window: DataSize::from_bytes(window) })
    }

    /// A command that would make the socket faster, if there is one.
    pub fn advice(&self) -> Option<&str> {
        self.endpoint.advice()
    }

    /// Connects to a daemon and asks for a service, both within `patience` each.
    ///
    /// # Errors
    ///
    /// It cannot be reached, has another key than `trust` expects, or does not offer the service.
    pub fn dial(
        &self,
        address: &Address,
        trust: Trust,
        service: &Offered,
        patience: Duration,
    ) -> Result<Dialled, DialError> {
        let mut config = ConnectConfig::new(trust);
        config.credentials = config.credentials.with_identity(&self.identity);
        config.transport.connect_timeout = patience;
        let transport = &mut config.transport;
        transport.receive_window = self.window;
        transport.initial_window = transport.initial_window.min(self.window);
        transport.stream_window = transport.initial_window;
        transport.max_streams = OBJECTS;
        transport.keep_alive = KEEP_ALIVE;
        transport.idle_timeout = SILENCE;
        let target = Target::new(address.host.clone(), address.port);
        let connection = block_on(self.endpoint.connect(target, config))?;
        let first_use = match connection.trust() {
            Some(TrustOutcome::FirstUse(key)) => Some(key),
            _ => None,
        };
        let connection = Connection::from(connection);
        let features = ask(&connection, service, patience)?.features;
        Ok(Dialled { connection, first_use, features })
    }
}

/// Objects that a daemon may have open.
const OBJECTS: u32 = 64;
/// A daemon is heard at least this often.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// A daemon that is not heard for so long is gone. Its work can be given to others, and outages of a path are shorter.
const SILENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_the_usual_one() {
        for (text, host, port) in [
            ("node1", "node1", PORT),
            ("node1:7000", "node1", 7000),
            ("192.0.2.7:1", "192.0.2.7", 1),
            ("[2001:db8::1]:70", "2001:db8::1", 70),
            ("[2001:db8::1]", "2001:db8::1", PORT),
            ("2001:db8::1", "2001:db8::1", PORT),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for text in ["", ":1", "a:0", "a:b", "a:70000", "[::1", "[::1]x", "-o:1", "a/b", "a b"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
