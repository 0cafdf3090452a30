//! Whom to connect to: a host and a port, or an address.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;

/// A host, which is a name or an address, and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    host: String,
    port: u16,
    addresses: Vec<SocketAddr>,
}

/// A text names no target.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{text}` is not HOST:PORT (192.0.2.1:5201, [2001:db8::1]:5201, example.org:5201)")]
pub struct TargetError {
    text: String,
}

impl Target {
    /// The host `host`, an IPv6 address without brackets.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, addresses: Vec::new() }
    }

    /// The host whose addresses these are, the likeliest first: no name is looked up. `host` is for
    /// messages.
    pub fn at(host: impl Into<String>, addresses: Vec<SocketAddr>) -> Self {
        let port = addresses.first().map_or(0, SocketAddr::port);
        Self { host: host.into(), port, addresses }
    }

    /// Its addresses, where they are known.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The host as it was given.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        let host = match address {
            // With its zone, without which a link-local address leads nowhere.
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            _ => address.ip().to_string(),
        };
        Self::new(host, address.port())
    }
}

impl From<(&str, u16)> for Target {
    fn from((host, port): (&str, u16)) -> Self {
        Self::new(host, port)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    // fuzz: lines
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let error = || TargetError { text: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = port.parse().map_err(|_| error())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        // Without brackets the last group of an address would be taken for a port.
        if host.is_empty() || (bare.is_none() && host.contains(':')) {
            return Err(error());
        }
        Ok(Self::new(host, port))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_and_print() {
        for text in ["192.0.2.1:5201", "[2001:db8::1]:5201", "example.org:1"] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
        }
        for text in ["example.org", "example.org:x", ":1", "2001:db8::1:5201", "[::1]"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        let address: SocketAddr = "[::1]:9".parse().unwrap();
        assert_eq!(Target::from(address).host(), "::1");
    }
}
