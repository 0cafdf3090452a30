//! Frames, the content of control packets and handshake packets.

use crate::ack::Ack;
use crate::error::DecodeError;
use crate::varint::{Reader, put_varint};
use alloc::vec::Vec;

/// A stream id. Its two lowest bits encode which end opened the stream and its kind; the others are
/// its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub u32);

/// The kind of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamKind {
    /// An ordered byte stream in both directions.
    Ordered,
    /// An object: bytes from the end that opened the stream to the other one, delivered by offset
    /// in any order.
    Object,
}

impl StreamKind {
    /// The number of the kind on the wire.
    const fn number(self) -> u64 {
        match self {
            Self::Ordered => 0,
            Self::Object => 1,
        }
    }

    const fn from_number(number: u64) -> Result<Self, DecodeError> {
        match number {
            0 => Ok(Self::Ordered),
            1 => Ok(Self::Object),
            _ => Err(DecodeError::Invalid("stream kind")),
        }
    }
}

impl StreamId {
    /// The id of stream number `index` of this kind, opened by the client or by the server.
    pub const fn new(index: u32, kind: StreamKind, by_server: bool) -> Self {
        let kind = match kind {
            StreamKind::Ordered => 0,
            StreamKind::Object => 2,
        };
        Self(index << 2 | kind | by_server as u32)
    }

    /// Its index among the streams of the same kind and opener.
    pub const fn index(self) -> u32 {
        self.0 >> 2
    }

    /// Its kind.
    pub const fn kind(self) -> StreamKind {
        if self.0 & 2 == 0 { StreamKind::Ordered } else { StreamKind::Object }
    }

    /// Whether the server opened it.
    pub const fn by_server(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Padding of so many bytes.
    Padding(usize),
    /// Requests an acknowledgement without other content.
    Ping,
    /// Acknowledges packets.
    Ack(Ack),
    /// The sender knows the fate (received or lost) of every packet below `floor`.
    Floor {
        /// The lowest packet number whose fate the sender does not know.
        floor: u64,
        /// The sender's smoothed round-trip time in microseconds.
        rtt_micros: u64,
    },
    /// A piece of the TLS handshake.
    Crypto {
        /// Its offset in the handshake stream of this encryption level.
        offset: u64,
        /// Its bytes.
        data: Vec<u8>,
    },
    /// The server has received the client's last handshake message.
    HandshakeDone,
    /// The new limit on the sum of all streams' bytes (flow control).
    MaxData(u64),
    /// The new limit on one stream's bytes (flow control).
    MaxStreamData {
        /// The stream.
        stream: StreamId,
        /// The limit in bytes.
        limit: u64,
    },
    /// The new limit on the streams of a kind that the peer may open.
    MaxStreams {
        /// The kind.
        kind: StreamKind,
        /// The total count, including streams that have ended.
        count: u32,
    },
    /// The final size of a stream.
    Fin {
        /// The stream.
        stream: StreamId,
        /// The size in bytes.
        size: u64,
    },
    /// The sender of a stream abandons it.
    Reset {
        /// The stream.
        stream: StreamId,
        /// The application's error code.
        code: u64,
        /// Bytes sent up to then, for flow control.
        size: u64,
    },
    /// The sender of a stream abandons it at this size. What lies before it is still delivered.
    ResetAt {
        /// The stream.
        stream: StreamId,
        /// The application's error code.
        code: u64,
        /// Bytes of the stream that are delivered.
        size: u64,
    },
    /// The receiver of a stream abandons it.
    Stop {
        /// The stream.
        stream: StreamId,
        /// The application's error code.
        code: u64,
    },
    /// Requests proof that the peer receives at this address; the number is random.
    PathChallenge(u64),
    /// The answer, with the number of the challenge.
    PathResponse(u64),
    /// The connection ends.
    Close {
        /// Zero for a clean end; other codes are in `docs/internals/protocol.md`.
        code: u64,
        /// A text for users, at most 256 bytes.
        reason: Vec<u8>,
    },
}

mod kind {
    pub(super) const PADDING: u64 = 0x00;
    pub(super) const PING: u64 = 0x01;
    pub(super) const ACK: u64 = 0x02;
    pub(super) const FLOOR: u64 = 0x03;
    pub(super) const CRYPTO: u64 = 0x04;
    pub(super) const HANDSHAKE_DONE: u64 = 0x05;
    pub(super) const MAX_DATA: u64 = 0x06;
    pub(super) const MAX_STREAM_DATA: u64 = 0x07;
    pub(super) const MAX_STREAMS: u64 = 0x08;
    pub(super) const FIN: u64 = 0x09;
    pub(super) const RESET: u64 = 0x0a;
    pub(super) const STOP: u64 = 0x0b;
    pub(super) const PATH_CHALLENGE: u64 = 0x0c;
    pub(super) const PATH_RESPONSE: u64 = 0x0d;
    pub(super) const CLOSE: u64 = 0x0e;
    pub(super) const RESET_AT: u64 = 0x0f;
}

const REASON_BYTES_MAX: usize = 256;

impl Frame {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Padding(len) => out.resize(out.len() + len, 0),
            Self::Ping => put(out, kind::PING, &[]),
            Self::Ack(ack) => {
                put(out, kind::ACK, &[]);
                ack.encode(out);
            }
            Self::Floor { floor, rtt_micros } => put(out, kind::FLOOR, &[*floor, *rtt_micros]),
            Self::Crypto { offset, data } => {
                put(out, kind::CRYPTO, &[*offset, data.len() as u64]);
                out.extend_from_slice(data);
            }
            Self::HandshakeDone => put(out, kind::HANDSHAKE_DONE, &[]),
            Self::MaxData(limit) => put(out, kind::MAX_DATA, &[*limit]),
            Self::MaxStreamData { stream, limit } => {
                put(out, kind::MAX_STREAM_DATA, &[stream.0.into(), *limit]);
            }
            Self::MaxStreams { kind, count } => {
                put(out, kind::MAX_STREAMS, &[kind.number(), (*count).into()]);
            }
            Self::Fin { stream, size } => put(out, kind::FIN, &[stream.0.into(), *size]),
            Self::Reset { stream, code, size } => {
                put(out, kind::RESET, &[stream.0.into(), *code, *size]);
            }
            Self::ResetAt { stream, code, size } => {
                put(out, kind::RESET_AT, &[stream.0.into(), *code, *size]);
            }
            Self::Stop { stream, code } => put(out, kind::STOP, &[stream.0.into(), *code]),
            Self::PathChallenge(token) => {
                put(out, kind::PATH_CHALLENGE, &[]);
                out.extend_from_slice(&token.to_le_bytes());
            }
            Self::PathResponse(token) => {
                put(out, kind::PATH_RESPONSE, &[]);
                out.extend_from_slice(&token.to_le_bytes());
            }
            Self::Close { code, reason } => {
                let reason = &reason[..reason.len().min(REASON_BYTES_MAX)];
                put(out, kind::CLOSE, &[*code, reason.len() as u64]);
                out.extend_from_slice(reason);
            }
        }
    }

    /// Decodes the next frame; `None` at the end of the packet. A run of padding bytes is one
    /// frame.
    // fuzz: packets
    pub fn decode(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        if reader.is_empty() {
            return Ok(None);
        }
        let frame = match reader.varint()? {
            kind::PADDING => {
                let run = reader.rest().iter().take_while(|&&b| b == 0).count();
                reader.bytes(run)?;
                Self::Padding(run + 1)
            }
            kind::PING => Self::Ping,
            kind::ACK => Self::Ack(Ack::decode(reader)?),
            kind::FLOOR => Self::Floor { floor: reader.varint()?, rtt_micros: reader.varint()? },
            kind::CRYPTO => {
                let offset = reader.varint()?;
                let len = reader.length()?;
                Self::Crypto { offset, data: reader.bytes(len)?.to_vec() }
            }
            kind::HANDSHAKE_DONE => Self::HandshakeDone,
            kind::MAX_DATA => Self::MaxData(reader.varint()?),
            kind::MAX_STREAM_DATA => {
                Self::MaxStreamData { stream: stream_id(reader)?, limit: reader.varint()? }
            }
            kind::MAX_STREAMS => Self::MaxStreams {
                kind: StreamKind::from_number(reader.varint()?)?,
                count: u32::try_from(reader.varint()?)
                    .map_err(|_| DecodeError::Invalid("stream count"))?,
            },
            kind::FIN => Self::Fin { stream: stream_id(reader)?, size: reader.varint()? },
            kind::RESET => Self::Reset {
                stream: stream_id(reader)?,
                code: reader.varint()?,
                size: reader.varint()?,
            },
            kind::RESET_AT => Self::ResetAt {
                stream: stream_id(reader)?,
                code: reader.varint()?,
                size: reader.varint()?,
            },
            kind::STOP => Self::Stop { stream: stream_id(reader)?, code: reader.varint()? },
            kind::PATH_CHALLENGE => Self::PathChallenge(reader.u64()?),
            kind::PATH_RESPONSE => Self::PathResponse(reader.u64()?),
            kind::CLOSE => {
                let code = reader.varint()?;
                let len = reader.length()?;
                if len > REASON_BYTES_MAX {
                    return Err(DecodeError::Invalid("close reason"));
                }
                Self::Close { code, reason: reader.bytes(len)?.to_vec() }
            }
            unknown => return Err(DecodeError::UnknownFrame(unknown)),
        };
        Ok(Some(frame))
    }

    /// Whether a packet with this frame must be acknowledged.
    // spec: ack-5
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Ack(_) | Self::Padding(_) | Self::Close { .. } | Self::Floor { .. })
    }
}

fn put(out: &mut Vec<u8>, kind: u64, fields: &[u64]) {
    put_varint(out, kind);
    fields.iter().for_each(|&field| put_varint(out, field));
}

fn stream_id(reader: &mut Reader<'_>) -> Result<StreamId, DecodeError> {
    u32::try_from(reader.varint()?).map(StreamId).map_err(|_| DecodeError::Invalid("stream id"))
}

#[cfg(test)]
mod tests;
