//! What a connection takes in and gives out: datagrams, several in one buffer.

use crate::ecn::Marking;
use crate::run::Home;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use hikyaku_units::Instant;

/// Datagrams to send: `contents[..len]`, cut every `segment` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Where to.
    pub destination: SocketAddr,
    /// Bytes in all.
    pub len: usize,
    /// Bytes of each datagram; the last may be shorter.
    pub segment: usize,
    /// What their IP headers say of congestion marks.
    pub marking: Marking,
}

/// Received datagrams of one sender: `bytes[..len]`, cut every `stride` bytes.
pub struct Datagrams {
    /// Who sent them.
    pub source: SocketAddr,
    /// To which of this host's addresses, if the socket says so.
    pub local: Option<IpAddr>,
    /// Whether they carried the congestion mark.
    pub congestion_experienced: bool,
    /// When they arrived: the kernel's time stamp where there is one, so that a receiver that is
    /// late to read does not report its own lateness as the path's delay.
    pub received: Instant,
    /// The buffer they lie in.
    pub bytes: Vec<u8>,
    /// Bytes used of it.
    pub len: usize,
    /// Bytes of each datagram; the last may be shorter.
    pub stride: usize,
    /// Where the buffer goes when nobody needs it any more.
    pub home: Option<Arc<dyn Home>>,
}

impl Datagrams {
    /// One unmarked datagram in a buffer of its own.
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
