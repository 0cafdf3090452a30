//! The name of a server in canonical form: host and port.

use std::fmt;
use std::net::IpAddr;

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
        let plain = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let plain = plain.strip_suffix('.').unwrap_or(plain);
        // The name becomes the first field of a line, so it may contain no blank, no unprintable
        // character and no comment sign.
        let printable = plain.chars().all(|c| c.is_ascii_graphic() && !"#[]".contains(c));
        if plain.is_empty() || !printable {
            return Err(NotAPeerName(host.escape_debug().to_string()));
        }
        let name = match plain.parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => format!("{address}:{port}"),
            Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            // An IPv6 address with a zone.
            Err(_) if plain.contains(':') => {
                format!("[{}]:{port}", plain.to_ascii_lowercase())
            }
            Err(_) => format!("{}:{port}", plain.to_ascii_lowercase()),
        };
        Ok(Self(name))
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
    fn a_host_that_would_break_a_line_is_refused() {
        for host in ["", ".", "a b", "a\nb", "#a", "\u{1b}[2J", "b\u{fc}cher"] {
            assert!(PeerName::new(host, 1).is_err(), "{host:?}");
        }
    }
}
