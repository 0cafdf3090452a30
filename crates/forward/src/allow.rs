//! Which targets a standing gateway connects: patterns `HOST:PORTS` of its administrator.

use crate::access::{Forbidden, Loopback, check};
use crate::share::Share;
use crate::target::Host;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::str::FromStr;

/// Patterns of targets. A target that matches none of them is refused, so an empty list allows no target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllowList(Vec<Pattern>);

/// Targets and listeners that a client of a standing gateway may request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Permits {
    /// A flow is connected if all of these lists allow its target.
    pub targets: Vec<AllowList>,
    /// Where the gateway listens for the client: addresses of its own.
    pub listens: AllowList,
    /// How many flows the client may have at once; as many as the gateway carries, if there is none.
    pub share: Option<Share>,
}

/// Targets: a host or hosts, and ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

/// Hosts of a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Hosts {
    /// All.
    Any,
    /// The host with this name.
    Name(String),
    /// All names that end with this text, which begins with a dot.
    Below(String),
    /// The addresses of a network: its address, and the length of its prefix in bits.
    Network(IpAddr, u8),
}

/// A text that is no pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is not HOST:PORTS: a host is a name, *.NAME, an address, ADDRESS/BITS or *; ports are a number, FROM-TO or *"
)]
pub struct BadPattern(String);

impl FromIterator<Pattern> for AllowList {
    fn from_iter<T: IntoIterator<Item = Pattern>>(patterns: T) -> Self {
        Self(patterns.into_iter().collect())
    }
}

impl AllowList {
    /// Whether nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a flow to `host` may be connected to `address`, which the name of the host leads to or which is the host,
    /// and to this port. A pattern with a name allows what the name leads to; one with an address allows that address,
    /// by whatever name. Loopback addresses are allowed by patterns that name them only: with such an address, or with the
    /// name `localhost`.
    pub fn permits(&self, host: &Host, address: IpAddr, port: u16) -> bool {
        self.0.iter().any(|pattern| pattern.permits(host, address, port))
    }
}

impl Pattern {
    fn permits(&self, host: &Host, address: IpAddr, port: u16) -> bool {
        let name = |wanted: &dyn Fn(&str) -> bool| match host {
            Host::Name(name) => wanted(&name.to_ascii_lowercase()),
            Host::Address(_) => false,
        };
        let is_host = match &self.hosts {
            Hosts::Any => true,
            Hosts::Name(own) => name(&|name| name.trim_end_matches('.') == own),
            Hosts::Below(end) => name(&|name| name.trim_end_matches('.').ends_with(end.as_str())),
            Hosts::Network(network, bits) => is_in(address.to_canonical(), *network, *bits),
        };
        let names_loopback = match &self.hosts {
            Hosts::Name(name) => name == "localhost",
            Hosts::Network(network, _) => network.is_loopback(),
            Hosts::Any | Hosts::Below(_) => false,
        };
        let is_loopback = check(address, Loopback::Refused) == Err(Forbidden::Loopback);
        is_host && self.ports.contains(&port) && (names_loopback || !is_loopback)
    }
}

/// Whether an address is of a network.
fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differs = u32::from(address) ^ u32::from(network);
            differs.checked_shr(32 - u32::from(bits)).unwrap_or(0) == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differs = u128::from(address) ^ u128::from(network);
            differs.checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

impl FromStr for Pattern {
    type Err = BadPattern;

    // fuzz: none, the administrator's own words
    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let parsed = text.rsplit_once(':').and_then(|(host, ports)| {
            Some(Self { hosts: hosts(host)?, ports: self::ports(ports)? })
        });
        parsed.ok_or_else(|| BadPattern(text.to_owned()))
    }
}

fn hosts(text: &str) -> Option<Hosts> {
    if text == "*" {
        return Some(Hosts::Any);
    }
    if let Some((address, bits)) = text.split_once('/') {
        let address: IpAddr = unbracketed(address).parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().ok().filter(|bits| *bits <= most)?;
        return Some(Hosts::Network(address, bits));
    }
    // Without brackets it would not be clear which colon ends the address.
    if text.contains(':') && !text.starts_with('[') {
        return None;
    }
    let (name, is_below) = match text.strip_prefix('*') {
        Some(end) => (end.strip_prefix('.')?, true),
        None => (text, false),
    };
    match Host::parse(name).ok()? {
        Host::Address(address) if !is_below => {
            Some(Hosts::Network(address, if address.is_ipv4() { 32 } else { 128 }))
        }
        Host::Address(_) => None,
        Host::Name(name) if name.contains('*') => None,
        Host::Name(name) if is_below => {
            let mut end = String::from(".");
            end.push_str(&name.to_ascii_lowercase());
            Some(Hosts::Below(end))
        }
        Host::Name(name) => Some(Hosts::Name(name.to_ascii_lowercase())),
    }
}

fn unbracketed(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}

fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|&port| port != 0);
    match text.split_once('-') {
        _ if text == "*" => Some(1..=u16::MAX),
        None => number(text).map(|port| port..=port),
        Some((from, to)) => Some(number(from)?..=number(to)?).filter(|ports| !ports.is_empty()),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Any => f.write_str("*")?,
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Below(end) => write!(f, "*{end}")?,
            Hosts::Network(address, bits) => {
                let host = Host::Address(*address);
                match (address.is_ipv4(), bits) {
                    (true, 32) | (false, 128) => host.fmt(f)?,
                    _ => write!(f, "{host}/{bits}")?,
                }
            }
        }
        let (from, to) = (self.ports.start(), self.ports.end());
        match (from, to) {
            (1, &u16::MAX) => f.write_str(":*"),
            _ if from == to => write!(f, ":{from}"),
            _ => write!(f, ":{from}-{to}"),
        }
    }
}

#[cfg(test)]
mod tests;
