//! Transport parameters: the limits and choices that each end announces in the authenticated TLS
//! handshake.

use crate::error::DecodeError;
use crate::varint::{Reader, put_varint};
use alloc::vec::Vec;

/// A cipher for data packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CipherId {
    /// AEGIS-128L with a 128-bit tag.
    Aegis128L,
    /// AES-128-GCM.
    Aes128Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
}

impl CipherId {
    /// Its number in the parameters and in the key derivation.
    pub const fn number(self) -> u64 {
        match self {
            Self::Aegis128L => 1,
            Self::Aes128Gcm => 2,
            Self::ChaCha20Poly1305 => 3,
        }
    }

    const fn from_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Aegis128L),
            2 => Some(Self::Aes128Gcm),
            3 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }
}

/// The parameters of one end. Unknown ones are ignored, so that later versions can add some.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Params {
    /// The connection id that this end chose. It is repeated here, because the handshake
    /// authenticates the parameters.
    pub source_id: u64,
    /// The destination id of the client's first packet, sent by the server. It binds the handshake
    /// to the connection for which it was begun.
    pub original_destination: u64,
    /// The ciphers for data that this end supports, in order of preference. The first of the
    /// client's list that the server supports is used. Unknown numbers are omitted.
    pub ciphers: Vec<CipherId>,
    /// The largest UDP payload in bytes that this end receives.
    pub max_datagram: u64,
    /// The initial limit on the sum of all streams' bytes.
    pub max_data: u64,
    /// The initial limit on each stream's bytes.
    pub max_stream_data: u64,
    /// The number of streams of each kind that the peer may open.
    pub max_streams: u64,
    /// The connection ends after this many milliseconds without a packet.
    pub idle_timeout_ms: u64,
}

mod id {
    pub(super) const SOURCE_ID: u64 = 1;
    pub(super) const ORIGINAL_DESTINATION: u64 = 2;
    pub(super) const CIPHERS: u64 = 3;
    pub(super) const MAX_DATAGRAM: u64 = 4;
    pub(super) const MAX_DATA: u64 = 5;
    pub(super) const MAX_STREAM_DATA: u64 = 6;
    pub(super) const MAX_STREAMS: u64 = 7;
    pub(super) const IDLE_TIMEOUT: u64 = 8;
}

impl Params {
    /// Encodes the parameters as (id, length, value) triples.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |id: u64, value: &[u8]| {
            put_varint(&mut out, id);
            put_varint(&mut out, value.len() as u64);
            out.extend_from_slice(value);
        };
        put(id::SOURCE_ID, &self.source_id.to_le_bytes());
        put(id::ORIGINAL_DESTINATION, &self.original_destination.to_le_bytes());
        let mut ciphers = Vec::new();
        self.ciphers.iter().for_each(|c| put_varint(&mut ciphers, c.number()));
        put(id::CIPHERS, &ciphers);
        for (id, value) in [
            (id::MAX_DATAGRAM, self.max_datagram),
            (id::MAX_DATA, self.max_data),
            (id::MAX_STREAM_DATA, self.max_stream_data),
            (id::MAX_STREAMS, self.max_streams),
            (id::IDLE_TIMEOUT, self.idle_timeout_ms),
        ] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            put(id, &bytes);
        }
        out
    }

    /// Decodes a peer's parameters.
    // fuzz: packets
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut params = Self::default();
        while !reader.is_empty() {
            let id = reader.varint()?;
            let len = reader.length()?;
            let mut value = Reader::new(reader.bytes(len)?);
            match id {
                id::SOURCE_ID => params.source_id = value.u64()?,
                id::ORIGINAL_DESTINATION => params.original_destination = value.u64()?,
                id::CIPHERS => {
                    while !value.is_empty() {
                        params.ciphers.extend(CipherId::from_number(value.varint()?));
                    }
                }
                id::MAX_DATAGRAM => params.max_datagram = value.varint()?,
                id::MAX_DATA => params.max_data = value.varint()?,
                id::MAX_STREAM_DATA => params.max_stream_data = value.varint()?,
                id::MAX_STREAMS => params.max_streams = value.varint()?,
                id::IDLE_TIMEOUT => params.idle_timeout_ms = value.varint()?,
                _ => {}
            }
        }
        if params.max_datagram < 1200 {
            return Err(DecodeError::Invalid("max_datagram"));
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests;
