//! The packets of IPv4 that a transparent gateway reads and writes: the first one of a TCP connection, and the refusals of
//! it.

use std::net::{Ipv4Addr, SocketAddrV4};

/// The first packet of a TCP connection, which is held until the far gateway has answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Syn {
    pub(super) client: SocketAddrV4,
    pub(super) server: SocketAddrV4,
    sequence: u32,
    /// The header of the packet and eight bytes behind it, which an ICMP message quotes (RFC 792).
    quote: Vec<u8>,
}

/// Why the host or the network of the server is not reached (codes of the ICMP message "destination unreachable").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unreachable {
    Network = 0,
    Host = 1,
    Prohibited = 13,
}

const TCP: u8 = 6;
const ICMP: u8 = 1;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const QUOTED_BYTES: usize = 8;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const TTL: u8 = 64;

impl Syn {
    /// Reads a packet. `None` if it is something else.
    // fuzz: none, from the machine's own kernel, which has routed it; every read is checked
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let first = *packet.first()?;
        let header = usize::from(first & 0xf) * 4;
        if first >> 4 != 4 || header < IP_BYTES || *packet.get(9)? != TCP {
            return None;
        }
        let quote = packet.get(..header + QUOTED_BYTES)?.to_vec();
        let tcp = packet.get(header..header + TCP_BYTES)?;
        let flags = tcp[13] & (FIN | SYN | RST | ACK);
        let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        Some(Self {
            client: SocketAddrV4::new(address(12)?, port(0)),
            server: SocketAddrV4::new(address(16)?, port(2)),
            sequence: u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?),
            quote,
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
        let mut pseudo = Vec::new();
        pseudo.extend(self.server.ip().octets());
        pseudo.extend(self.client.ip().octets());
        pseudo.extend([0, TCP, 0, TCP_BYTES as u8]);
        pseudo.extend(&tcp);
        tcp[16..18].copy_from_slice(&checksum(&pseudo).to_be_bytes());
        self.packet(TCP, &tcp)
    }

    /// The server is not reached.
    pub(super) fn unreachable(&self, why: Unreachable) -> Vec<u8> {
        const DESTINATION_UNREACHABLE: u8 = 3;
        let mut icmp = vec![DESTINATION_UNREACHABLE, why as u8, 0, 0, 0, 0, 0, 0];
        icmp.extend(&self.quote);
        let sum = checksum(&icmp);
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
        self.packet(ICMP, &icmp)
    }

    /// A packet to the client.
    fn packet(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        // A payload has less than a hundred bytes.
        let length = (IP_BYTES + payload.len()) as u16;
        let mut out = vec![0x45, 0];
        out.extend(length.to_be_bytes());
        out.extend([0, 0, 0x40, 0, TTL, protocol, 0, 0]);
        out.extend(self.server.ip().octets());
        out.extend(self.client.ip().octets());
        let sum = checksum(&out);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
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
mod tests {
    use super::*;

    /// A packet with these flags.
    fn packet(flags: u8) -> Vec<u8> {
        let mut out = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 2, 10, 9, 0, 1];
        out.extend([0x9c, 0x40, 0, 80]);
        out.extend(0xffff_ffff_u32.to_be_bytes());
        out.extend([0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        out
    }

    #[test]
    fn only_the_first_packet_of_a_connection_is_read() {
        let syn = Syn::read(&packet(SYN)).unwrap();
        assert_eq!(syn.client.to_string(), "10.0.0.2:40000");
        assert_eq!(syn.server.to_string(), "10.9.0.1:80");
        // Flags of ECN are no matter (RFC 3168, section 6.1.1).
        assert_eq!(Syn::read(&packet(SYN | 0xc0)), Some(syn));
        for flags in [0, ACK, SYN | ACK, RST, SYN | RST, SYN | FIN] {
            assert_eq!(Syn::read(&packet(flags)), None, "{flags}");
        }
        let whole = packet(SYN);
        for length in 0..whole.len() {
            assert_eq!(Syn::read(&whole[..length]), None, "{length}");
        }
        let mut other = packet(SYN);
        other[9] = 17;
        assert_eq!(Syn::read(&other), None);
        other = packet(SYN);
        other[0] = 0x65;
        assert_eq!(Syn::read(&other), None);
        other[0] = 0x4f;
        assert_eq!(Syn::read(&other), None, "the header is longer than the packet");
    }

    #[test]
    fn refusals_have_right_checksums_and_the_client_takes_them_for_the_server_s() {
        let syn = Syn::read(&packet(SYN)).unwrap();
        let reset = syn.reset();
        assert_eq!(checksum(&reset[..20]), 0);
        assert_eq!((&reset[12..16], &reset[16..20]), (&[10, 9, 0, 1][..], &[10, 0, 0, 2][..]));
        assert_eq!(reset[28..32], [0, 0, 0, 0], "one more than the client's number");
        assert_eq!(reset[33], RST | ACK);
        let pseudo = [&reset[12..20], &[0, TCP, 0, 20][..], &reset[20..]].concat();
        assert_eq!(checksum(&pseudo), 0);
        let icmp = syn.unreachable(Unreachable::Host);
        assert_eq!((checksum(&icmp[..20]), checksum(&icmp[20..])), (0, 0));
        assert_eq!(icmp[20..22], [3, 1]);
        assert_eq!(icmp[28..], packet(SYN)[..28]);
        assert_eq!(usize::from(icmp[3]), icmp.len());
    }
}
