//! Which addresses a gateway dials. The check is made on the address that is dialled, after a name was looked up: the
//! owner of a name may let it resolve to any address (DNS rebinding).

use crate::target::Host;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether loopback addresses of the far gateway are among the targets of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Loopback {
    /// They are not: a program at the near gateway does not reach services that the far host keeps for itself.
    #[default]
    Refused,
    /// The user has named one as the target.
    Named,
}

/// Why an address is not dialled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Forbidden {
    /// 0.0.0.0/8 or `::`.
    #[error("0.0.0.0/8 and :: are no addresses of a host")]
    Unspecified,
    /// 127.0.0.0/8 or `::1`, and the user has not named it.
    #[error("loopback addresses of the far side are reached only if -L names them")]
    Loopback,
    /// 169.254.0.0/16 or `fe80::/10`.
    #[error("link-local addresses are not reached")]
    LinkLocal,
    /// A metadata service, which returns the credentials of a cloud machine to every program on it.
    #[error("metadata services of clouds are not reached")]
    Metadata,
    /// 224.0.0.0/4 or `ff00::/8`.
    #[error("multicast addresses are not reached")]
    Multicast,
    /// 255.255.255.255.
    #[error("the broadcast address is not reached")]
    Broadcast,
}

/// Metadata services outside the link-local networks: of Alibaba, Oracle and Azure.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
/// Metadata services with IPv6 addresses: of Amazon and Google.
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Whether a flow may go to this address. An IPv6 address that leads to an IPv4 address is judged by that one as well:
/// `::ffff:0:0/96`, `::/96`, `64:ff9b::/96` (RFC 6052) and `2002::/16` (RFC 3056).
///
/// # Errors
///
/// It may not, for this reason.
pub fn check(address: IpAddr, loopback: Loopback) -> Result<(), Forbidden> {
    match address {
        IpAddr::V4(address) => check_v4(address, loopback),
        IpAddr::V6(address) => check_v6(address, loopback),
    }
}

/// Whether the user has named a loopback address: the address itself, or `localhost`.
pub fn is_named_loopback(host: &Host) -> Loopback {
    let is_named = match host {
        Host::Address(address) => address.to_canonical().is_loopback(),
        Host::Name(name) => name.eq_ignore_ascii_case("localhost"),
    };
    if is_named { Loopback::Named } else { Loopback::Refused }
}

fn check_v4(address: Ipv4Addr, loopback: Loopback) -> Result<(), Forbidden> {
    let forbidden = match address {
        _ if address.octets()[0] == 0 => Forbidden::Unspecified,
        _ if address.is_loopback() && loopback == Loopback::Refused => Forbidden::Loopback,
        _ if address.is_link_local() => Forbidden::LinkLocal,
        _ if METADATA_V4.contains(&address) => Forbidden::Metadata,
        _ if address.is_multicast() => Forbidden::Multicast,
        _ if address.is_broadcast() => Forbidden::Broadcast,
        _ => return Ok(()),
    };
    Err(forbidden)
}

fn check_v6(address: Ipv6Addr, loopback: Loopback) -> Result<(), Forbidden> {
    let forbidden = match address {
        _ if address.is_unspecified() => Forbidden::Unspecified,
        _ if address.is_loopback() && loopback == Loopback::Named => return Ok(()),
        _ if address.is_loopback() => Forbidden::Loopback,
        _ if address.is_unicast_link_local() => Forbidden::LinkLocal,
        _ if METADATA_V6.contains(&address) => Forbidden::Metadata,
        _ if address.is_multicast() => Forbidden::Multicast,
        _ => return embedded_v4(address).map_or(Ok(()), |v4| check_v4(v4, loopback)),
    };
    Err(forbidden)
}

/// The IPv4 address to which an IPv6 address leads.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |[a, b]: [u16; 2]| Ipv4Addr::from(u32::from(a) << 16 | u32::from(b));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some(v4([a, b])),
        [0x2002, a, b, ..] => Some(v4([a, b])),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
