//! Socket addresses in the kernel's layout, encoded and decoded without `unsafe`.
//!
//! An IPv6 socket represents an IPv4 address as `::ffff:a.b.c.d` (RFC 4291, section 2.5.5.2). This
//! form does not leave the crate: callers pass and receive plain IPv4 addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The size of `sockaddr_in6` in bytes, the larger of the two address structures.
pub(crate) const RAW_LENGTH: usize = size_of::<libc::sockaddr_in6>();
const RAW_LENGTH_V4: usize = size_of::<libc::sockaddr_in>();

/// A `sockaddr_in` or `sockaddr_in6` with the kernel's alignment.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct RawAddress {
    bytes: [u8; RAW_LENGTH],
}

/// The family of a socket. It decides how an IPv4 destination is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SocketFamily {
    V4,
    V6,
}

impl RawAddress {
    /// A buffer for an address that the kernel writes.
    pub(crate) const fn empty() -> Self {
        Self { bytes: [0; RAW_LENGTH] }
    }

    /// Encodes `address` for a socket of `family`, and returns it with its length in bytes. `None`
    /// for an IPv6 address on an IPv4 socket, which cannot send there.
    pub(crate) fn encode(address: SocketAddr, family: SocketFamily) -> Option<(Self, usize)> {
        match (address, family) {
            (SocketAddr::V4(v4), SocketFamily::V4) => Some((Self::v4(v4), RAW_LENGTH_V4)),
            (SocketAddr::V4(v4), SocketFamily::V6) => {
                let mapped = SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0);
                Some((Self::v6(mapped), RAW_LENGTH))
            }
            (SocketAddr::V6(v6), SocketFamily::V6) => Some((Self::v6(v6), RAW_LENGTH)),
            (SocketAddr::V6(_), SocketFamily::V4) => None,
        }
    }

    /// The address that the kernel wrote; `None` for any other family.
    pub(crate) fn decode(&self) -> Option<SocketAddr> {
        let family = family(self.array(0));
        let port = u16::from_be_bytes(self.array(2));
        match family {
            libc::AF_INET => {
                let ip = Ipv4Addr::from(self.array::<4>(4));
                Some(SocketAddr::V4(SocketAddrV4::new(ip, port)))
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(self.array::<16>(8));
                let scope = u32::from_ne_bytes(self.array(24));
                Some(match unmapped(ip) {
                    IpAddr::V4(v4) => SocketAddr::V4(SocketAddrV4::new(v4, port)),
                    // The flow label is dropped: it can differ between packets of the same peer,
                    // and addresses are compared to identify a peer.
                    IpAddr::V6(v6) => SocketAddr::V6(SocketAddrV6::new(v6, port, 0, scope)),
                })
            }
            _ => None,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const Self {
        self
    }

    fn v4(address: SocketAddrV4) -> Self {
        let mut raw = Self::empty();
        raw.put(0, head(libc::AF_INET, RAW_LENGTH_V4));
        raw.put(2, address.port().to_be_bytes());
        raw.put(4, address.ip().octets());
        raw
    }

    fn v6(address: SocketAddrV6) -> Self {
        let mut raw = Self::empty();
        raw.put(0, head(libc::AF_INET6, RAW_LENGTH));
        raw.put(2, address.port().to_be_bytes());
        raw.put(4, address.flowinfo().to_ne_bytes());
        raw.put(8, address.ip().octets());
        raw.put(24, address.scope_id().to_ne_bytes());
        raw
    }

    fn put<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) {
        self.bytes[offset..offset + N].copy_from_slice(&bytes);
    }

    fn array<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.bytes[offset..offset + N]);
        bytes
    }
}

/// The first two bytes of an address: the family in Linux; its length and the family in systems that
/// descend from 4.4BSD, such as macOS.
#[cfg(target_os = "linux")]
fn head(family: i32, _length: usize) -> [u8; 2] {
    (family as u16).to_ne_bytes()
}

#[cfg(not(target_os = "linux"))]
fn head(family: i32, length: usize) -> [u8; 2] {
    [length as u8, family as u8]
}

/// The family in the first two bytes of an address.
#[cfg(target_os = "linux")]
fn family(head: [u8; 2]) -> i32 {
    u16::from_ne_bytes(head).into()
}

#[cfg(not(target_os = "linux"))]
fn family([_length, family]: [u8; 2]) -> i32 {
    family.into()
}

/// Converts `::ffff:a.b.c.d` to the IPv4 address; other addresses are unchanged.
pub(crate) fn unmapped(ip: Ipv6Addr) -> IpAddr {
    ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
}

#[cfg(test)]
mod tests;
