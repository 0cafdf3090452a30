//! Packet headers: the short header of data and control packets, the long header of handshake
//! packets, and the encrypted trailer that places a data packet's payload in its stream.

use crate::error::DecodeError;
use crate::varint::Reader;
use alloc::vec::Vec;

/// The length of the short header in bytes. All of it is additional data of the AEAD.
pub const SHORT_HEADER_LEN: usize = 16;
/// The length of the long header without the retry token, in bytes.
pub const LONG_HEADER_LEN: usize = 30;
/// The length of a data packet's encrypted trailer in bytes.
pub const TRAILER_LEN: usize = 12;
/// The length of the authentication tag in bytes, the same for all ciphers.
pub const TAG_LEN: usize = 16;
/// The size in bytes to which a client pads its first datagrams (RFC 9000, section 14.1). A
/// listener sends at most three times as much to an unvalidated address (section 8.1), so the
/// padding lets it answer.
pub const MIN_INITIAL_LEN: usize = 1200;

/// The id by which the receiver of a packet finds the connection: 64 random bits that the receiver
/// chose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// A protocol version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(pub u32);

impl Version {
    /// The version that `docs/internals/protocol.md` describes.
    pub const CURRENT: Self = Self(0x6869_0001);
}

/// The content of a packet with a short header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// A piece of one stream, with its [`Trailer`].
    Data,
    /// Frames.
    Control,
}

/// Which of two successive key generations sealed a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyPhase {
    /// Generation 0 and all even ones.
    #[default]
    Even,
    /// The odd generations.
    Odd,
}

impl KeyPhase {
    /// The other phase, which is that of the next generation.
    pub const fn next(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }
}

/// The header of data and control packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortHeader {
    /// The content of the packet.
    pub kind: PacketKind,
    /// The phase of the key that sealed it.
    pub phase: KeyPhase,
    /// Requests an immediate acknowledgement.
    pub ack_now: bool,
    /// The packet number. Its lower 48 bits are on the wire.
    pub packet_number: u64,
    /// The receiver's connection id.
    pub destination: ConnectionId,
}

const LONG_HEADER_FLAG: u8 = 0x80;
const KIND_CONTROL: u8 = 0x01;
const PHASE_ODD: u8 = 0x02;
const ACK_NOW: u8 = 0x04;
const PACKET_NUMBER_MASK: u64 = (1 << 48) - 1;

/// Whether a datagram begins with a long header.
pub fn is_long(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|b| b & LONG_HEADER_FLAG != 0)
}

impl ShortHeader {
    /// Encodes the header.
    // spec: head-1
    pub fn encode(&self) -> [u8; SHORT_HEADER_LEN] {
        let mut out = [0; SHORT_HEADER_LEN];
        out[0] = match self.kind {
            PacketKind::Data => 0,
            PacketKind::Control => KIND_CONTROL,
        };
        if self.phase == KeyPhase::Odd {
            out[0] |= PHASE_ODD;
        }
        if self.ack_now {
            out[0] |= ACK_NOW;
        }
        out[2..8].copy_from_slice(&self.packet_number.to_le_bytes()[..6]);
        out[8..].copy_from_slice(&self.destination.0.to_le_bytes());
        out
    }

    /// Decodes a header. `packet_number` holds only the 48 bits of the wire;
    /// [`expand_packet_number`] restores the others.
    // fuzz: packets
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(datagram);
        let flags = reader.u8()?;
        if flags & !(KIND_CONTROL | PHASE_ODD | ACK_NOW) != 0 {
            return Err(DecodeError::Invalid("packet flags"));
        }
        if reader.u8()? != 0 {
            return Err(DecodeError::Invalid("path"));
        }
        let low = u64::from(reader.u32()?);
        let packet_number = low | u64::from(reader.u16()?) << 32;
        Ok(Self {
            kind: if flags & KIND_CONTROL != 0 { PacketKind::Control } else { PacketKind::Data },
            phase: if flags & PHASE_ODD != 0 { KeyPhase::Odd } else { KeyPhase::Even },
            ack_now: flags & ACK_NOW != 0,
            packet_number,
            destination: ConnectionId(reader.u64()?),
        })
    }
}

/// The first invalid packet number, 2^62. At a hundred million packets a second the numbers below
/// it last a thousand years, and arithmetic on them does not overflow.
const PACKET_NUMBER_END: u64 = 1 << 62;

/// The packet number nearest to `expected` whose lower 48 bits are `truncated`. `None` if it would
/// be 2^62 or more, which no correct sender reaches.
// spec: head-2
pub fn expand_packet_number(truncated: u64, expected: u64) -> Option<u64> {
    let expected = expected.min(PACKET_NUMBER_END);
    let candidate = (expected & !PACKET_NUMBER_MASK) | (truncated & PACKET_NUMBER_MASK);
    let half = 1 << 47;
    let nearest = if candidate + half < expected {
        candidate + (1 << 48)
    } else if candidate > expected + half && candidate > PACKET_NUMBER_MASK {
        candidate - (1 << 48)
    } else {
        candidate
    };
    (nearest < PACKET_NUMBER_END).then_some(nearest)
}

// spec: data-1
/// The place of a data packet's payload. It follows the payload, so that the payload stays aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trailer {
    /// The stream id.
    pub stream: u32,
    /// The offset of the payload in the stream, in bytes.
    pub offset: u64,
}

impl Trailer {
    /// Encodes the trailer.
    pub fn encode(&self) -> [u8; TRAILER_LEN] {
        let mut out = [0; TRAILER_LEN];
        out[..4].copy_from_slice(&self.stream.to_le_bytes());
        out[4..].copy_from_slice(&self.offset.to_le_bytes());
        out
    }

    /// Splits the decrypted bytes of a data packet into payload and trailer.
    // fuzz: packets
    pub fn split(opened: &[u8]) -> Result<(&[u8], Self), DecodeError> {
        let at = opened.len().checked_sub(TRAILER_LEN).ok_or(DecodeError::Truncated)?;
        let (payload, tail) = opened.split_at(at);
        let mut reader = Reader::new(tail);
        let trailer = Self { stream: reader.u32()?, offset: reader.u64()? };
        if trailer.offset > (1 << 62) {
            return Err(DecodeError::Invalid("offset"));
        }
        Ok((payload, trailer))
    }
}

/// The types of packets with a long header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LongType {
    /// Carries the first TLS messages, under keys derived from the client's first destination id.
    Initial,
    /// Carries the rest of the TLS handshake, under TLS handshake keys.
    Handshake,
    /// The listener asks the client to prove its address by returning the token.
    Retry,
    /// The listener lists the versions that it supports.
    VersionNegotiation,
}

/// The header of handshake packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LongHeader {
    /// The packet type.
    pub kind: LongType,
    /// The sender's version.
    pub version: Version,
    /// The receiver's connection id. A client's first packets have a random one.
    pub destination: ConnectionId,
    /// The sender's connection id.
    pub source: ConnectionId,
    /// The packet number in the space of this packet type.
    pub packet_number: u32,
    /// In a Retry, the token that the client shall return. In a client's Initial, that token or the
    /// one of a shared secret (`docs/internals/protocol.md`). Empty otherwise.
    pub token: Vec<u8>,
}

impl LongHeader {
    // spec: head-3
    /// Appends the encoded header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            LongType::Initial => 0,
            LongType::Handshake => 1,
            LongType::Retry => 2,
            LongType::VersionNegotiation => 3,
        };
        out.extend_from_slice(&[LONG_HEADER_FLAG | kind, 0, 0, 0]);
        out.extend_from_slice(&self.version.0.to_le_bytes());
        out.extend_from_slice(&self.destination.0.to_le_bytes());
        out.extend_from_slice(&self.source.0.to_le_bytes());
        out.extend_from_slice(&self.packet_number.to_le_bytes());
        out.extend_from_slice(&(self.token.len().min(0xffff) as u16).to_le_bytes());
        out.extend_from_slice(&self.token[..self.token.len().min(0xffff)]);
    }

    /// Decodes a header and returns it with its length in bytes.
    // fuzz: packets
    pub fn decode(datagram: &[u8]) -> Result<(Self, usize), DecodeError> {
        let mut reader = Reader::new(datagram);
        let kind = match reader.u8()? {
            0x80 => LongType::Initial,
            0x81 => LongType::Handshake,
            0x82 => LongType::Retry,
            0x83 => LongType::VersionNegotiation,
            _ => return Err(DecodeError::Invalid("packet type")),
        };
        if reader.bytes(3)? != [0, 0, 0] {
            return Err(DecodeError::Invalid("reserved bytes"));
        }
        let version = Version(reader.u32()?);
        let destination = ConnectionId(reader.u64()?);
        let source = ConnectionId(reader.u64()?);
        let packet_number = reader.u32()?;
        let token_len = usize::from(reader.u16()?);
        let token = reader.bytes(token_len)?.to_vec();
        let used = datagram.len() - reader.rest().len();
        Ok((Self { kind, version, destination, source, packet_number, token }, used))
    }
}

#[cfg(test)]
mod tests;
