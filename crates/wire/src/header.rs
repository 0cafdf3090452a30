//! Packet headers: the 16-byte short header of data and control packets, the long header of the
//! handshake, and the sealed trailer that says where a data packet's payload belongs.

use crate::error::DecodeError;
use crate::varint::Reader;
use alloc::vec::Vec;

/// Bytes of the short header. All of them are additional data of the AEAD.
pub const SHORT_HEADER_LEN: usize = 16;
/// Bytes of the long header before the retry token.
pub const LONG_HEADER_LEN: usize = 30;
/// Bytes of the sealed trailer of a data packet.
pub const TRAILER_LEN: usize = 12;
/// Bytes of the authentication tag of every cipher in use.
pub const TAG_LEN: usize = 16;
/// A client's first datagrams are padded to this many bytes of UDP payload (RFC 9000 section 14.1),
/// so that a listener never sends an unvalidated address more than three times what it received.
pub const MIN_INITIAL_LEN: usize = 1200;

/// The id by which a packet's receiver finds its connection: 64 random bits that it chose itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

/// A protocol version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(pub u32);

impl Version {
    /// The version that `docs/protocol.md` describes.
    pub const CURRENT: Self = Self(0x6869_0001);
}

/// What the sealed part of a short packet holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// A piece of one stream and its [`Trailer`].
    Data,
    /// Frames.
    Control,
}

/// Which of two successive keys sealed a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyPhase {
    /// The first key, and every second one after it.
    #[default]
    Even,
    /// The others.
    Odd,
}

impl KeyPhase {
    /// The phase after this one.
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
    /// What the packet holds.
    pub kind: PacketKind,
    /// The key that sealed it.
    pub phase: KeyPhase,
    /// The receiver should acknowledge at once.
    pub ack_now: bool,
    /// The packet number; its lower 48 bits travel.
    pub packet_number: u64,
    /// The receiver's connection id.
    pub destination: ConnectionId,
}

const LONG: u8 = 0x80;
const KIND_CONTROL: u8 = 0x01;
const PHASE_ODD: u8 = 0x02;
const ACK_NOW: u8 = 0x04;
const PN_MASK: u64 = (1 << 48) - 1;

/// Whether a datagram begins with a long header.
pub fn is_long(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|b| b & LONG != 0)
}

impl ShortHeader {
    /// Writes the header.
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

    /// Reads a header; `packet_number` is still the truncated one of the wire.
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

/// The first number that no packet has: at a hundred million packets a second the numbers below last a
/// thousand years, and what is computed with them does not overflow.
const PACKET_NUMBERS: u64 = 1 << 62;

/// The packet number nearest to `expected` whose lower 48 bits are `truncated`; `None` for one that no
/// honest sender comes to.
// spec: head-2
pub fn expand_packet_number(truncated: u64, expected: u64) -> Option<u64> {
    let expected = expected.min(PACKET_NUMBERS);
    let candidate = (expected & !PN_MASK) | (truncated & PN_MASK);
    let half = 1 << 47;
    let nearest = if candidate + half < expected {
        candidate + (1 << 48)
    } else if candidate > expected + half && candidate > PN_MASK {
        candidate - (1 << 48)
    } else {
        candidate
    };
    (nearest < PACKET_NUMBERS).then_some(nearest)
}

// spec: data-1
/// Where a data packet's payload belongs; sealed behind it so that the payload starts aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trailer {
    /// The stream's id.
    pub stream: u32,
    /// The payload's offset in the stream.
    pub offset: u64,
}

impl Trailer {
    /// Writes the trailer.
    pub fn encode(&self) -> [u8; TRAILER_LEN] {
        let mut out = [0; TRAILER_LEN];
        out[..4].copy_from_slice(&self.stream.to_le_bytes());
        out[4..].copy_from_slice(&self.offset.to_le_bytes());
        out
    }

    /// Splits opened bytes into payload and trailer.
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

/// The kinds of long packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LongType {
    /// The first flights, under keys derived from the client's first destination id.
    Initial,
    /// The rest of the TLS handshake, under its handshake keys.
    Handshake,
    /// A listener asks the client to prove its address with the token inside.
    Retry,
    /// A listener names the versions it speaks.
    VersionNegotiation,
}

/// The header of handshake packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LongHeader {
    /// What kind of packet.
    pub kind: LongType,
    /// The sender's version.
    pub version: Version,
    /// The receiver's id (random in a client's first packets).
    pub destination: ConnectionId,
    /// The sender's id.
    pub source: ConnectionId,
    /// A packet number of this level.
    pub packet_number: u32,
    /// The token of a Retry, empty otherwise.
    pub token: Vec<u8>,
}

impl LongHeader {
    // spec: head-3
    /// Appends the header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            LongType::Initial => 0,
            LongType::Handshake => 1,
            LongType::Retry => 2,
            LongType::VersionNegotiation => 3,
        };
        out.extend_from_slice(&[LONG | kind, 0, 0, 0]);
        out.extend_from_slice(&self.version.0.to_le_bytes());
        out.extend_from_slice(&self.destination.0.to_le_bytes());
        out.extend_from_slice(&self.source.0.to_le_bytes());
        out.extend_from_slice(&self.packet_number.to_le_bytes());
        out.extend_from_slice(&(self.token.len().min(0xffff) as u16).to_le_bytes());
        out.extend_from_slice(&self.token[..self.token.len().min(0xffff)]);
    }

    /// Reads a header and says how many bytes it took.
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
