//! One batch to send: equal segments to one destination, and how many of them fit.

use crate::ecn::Ecn;
use std::net::{IpAddr, SocketAddr};

/// The most segments that the kernel takes in one call.
pub const MAX_SEGMENTS: usize = 64;

/// The most bytes that the kernel takes in one call: 65,535 less the IPv4 and UDP headers.
pub const MAX_BATCH_BYTES: usize = 65_507;

/// How many segments of `size` bytes go out in one call; never less than one.
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

/// Datagrams for one destination, lying one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Where they go.
    pub destination: SocketAddr,
    /// The local address to send from; `None` leaves it to the route.
    pub source: Option<IpAddr>,
    /// The ECN field of each; `None` is "not capable".
    pub ecn: Option<Ecn>,
    /// The size of each datagram but the last, which may be shorter; `None` is one datagram.
    pub segment_size: Option<usize>,
    /// The datagrams. More than one batch is sent in several calls.
    pub contents: &'a [u8],
}

impl<'a> Transmit<'a> {
    /// `contents` as one datagram to `destination`, with nothing else said.
    pub const fn to(destination: SocketAddr, contents: &'a [u8]) -> Self {
        Self { destination, source: None, ecn: None, segment_size: None, contents }
    }

    /// The size of a datagram, as large as the contents if they are only one.
    pub(crate) fn datagram_size(&self) -> usize {
        match self.segment_size {
            Some(size) if size > 0 => size.min(self.contents.len()),
            _ => self.contents.len(),
        }
    }
}
