//! The name of a server in canonical form: host and port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Host and port as the user gave them, in lower case: `example.org:4433`, `[::1]:4433`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerName(String);

/// The host cannot be used in a list of servers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a host name")]
pub struct NotAPeerName(String);

impl PeerName {
    /// The server `host` at `port`. `host` is a name or an address, with or without brackets.
    pub fn new(host: &str, port: u16) -> Result<Self, NotAPeerName> {
        Ok(Self(format!("{}:{port}", canonical(host)?)))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One server, or all servers of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peers {
    /// The server at one port.
    One(PeerName),
    /// The servers at all ports of the host with this canonical name.
    OfHost(String),
}

/// The text names no server.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotPeers {
    /// The host cannot be used in a list of servers.
    #[error(transparent)]
    Host(#[from] NotAPeerName),
    /// The text behind the colon is no port.
    #[error("'{}' is not a port", .0.escape_debug())]
    Port(String),
}

impl FromStr for Peers {
    type Err = NotPeers;

    /// Reads `HOST` or `HOST:PORT`. An IPv6 address with a port has brackets.
    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, NotPeers> {
        let is_bare_ipv6 = !text.starts_with('[') && text.matches(':').count() > 1;
        match text.rsplit_once(':') {
            Some((host, port)) if !is_bare_ipv6 && !text.ends_with(']') => {
                let port = port.parse().map_err(|_| NotPeers::Port(port.to_owned()))?;
                Ok(Self::One(PeerName::new(host, port)?))
            }
            _ => Ok(Self::OfHost(canonical(text)?)),
        }
    }
}

impl Peers {
    /// Whether `name`, the first field of a line in a list, is one of them, in upper or lower case.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        match self {
            Self::One(peer) => name.eq_ignore_ascii_case(peer.as_str().as_bytes()),
            Self::OfHost(host) => {
                let colon = name.iter().rposition(|byte| *byte == b':');
                colon.is_some_and(|colon| name[..colon].eq_ignore_ascii_case(host.as_bytes()))
            }
        }
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(peer) => peer.fmt(f),
            Self::OfHost(host) => f.write_str(host),
        }
    }
}

/// The canonical text of a host, in front of a colon and a port.
fn canonical(host: &str) -> Result<String, NotAPeerName> {
    let plain = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let plain = plain.strip_suffix('.').unwrap_or(plain);
    // The name becomes the first field of a line, so it may contain no blank, no unprintable
    // character and no comment sign.
    let printable = plain.chars().all(|c| c.is_ascii_graphic() && !"#[]".contains(c));
    if plain.is_empty() || !printable {
        return Err(NotAPeerName(host.escape_debug().to_string()));
    }
    Ok(match plain.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.to_string(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        // An IPv6 address with a zone.
        Err(_) if plain.contains(':') => format!("[{}]", plain.to_ascii_lowercase()),
        Err(_) => plain.to_ascii_lowercase(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_has_one_name() {
        for (host, name) in [
            ("Example.ORG", "example.org:4433"),
            ("example.org.", "example.org:4433"),
            ("192.0.2.1", "192.0.2.1:4433"),
            ("::1", "[::1]:4433"),
            ("[0:0::1]", "[::1]:4433"),
            ("FE80::1%eth0", "[fe80::1%eth0]:4433"),
        ] {
            assert_eq!(PeerName::new(host, 4433).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_host_stands_for_the_servers_at_all_its_ports() {
        let has = |text: &str, name: &str| text.parse::<Peers>().unwrap().has(name.as_bytes());
        for text in ["node1", "NODE1.", "node1:5209"] {
            assert!(has(text, "node1:5209") && has(text, "Node1:5209"), "{text}");
            assert!(!has(text, "node10:5209") && !has(text, "node1"), "{text}");
        }
        assert!(has("node1", "node1:5300") && !has("node1:5209", "node1:5300"));
        for text in ["::1", "[::1]", "[0:0::1]:5209"] {
            assert!(has(text, "[::1]:5209"), "{text}");
        }
        assert!(has("::1", "[::1]:1") && !has("[::1]:5209", "[::1]:1"));
        let port = "node1:door".parse::<Peers>().unwrap_err();
        assert_eq!(port.to_string(), "'door' is not a port");
        assert!("".parse::<Peers>().is_err() && "a b".parse::<Peers>().is_err());
    }

    #[test]
    fn a_host_that_would_break_a_line_is_refused() {
        for host in ["", ".", "a b", "a\nb", "#a", "\u{1b}[2J", "b\u{fc}cher"] {
            assert!(PeerName::new(host, 1).is_err(), "{host:?}");
        }
    }
}
