//! The input and output of a connection: several datagrams in one buffer.

use crate::ecn::Marking;
use crate::run::Home;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use hikyaku_units::Instant;

/// Datagrams to send: `contents[..len]`, in datagrams of `segment` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The destination address.
    pub destination: SocketAddr,
    /// Bytes of all datagrams together.
    pub len: usize,
    /// Bytes of each datagram; the last may be shorter.
    pub segment: usize,
    /// The ECN field of their IP headers.
    pub marking: Marking,
}

/// Received datagrams of one source: `bytes[..len]`, one every `stride` bytes.
pub struct Datagrams {
    /// The source address.
    pub source: SocketAddr,
    /// The destination address on this host, if the socket reports it.
    pub local: Option<IpAddr>,
    /// Whether they carried the congestion-experienced (CE) codepoint.
    pub congestion_experienced: bool,
    /// When they arrived. This is the kernel's time stamp if available, so that a delay in reading
    /// the socket is not reported as delay of the path.
    pub received: Instant,
    /// The buffer that contains them.
    pub bytes: Vec<u8>,
    /// Bytes used of the buffer.
    pub len: usize,
    /// Bytes of each datagram; the last may be shorter.
    pub stride: usize,
    /// Where the buffer is returned after its last use.
    pub home: Option<Arc<dyn Home>>,
}

impl Datagrams {
    /// A single datagram without a congestion mark, in a buffer of its own.
    pub fn one(source: SocketAddr, received: Instant, bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self {
            source,
            local: None,
            congestion_experienced: false,
            received,
            bytes,
            len,
            stride: len,
            home: None,
        }
    }
}
