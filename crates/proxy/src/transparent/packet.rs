//! The packets that a transparent gateway reads and writes, of IPv4 and IPv6: the first one of a TCP connection, and the
//! refusals of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first packet of a TCP connection, which is held until the far gateway has answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Syn {
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    sequence: u32,
    /// What an ICMP message quotes of the packet: its header and eight bytes behind it (RFC 792), or as much of it as fits
    /// (RFC 4443).
    quote: Vec<u8>,
}

/// Why the host or the network of the server is not reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreachable {
    Network,
    Host,
    Prohibited,
}

impl Unreachable {
    /// Type and code of the ICMP message "destination unreachable" (RFC 792, RFC 1812; RFC 4443, section 3.1).
    const fn message(self, family: Family) -> [u8; 2] {
        match (family, self) {
            (Family::V4, Self::Network) => [3, 0],
            (Family::V4, Self::Host) => [3, 1],
            (Family::V4, Self::Prohibited) => [3, 13],
            (Family::V6, Self::Network) => [1, 0],
            (Family::V6, Self::Host) => [1, 3],
            (Family::V6, Self::Prohibited) => [1, 1],
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    V4,
    V6,
}

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const IP_BYTES: usize = 20;
const IP6_BYTES: usize = 40;
const TCP_BYTES: usize = 20;
const QUOTED_BYTES: usize = 8;
/// An ICMP message of IPv6 is not longer than the smallest MTU (RFC 4443, section 2.4), its two headers included.
const QUOTED6_BYTES_MAX: usize = 1280 - IP6_BYTES - 8;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const TTL: u8 = 64;

impl Syn {
    /// Reads a packet. `None` if it is something else.
    // fuzz: none, from the machine's own kernel, which has routed it; every read is checked
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let v4 =
            |at: usize| Some(IpAddr::V4(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?)));
        let v6 =
            |at: usize| Some(IpAddr::V6(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?)));
        let first = *packet.first()?;
        let (header, protocol, client, server, quote) = match first >> 4 {
            4 => {
                let header = usize::from(first & 0xf) * 4;
                let quote = packet.get(..header + QUOTED_BYTES)?;
                (header, *packet.get(9)?, v4(12)?, v4(16)?, quote)
            }
            6 => {
                let quote = &packet[..packet.len().min(QUOTED6_BYTES_MAX)];
                (IP6_BYTES, *packet.get(6)?, v6(8)?, v6(24)?, quote)
            }
            _ => return None,
        };
        if header < IP_BYTES || protocol != TCP {
            return None;
        }
        let tcp = packet.get(header..header + TCP_BYTES)?;
        let flags = tcp[13] & (FIN | SYN | RST | ACK);
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        Some(Self {
            client: SocketAddr::new(client, port(0)),
            server: SocketAddr::new(server, port(2)),
            sequence: u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?),
            quote: quote.to_vec(),
        })
        .filter(|_| flags == SYN)
    }

    /// The server refuses the connection: a reset, as the server's kernel would send it (RFC 9293, section 3.5.2).
    pub(super) fn reset(&self) -> Vec<u8> {
        let mut tcp = Vec::with_capacity(TCP_BYTES);
        tcp.extend(self.server.port().to_be_bytes());
        tcp.extend(self.client.port().to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(self.sequence.wrapping_add(1).to_be_bytes());
        tcp.extend([(TCP_BYTES as u8 / 4) << 4, RST | ACK]);
        // Window, checksum, urgent pointer.
        tcp.extend([0; 6]);
        let sum = checksum(&self.with_pseudo_header(TCP, &tcp));
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        self.packet(TCP, &tcp)
    }

    /// The server is not reached.
    pub(super) fn unreachable(&self, why: Unreachable) -> Vec<u8> {
        let family = self.family();
        let [kind, code] = why.message(family);
        let mut icmp = vec![kind, code, 0, 0, 0, 0, 0, 0];
        icmp.extend(&self.quote);
        let (protocol, sum) = match family {
            Family::V4 => (ICMP, checksum(&icmp)),
            Family::V6 => (ICMP6, checksum(&self.with_pseudo_header(ICMP6, &icmp))),
        };
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        self.packet(protocol, &icmp)
    }

    const fn family(&self) -> Family {
        match self.server {
            SocketAddr::V4(_) => Family::V4,
            SocketAddr::V6(_) => Family::V6,
        }
    }

    /// The addresses of a packet to the client.
    fn addresses(&self) -> Vec<u8> {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        [octets(self.server.ip()), octets(self.client.ip())].concat()
    }

    /// What the checksum of a payload is made of (RFC 9293, section 3.1; RFC 8200, section 8.1). The two pseudo headers
    /// have the same sum where their fields have the same values.
    fn with_pseudo_header(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = self.addresses();
        out.extend([0, protocol]);
        // A payload has less than 1,280 bytes.
        out.extend((payload.len() as u16).to_be_bytes());
        out.extend(payload);
        out
    }

    /// A packet to the client.
    fn packet(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = match self.family() {
            Family::V4 => {
                let length = ((IP_BYTES + payload.len()) as u16).to_be_bytes();
                let mut out = vec![0x45, 0, length[0], length[1]];
                out.extend([0, 0, 0x40, 0, TTL, protocol, 0, 0]);
                out.extend(self.addresses());
                let sum = checksum(&out);
                out[10..12].copy_from_slice(&sum.to_be_bytes());
                out
            }
            Family::V6 => {
                let length = (payload.len() as u16).to_be_bytes();
                let mut out = vec![0x60, 0, 0, 0, length[0], length[1], protocol, TTL];
                out.extend(self.addresses());
                out
            }
        };
        out.extend(payload);
        out
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests;
