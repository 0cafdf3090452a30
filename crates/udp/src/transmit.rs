//! A batch to send: equal segments for one destination, and how many of them one call takes.

use crate::ecn::Ecn;
use std::net::{IpAddr, SocketAddr};

/// The most segments that the kernel accepts in one call (`UDP_MAX_SEGMENTS` before Linux 6.9).
pub const MAX_SEGMENTS: usize = 64;

/// The most bytes that the kernel accepts in one call: 65,535 less 20 of the IPv4 header and 8 of
/// the UDP header.
pub const MAX_BATCH_BYTES: usize = 65_507;

/// How many segments of `size` bytes one call sends, at least one.
pub const fn segments_in_batch(size: usize) -> usize {
    if size == 0 {
        return MAX_SEGMENTS;
    }
    let fitting = MAX_BATCH_BYTES / size;
    if fitting > MAX_SEGMENTS {
        MAX_SEGMENTS
    } else if fitting == 0 {
        1
    } else {
        fitting
    }
}

/// Contiguous datagrams for one destination.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The destination.
    pub destination: SocketAddr,
    /// The local address to send from; `None` lets the route choose.
    pub source: Option<IpAddr>,
    /// The ECN field of every datagram; `None` for "not ECN-capable".
    pub ecn: Option<Ecn>,
    /// The size in bytes of every datagram but the last, which may be shorter. `None` for a single
    /// datagram.
    pub segment_size: Option<usize>,
    /// The datagrams. If they exceed one batch, they are sent in several calls.
    pub contents: &'a [u8],
}

impl<'a> Transmit<'a> {
    /// `contents` as one datagram to `destination`, with default source and no ECN.
    pub const fn to(destination: SocketAddr, contents: &'a [u8]) -> Self {
        Self { destination, source: None, ecn: None, segment_size: None, contents }
    }

    /// The size of a datagram in bytes: that of the contents if it is a single one.
    pub(crate) fn datagram_size(&self) -> usize {
        match self.segment_size {
            Some(size) if size > 0 => size.min(self.contents.len()),
            _ => self.contents.len(),
        }
    }
}
