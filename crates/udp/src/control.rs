//! Control messages (`cmsg(3)`) of a datagram, encoded and decoded without `unsafe`.
//!
//! The kernel's layout of a message is a length in native byte order, two `int`s for level and type,
//! and the data. The length is a `size_t` in Linux, and each message is aligned to one; elsewhere it is
//! a `socklen_t`. Decoding stops at the first header that does not fit, so a truncated buffer yields
//! fewer messages but no wrong ones.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod others;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use others as system;

use crate::address::{SocketFamily, unmapped};
use crate::ecn::Ecn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The size of the buffer in bytes. All messages of one send or one receive fit.
const CAPACITY: usize = 192;
const ALIGN: usize = system::LENGTH_BYTES;
const HEADER: usize = ALIGN + 2 * size_of::<i32>();

/// A buffer of control messages.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control {
    bytes: [u8; CAPACITY],
    used: usize,
}

/// The decoded control messages of a received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Received {
    pub(crate) destination: Option<IpAddr>,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) segment_size: Option<usize>,
    pub(crate) overflows: u32,
    /// Arrival time in nanoseconds of `CLOCK_REALTIME`.
    pub(crate) arrived: Option<u64>,
}

impl Control {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; CAPACITY], used: 0 }
    }

    /// The encoded messages.
    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// The whole buffer, for the kernel to write to.
    pub(crate) fn room(&mut self) -> &mut [u8; CAPACITY] {
        &mut self.bytes
    }

    /// The first `length` bytes, which the kernel wrote.
    pub(crate) fn received(&self, length: usize) -> &[u8] {
        &self.bytes[..length.min(CAPACITY)]
    }

    /// Asks the kernel to split the contents into datagrams of `size` bytes (`UDP_SEGMENT`,
    /// udp(7)). A system without that is not asked.
    pub(crate) fn push_segment_size(&mut self, size: u16) {
        if let Some((level, kind)) = system::SEGMENT_SIZE {
            self.push(level, kind, &size.to_ne_bytes());
        }
    }

    /// Sets the traffic class byte of the packets; `family` is that of the destination.
    pub(crate) fn push_traffic_class(&mut self, family: SocketFamily, byte: u8) {
        let value = i32::from(byte).to_ne_bytes();
        match family {
            SocketFamily::V4 => self.push(libc::IPPROTO_IP, libc::IP_TOS, &value),
            SocketFamily::V6 => self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &value),
        }
    }

    /// Sets the source address of the packets, overriding the route's choice.
    pub(crate) fn push_source(&mut self, source: IpAddr) {
        match source {
            IpAddr::V4(v4) => {
                // struct in_pktinfo: interface index, source address, destination in the header
                // (ignored).
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&v4.octets());
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            IpAddr::V6(v6) => {
                // struct in6_pktinfo: address, interface index.
                let mut info = [0; 20];
                info[..16].copy_from_slice(&v6.octets());
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
        }
    }

    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let length = HEADER + data.len();
        let message = &mut self.bytes[self.used..self.used + length];
        message[..ALIGN].copy_from_slice(&system::encoded(length));
        message[ALIGN..ALIGN + 4].copy_from_slice(&level.to_ne_bytes());
        message[ALIGN + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER..].copy_from_slice(data);
        self.used += length.next_multiple_of(ALIGN);
    }
}

/// Decodes the control messages that the kernel wrote.
pub(crate) fn parse(mut messages: &[u8]) -> Received {
    let mut received = Received::default();
    while let Some((length, level, kind)) = header(messages) {
        let Some(data) = messages.get(HEADER..length) else { break };
        received.take(level, kind, data);
        messages = messages.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
    }
    received
}

impl Received {
    fn take(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            // The kernel reports one byte for IPv4 and an int for IPv6.
            (libc::IPPROTO_IP, system::RECEIVED_TOS) => {
                self.ecn = data.first().copied().and_then(Ecn::from_traffic_class);
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                self.ecn = int(data).and_then(|class| Ecn::from_traffic_class(class as u8));
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                self.destination =
                    data.get(8..).and_then(array::<4>).map(|v4| Ipv4Addr::from(v4).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.destination = array::<16>(data).map(|v6| unmapped(Ipv6Addr::from(v6)));
            }
            _ => system::take(self, level, kind, data),
        }
    }
}

fn header(messages: &[u8]) -> Option<(usize, i32, i32)> {
    let length = system::length(array(messages)?)?;
    let level = int(messages.get(ALIGN..)?)?;
    let kind = int(messages.get(ALIGN + 4..)?)?;
    (length >= HEADER).then_some((length, level, kind))
}

fn int(data: &[u8]) -> Option<i32> {
    array(data).map(i32::from_ne_bytes)
}

fn array<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    data.first_chunk().copied()
}

#[cfg(test)]
mod tests;
