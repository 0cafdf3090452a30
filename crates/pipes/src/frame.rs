//! The wire format of a pipe: frames with a header of 17 bytes.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | kind |
//! | 4 | stream, little-endian |
//! | 8 | value, little-endian; its meaning depends on the kind |
//! | 4 | length of the payload, little-endian |

use hikyaku_proto::StreamId;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 17;
/// Maximum payload of a data frame. A longer one would delay an urgent frame behind it.
pub(crate) const DATA_BYTES_MAX: usize = 128 << 10;
/// Maximum payload if several pipes share the data: a frame on a slow one delays the end of a stream, and the confirmations
/// of whole frames are the measure of a sender's rate.
pub(crate) const SHARED_DATA_BYTES_MAX: usize = 32 << 10;
/// Bytes of the code in a frame that breaks a stream off.
pub(crate) const CODE_BYTES: usize = 8;
/// Maximum bytes of the reason in a close frame.
pub(crate) const REASON_BYTES_MAX: usize = 1024;
/// Bytes of a token, by which further pipes of a connection are known.
pub(crate) const TOKEN_BYTES: usize = 16;
/// Bytes of one pipe in a frame that confirms what has arrived: its number and the count of frames.
pub(crate) const CONFIRMED_BYTES: usize = 12;
/// Maximum number of pipes of a connection.
pub(crate) const PIPES_MAX: usize = 64;

/// The kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The payload is the stream's bytes from offset `value`. The first frame of a stream opens it.
    Data,
    /// The stream ends at offset `value`.
    Finish,
    /// The sender resets the stream with code `value`.
    Reset,
    /// The receiver asks the sender to stop sending the stream, with code `value`.
    Stop,
    /// The receiver grants credit for the stream's bytes up to offset `value`.
    Credit,
    /// The receiver has all bytes of the stream.
    Received,
    /// The connection ends with code `value`. The payload is a reason for the user.
    Close,
    /// Asks for a [`Kind::Pong`] with the same value.
    Ping,
    /// Answers a ping.
    Pong,
    /// The stream ends at offset `value`, with an error: the payload is its code, little-endian.
    BreakOff,
    /// The number of frames that have arrived on each pipe of the payload: 4 bytes for the pipe's number, 8 for the
    /// count.
    Confirmed,
    /// Only the first `value` pipes are to carry data from then on.
    Width,
    /// The payload is a token, which the first frames of further pipes repeat.
    Token,
    /// The first frame of a further pipe: its number is that of the stream, and the payload is the token.
    Join,
}

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) id: StreamId,
    pub(crate) value: u64,
    pub(crate) length: usize,
}

/// Why bytes are not a valid header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum BadHeader {
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    #[error("a frame with {0} bytes, which is too long")]
    TooLong(usize),
}

const KINDS: [Kind; 14] = [
    Kind::Data,
    Kind::Finish,
    Kind::Reset,
    Kind::Stop,
    Kind::Credit,
    Kind::Received,
    Kind::Close,
    Kind::Ping,
    Kind::Pong,
    Kind::BreakOff,
    Kind::Confirmed,
    Kind::Width,
    Kind::Token,
    Kind::Join,
];

impl Header {
    /// Whether the frame is about the state of streams, so that it must arrive even if its pipe is lost.
    pub(crate) const fn is_lasting(&self) -> bool {
        !matches!(self.kind, Kind::Close | Kind::Ping | Kind::Pong | Kind::Confirmed | Kind::Join)
    }

    /// A frame without a payload.
    pub(crate) const fn bare(kind: Kind, id: StreamId, value: u64) -> Self {
        Self { kind, id, value, length: 0 }
    }

    pub(crate) fn write(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        bytes[0] = kind as u8 + 1;
        bytes[1..5].copy_from_slice(&self.id.0.to_le_bytes());
        bytes[5..13].copy_from_slice(&self.value.to_le_bytes());
        bytes[13..].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes
    }

    // fuzz: none, the test of the mux feeds it frames of random fields
    pub(crate) fn read(bytes: &[u8; HEADER_BYTES]) -> Result<Self, BadHeader> {
        let [kind, a, b, c, d, rest @ ..] = *bytes;
        let [e, f, g, h, i, j, k, l, m, n, o, p] = rest;
        let found = usize::from(kind).checked_sub(1).and_then(|at| KINDS.get(at));
        let kind = *found.ok_or(BadHeader::Kind(kind))?;
        let length = u32::from_le_bytes([m, n, o, p]) as usize;
        let most = match kind {
            Kind::Data => DATA_BYTES_MAX,
            Kind::Close => REASON_BYTES_MAX,
            Kind::BreakOff => CODE_BYTES,
            Kind::Confirmed => PIPES_MAX * CONFIRMED_BYTES,
            Kind::Token | Kind::Join => TOKEN_BYTES,
            _ => 0,
        };
        if length > most {
            return Err(BadHeader::TooLong(length));
        }
        let id = StreamId(u32::from_le_bytes([a, b, c, d]));
        let value = u64::from_le_bytes([e, f, g, h, i, j, k, l]);
        Ok(Self { kind, id, value, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_decoded_as_it_was_encoded() {
        for kind in KINDS {
            let length = if kind == Kind::Data { DATA_BYTES_MAX } else { 0 };
            let header = Header { kind, id: StreamId(0xdead_beef), value: u64::MAX - 5, length };
            assert_eq!(Header::read(&header.write()), Ok(header));
        }
    }

    #[test]
    fn invalid_headers_are_refused() {
        let good = Header::bare(Kind::Ping, StreamId(0), 1).write();
        for (kind, length) in [
            (0, 0),
            (15, 0),
            (255, 0),
            (8, 1),
            (10, 9),
            (14, 17),
            (1, DATA_BYTES_MAX + 1),
            (7, 1025),
        ] {
            let mut bytes = good;
            bytes[0] = kind;
            bytes[13..].copy_from_slice(&(length as u32).to_le_bytes());
            assert!(Header::read(&bytes).is_err(), "{kind} {length}");
        }
    }
}
