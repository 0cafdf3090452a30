//! Which connections a transparent gateway takes in: whose, and to where.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Which connections are taken in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    /// Whose connections.
    pub(crate) from: Clients,
    /// Networks of their servers.
    pub(crate) to: Vec<Network>,
}

/// Whose connections are taken in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Clients {
    /// Of hosts that come in at this interface.
    At(Interface),
    /// Of a command that the gateway starts, and of the programs that it starts.
    OfCommand,
}

/// The name of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface(String);

/// A network of IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Network(IpAddr, u8);

/// A version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    V4,
    V6,
}

impl Network {
    /// All addresses of the versions of IP that this host has.
    pub(crate) fn all() -> Vec<Self> {
        let has_v6 = fs::read_to_string("/proc/net/if_inet6").is_ok_and(|text| !text.is_empty());
        let v6 = has_v6.then_some(Self(Ipv6Addr::UNSPECIFIED.into(), 0));
        [Self(Ipv4Addr::UNSPECIFIED.into(), 0)].into_iter().chain(v6).collect()
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Family {
    /// The option of `ip` for this version.
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    /// All addresses.
    pub(super) const fn all(self) -> &'static str {
        match self {
            Self::V4 => "0.0.0.0/0",
            Self::V6 => "::/0",
        }
    }
}

impl Taken {
    /// The versions of IP of the networks.
    pub(super) fn families(&self) -> Vec<Family> {
        let has = |is_v6| self.to.iter().any(|network| network.0.is_ipv6() == is_v6);
        let all = [(Family::V4, has(false)), (Family::V6, has(true))];
        all.into_iter().filter_map(|(family, is_there)| is_there.then_some(family)).collect()
    }

    /// The networks of a version, as a set of nftables.
    pub(super) fn networks(&self, family: Family) -> String {
        let is_v6 = family == Family::V6;
        let of_family = self.to.iter().filter(|network| network.0.is_ipv6() == is_v6);
        of_family.map(Network::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// Bytes of the name of an interface at most (`IFNAMSIZ`, with its end).
const NAME_BYTES_MAX: usize = 15;
impl FromStr for Interface {
    type Err = String;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
        match fits && text.chars().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!("'{text}' is not the name of an interface, such as eth1")),
        }
    }
}

impl FromStr for Network {
    type Err = String;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let read = || {
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv6() { 128 } else { 32 };
            let bits = match bits {
                Some(bits) => bits.parse().ok().filter(|bits| *bits <= most)?,
                None => most,
            };
            Some(Self(address, bits))
        };
        read().ok_or_else(|| {
            format!("'{text}' is not a network, such as 10.0.0.0/8 or 2001:db8::/32")
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to: Vec<String> = self.to.iter().map(Network::to_string).collect();
        match &self.from {
            Clients::At(interface) => write!(f, "connections at {interface} to {}", to.join(", ")),
            Clients::OfCommand => write!(f, "connections of the command to {}", to.join(", ")),
        }
    }
}
