//! The layout of a packet on the device: offload header, IP, TCP or UDP, and the number of wire
//! segments it consists of.

use super::checksum;
use hikyaku_link::Ecn;
use hikyaku_tun::{Gso, Header};
use std::net::IpAddr;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Offsets within a packet, counted from the first byte of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) offload: Header,
    pub(crate) ip: Ip,
    pub(crate) transport: Transport,
    /// Start of the transport header.
    pub(crate) transport_at: usize,
    /// Start of the payload; for other transport protocols the start of their header.
    pub(crate) payload_at: usize,
    /// Length of the packet.
    pub(crate) len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ip {
    V4,
    V6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
    /// Another transport protocol, or an IP fragment.
    Other,
}

impl Layout {
    /// Parses the headers in `head`, the first bytes of a packet that is `len` bytes long with its
    /// offload header. `None` if it is not IP or is truncated.
    pub(crate) fn parse(head: &[u8], len: usize) -> Option<Self> {
        let offload = Header::parse(head)?;
        let packet = &head[Header::LEN..];
        let len = len - Header::LEN;
        let (ip, transport, transport_at) = match packet.first()? >> 4 {
            4 if packet.len() >= 20 => {
                let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
                let protocol = if fragment { 0 } else { packet[9] };
                (Ip::V4, protocol, usize::from(packet[0] & 15) * 4)
            }
            6 if packet.len() >= 40 => (Ip::V6, packet[6], 40),
            _ => return None,
        };
        let rest = packet.get(transport_at..)?;
        let (transport, header) = match transport {
            TCP if rest.len() >= 20 => (Transport::Tcp, usize::from(rest[12] >> 4) * 4),
            UDP if rest.len() >= 8 => (Transport::Udp, 8),
            _ => (Transport::Other, 0),
        };
        let payload_at = transport_at + header;
        (payload_at <= packet.len()).then_some(Self {
            offload,
            ip,
            transport,
            transport_at,
            payload_at,
            len,
        })
    }

    /// Payload of every wire segment except the last, in bytes.
    pub(crate) fn step(&self) -> usize {
        let whole = self.len - self.payload_at;
        match (self.offload.gso, self.transport) {
            (Gso::None, _) | (_, Transport::Other) => whole,
            _ if self.offload.gso_size == 0 => whole,
            _ => usize::from(self.offload.gso_size),
        }
    }

    /// Number of wire segments of the packet.
    pub(crate) fn segments(&self) -> usize {
        let whole = self.len - self.payload_at;
        if whole == 0 { 1 } else { whole.div_ceil(self.step()) }
    }

    /// Length of wire segment `index` in bytes, IP header included.
    pub(crate) fn segment_len(&self, index: usize) -> u32 {
        let before = self.step() * index;
        let payload = (self.len - self.payload_at - before).min(self.step());
        (self.payload_at + payload) as u32
    }
}

/// The destination address of a packet.
pub(crate) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(16..20)?.try_into().ok().map(|bytes: [u8; 4]| bytes.into()),
        6 => packet.get(24..40)?.try_into().ok().map(|bytes: [u8; 16]| bytes.into()),
        _ => None,
    }
}

/// The ECN codepoint: whether the sender supports ECN marks.
pub(crate) fn ecn(packet: &[u8], ip: Ip) -> Ecn {
    let bits = match ip {
        Ip::V4 => packet[1] & 3,
        Ip::V6 => packet[1] >> 4 & 3,
    };
    if bits == 1 || bits == 2 { Ecn::Capable } else { Ecn::Not }
}

/// Sets the codepoint CE (congestion experienced). [`set_lengths`] updates the IPv4 checksum later.
pub(crate) fn mark_ce(packet: &mut [u8], ip: Ip) {
    match ip {
        Ip::V4 => packet[1] |= 3,
        Ip::V6 => packet[1] |= 0x30,
    }
}

/// Sets the length fields in the headers of `packet` to a length of `len` bytes and computes the
/// IPv4 header checksum.
pub(crate) fn set_lengths(packet: &mut [u8], layout: &Layout, len: usize) {
    match layout.ip {
        Ip::V4 => {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            packet[10..12].fill(0);
            let sum = !checksum::fold(checksum::add(0, &packet[..layout.transport_at]));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Ip::V6 => packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes()),
    }
    if layout.transport == Transport::Udp {
        let at = layout.transport_at + 4;
        packet[at..at + 2].copy_from_slice(&((len - layout.transport_at) as u16).to_be_bytes());
    }
}

/// Writes the checksum of the pseudo-header of a packet of `len` bytes into the transport header.
/// The kernel leaves packets in this state if their checksum is to be computed later.
pub(crate) fn set_partial_checksum(packet: &mut [u8], layout: &Layout, len: usize) {
    let Some(at) = checksum_at(layout) else { return };
    let protocol = if layout.transport == Transport::Tcp { TCP } else { UDP };
    let addresses = match layout.ip {
        Ip::V4 => &packet[12..20],
        Ip::V6 => &packet[8..40],
    };
    let length = (len - layout.transport_at) as u64;
    let sum = checksum::add(u64::from(protocol) + length, addresses);
    packet[at..at + 2].copy_from_slice(&checksum::fold(sum).to_be_bytes());
}

/// Completes the checksum of a packet that has only the sum over the pseudo-header.
pub(crate) fn complete_checksum(packet: &mut [u8], layout: &Layout) {
    let Some(at) = checksum_at(layout) else { return };
    let sum = !checksum::fold(checksum::add(0, &packet[layout.transport_at..]));
    // In UDP a checksum of zero means that there is none; 0xffff is the equivalent value.
    let sum = if sum == 0 && layout.transport == Transport::Udp { 0xffff } else { sum };
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Writes a port number at offset `at` of a packet with its offload header. Updates the checksum
/// incrementally (RFC 1624) if it is already complete.
pub(crate) fn replace_port(packet: &mut [u8], layout: &Layout, at: usize, port: u16) {
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let old = word(packet, at);
    packet[at..at + 2].copy_from_slice(&port.to_be_bytes());
    // A checksum that the kernel still has to compute will include the new port, and a packet
    // without a checksum needs no update.
    let Some(sum_at) = checksum_at(layout).map(|at| at + Header::LEN) else { return };
    let sum = word(packet, sum_at);
    if layout.offload.checksum.is_some() || sum == 0 {
        return;
    }
    let sum = !checksum::fold(u64::from(!sum) + u64::from(!old) + u64::from(port));
    let sum = if sum == 0 { 0xffff } else { sum };
    packet[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn checksum_at(layout: &Layout) -> Option<usize> {
    match layout.transport {
        Transport::Tcp => Some(layout.transport_at + 16),
        Transport::Udp => Some(layout.transport_at + 6),
        Transport::Other => None,
    }
}
