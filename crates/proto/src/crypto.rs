//! The cryptography interface of the transport. `hikyaku-crypto` implements it with TLS 1.3. The
//! simulator has an insecure substitute that no product binary contains.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use hikyaku_wire::{CipherId, ConnectionId};

/// Seals or opens packets in one direction under one key.
pub trait PacketKey: Send {
    /// Encrypts `buffer` in place. Its last 16 bytes are space for the authentication tag.
    fn seal(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]);

    /// Decrypts `buffer` in place. Its last 16 bytes are the authentication tag. Returns the length
    /// of the plaintext, or `None` if the packet is not authentic; `buffer` is then undefined.
    fn open(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) -> Option<usize>;

    /// Packets that one key may seal before it must be replaced.
    fn packet_limit(&self) -> u64;
}

/// The keys of both directions.
pub struct KeyPair {
    /// Seals packets that this end sends.
    pub seal: Box<dyn PacketKey>,
    /// Opens packets that this end receives.
    pub open: Box<dyn PacketKey>,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair")
    }
}

/// A one-way chain of data keys: an earlier key cannot be computed from a later one.
pub trait KeyChain: Send {
    /// Returns the next pair of keys. The first call returns the first pair.
    fn next_pair(&mut self) -> KeyPair;
}

/// The encryption level of a handshake packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Keys that anyone who sees the first packet can compute. They detect corruption, not forgery.
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

/// Why a handshake failed, as text for the user of this end. It is not sent to the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionError(pub String);

/// A TLS handshake without I/O.
pub trait Session: Send {
    /// The keys of [`Level::Initial`] for a connection whose first packet had the destination id
    /// `destination`.
    fn initial_keys(&self, destination: ConnectionId) -> KeyPair;

    /// Handles the peer's handshake bytes, which the caller passes in order.
    // fuzz: tls
    fn read(&mut self, bytes: &[u8]) -> Result<(), SessionError>;

    /// Appends the handshake bytes to send at the present level. Returns keys when the level
    /// changes to [`Level::Handshake`]. The caller repeats the call until it neither appends bytes
    /// nor returns keys.
    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyPair>;

    /// The peer's transport parameters, as soon as the handshake has authenticated them
    /// sufficiently for use.
    fn peer_params(&self) -> Option<Vec<u8>>;

    /// Whether the handshake is complete, so that the peer is authenticated and data keys are
    /// available.
    fn is_complete(&self) -> bool;

    /// The chain of data keys for `cipher`. `None` before the handshake is complete.
    fn data_keys(&mut self, cipher: CipherId) -> Option<Box<dyn KeyChain>>;
}
