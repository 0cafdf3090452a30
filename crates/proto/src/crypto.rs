//! What the transport asks of cryptography. The product's answer is TLS 1.3 in `hikyaku-crypto`;
//! the simulator's is a stand-in that no product binary contains.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use hikyaku_wire::{CipherId, ConnectionId};

/// Seals or opens packets in one direction under one key.
pub trait PacketKey: Send {
    /// Seals `buffer`, whose last 16 bytes are room for the tag.
    fn seal(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]);

    /// Opens `buffer`, whose last 16 bytes are the tag; gives the length of the plaintext, or
    /// `None` if the packet is not authentic (then `buffer` holds garbage).
    fn open(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) -> Option<usize>;

    /// Packets that one key may seal before it must be replaced.
    fn packet_limit(&self) -> u64;
}

/// The keys of both directions.
pub struct KeyPair {
    /// Seals what we send.
    pub seal: Box<dyn PacketKey>,
    /// Opens what we receive.
    pub open: Box<dyn PacketKey>,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair")
    }
}

/// A one-way chain of data keys: earlier keys cannot be found from later ones.
pub trait KeyChain: Send {
    /// The next pair; the first call gives the first.
    fn next_pair(&mut self) -> KeyPair;
}

/// Which keys protect a handshake packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Keys anybody can compute; they only tell apart damage from data.
    Initial,
    /// Keys of the TLS handshake.
    Handshake,
}

impl Level {
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Initial => 0,
            Self::Handshake => 1,
        }
    }
}

/// Why a handshake failed, in words for this end's user; the peer is not told them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionError(pub String);

/// A handshake in progress: a sans-I/O TLS.
pub trait Session: Send {
    /// The keys of [`Level::Initial`] for a connection begun with `destination`.
    fn initial_keys(&self, destination: ConnectionId) -> KeyPair;

    /// Takes the peer's handshake bytes, in order.
    // fuzz: tls
    fn read(&mut self, bytes: &[u8]) -> Result<(), SessionError>;

    /// Appends handshake bytes to send at the present level; `Some` when the level changes to
    /// [`Level::Handshake`] with these keys. Called until it neither appends nor changes.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyPair>;

    /// The peer's transport parameters, once known and authentic enough to use.
    fn peer_params(&self) -> Option<Vec<u8>>;

    /// Whether the peer has proven all that it must and data keys can be had.
    fn is_complete(&self) -> bool;

    /// The chain of data keys for `cipher`, after completion.
    fn data_keys(&mut self, cipher: CipherId) -> Option<Box<dyn KeyChain>>;
}
