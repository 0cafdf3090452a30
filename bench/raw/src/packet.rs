//! The packet: a clear header of 16 bytes, the sealed payload and trailer, and the tag.
//!
//! The shape is that of the transport's data packet, so that the cipher sees the same lengths.

use crate::cipher::{Cipher, Mode};

/// Kind, cipher and mode in the first bytes, the packet number in the last eight.
pub(crate) const HEADER: usize = 16;
/// What follows the payload under the seal.
pub(crate) const TRAILER: usize = 12;
/// The tag of every cipher here.
pub(crate) const TAG: usize = 16;
/// Bytes of a packet that are no payload.
pub(crate) const OVERHEAD: usize = HEADER + TRAILER + TAG;

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Payload.
    Data,
    /// From the receiver: every packet below the number has arrived or is lost.
    Progress,
    /// From the sender: the number of packets sent in all.
    End,
}

/// The clear part of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) cipher: Cipher,
    pub(crate) mode: Mode,
    pub(crate) number: u64,
}

impl Header {
    pub(crate) fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind as u8;
        bytes[1] = self.cipher as u8;
        bytes[2] = self.mode as u8;
        bytes[8..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER] = packet.first_chunk()?;
        let kinds = [Kind::Data, Kind::Progress, Kind::End];
        Some(Self {
            kind: *kinds.get(usize::from(bytes[0]))?,
            cipher: *Cipher::ALL.get(usize::from(bytes[1]))?,
            mode: *Mode::ALL.get(usize::from(bytes[2]))?,
            number: u64::from_le_bytes(*bytes.last_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests;
