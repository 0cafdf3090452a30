//! A message whose length depends on what a user has: it may be longer than a frame, and goes in pieces. Each piece is a
//! frame: a byte that tells whether another one follows, then the next bytes of the message.

use super::{MAX_FRAME, MessageError, decode, framed};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of a message in one piece.
const PIECE: usize = MAX_FRAME / 4;
/// The first byte of a piece behind which others come.
const MORE: u8 = 1;
/// The first byte of the last piece.
const LAST: u8 = 0;

/// Encodes a message of at most so many bytes as frames; `None` if it is longer.
// spec: copy-msg-3
pub fn encode_long<T: Serialize>(
    message: &T,
    bytes_max: usize,
) -> Option<impl Iterator<Item = Vec<u8>> + use<T>> {
    let bytes = postcard::to_allocvec(message).ok().filter(|bytes| bytes.len() <= bytes_max)?;
    let pieces = bytes.len().div_ceil(PIECE).max(1);
    Some((0..pieces).map(move |at| {
        let kind = if at + 1 == pieces { LAST } else { MORE };
        let end = bytes.len().min((at + 1) * PIECE);
        framed(&[&[kind][..], &bytes[at * PIECE..end]].concat())
    }))
}

/// What has come of a message in pieces.
#[derive(Debug)]
pub struct Long {
    bytes: Vec<u8>,
    bytes_max: usize,
}

/// Whether a message is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coming {
    /// Another piece follows.
    More,
    /// This was the last piece.
    Whole,
}

impl Long {
    /// Nothing of a message that may have so many bytes.
    pub const fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max }
    }

    /// Adds the body of the next frame.
    ///
    /// # Errors
    ///
    /// The message is longer than it may be, or the frame is no piece.
    // fuzz: messages
    // spec: copy-msg-3
    pub fn add(&mut self, body: &[u8]) -> Result<Coming, MessageError> {
        let (kind, piece) = body.split_first().ok_or(MessageError::Malformed)?;
        let length = self.bytes.len() + piece.len();
        if length > self.bytes_max {
            return Err(MessageError::TooLong(length));
        }
        self.bytes.extend_from_slice(piece);
        match *kind {
            // A piece of nothing would have no end.
            MORE if !piece.is_empty() => Ok(Coming::More),
            LAST => Ok(Coming::Whole),
            _ => Err(MessageError::Malformed),
        }
    }

    /// Decodes the message.
    ///
    /// # Errors
    ///
    /// The bytes do not decode as one, or others follow it.
    // fuzz: messages
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, MessageError> {
        match decode(&self.bytes)? {
            (message, []) => Ok(message),
            _ => Err(MessageError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{frame, frame_len};

    fn heard(frames: &[u8], bytes_max: usize) -> Result<Vec<Vec<u8>>, MessageError> {
        let (mut long, mut at) = (Long::new(bytes_max), 0);
        loop {
            let body = frame(&frames[at..])?.ok_or(MessageError::Malformed)?;
            at += frame_len(body);
            if long.add(body)? == Coming::Whole {
                assert_eq!(at, frames.len());
                return long.decode();
            }
        }
    }

    // spec: copy-msg-3
    #[test]
    fn a_message_of_any_length_comes_in_pieces() {
        let paths = |count: usize| vec![b"a directory/and a name".to_vec(); count];
        for count in [0, 1, 11_397, 11_398, 11_399, 100_000, 300_000] {
            let frames: Vec<u8> = encode_long(&paths(count), 64 << 20).unwrap().flatten().collect();
            assert!(heard(&frames, 64 << 20).unwrap() == paths(count), "{count}");
        }
    }

    // spec: copy-msg-3
    #[test]
    fn pieces_without_an_end_are_refused() {
        let long = vec![vec![7_u8; 1 << 20]; 4];
        assert!(encode_long(&long, 4 << 20).is_none());
        let frames: Vec<u8> = encode_long(&long, 5 << 20).unwrap().flatten().collect();
        assert!(matches!(heard(&frames, 3 << 20), Err(MessageError::TooLong(_))));
        let mut long = Long::new(1000);
        assert_eq!(long.add(&[MORE]), Err(MessageError::Malformed));
        assert_eq!(long.add(&[]), Err(MessageError::Malformed));
        assert_eq!(long.add(&[2, 1]), Err(MessageError::Malformed));
        let mut long = Long::new(1000);
        assert_eq!(long.add(&[LAST, 0, 0]), Ok(Coming::Whole));
        assert_eq!(long.decode::<Vec<Vec<u8>>>(), Err(MessageError::Malformed));
    }
}
