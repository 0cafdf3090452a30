//! Bytes that follow from their offset.

use bytes::Bytes;

/// The length after which the bytes repeat: odd, so that no packet or buffer is a whole part of it,
/// and what arrives at the wrong place shows.
const PERIOD: usize = (1 << 20) - 27;

/// A long stream of bytes, any part of which can be named.
pub(crate) struct Pattern {
    /// One period.
    bytes: Bytes,
}

impl Pattern {
    /// The same everywhere.
    pub(crate) fn new() -> Self {
        let mut bytes = vec![0; PERIOD];
        fastrand::Rng::with_seed(77).fill(&mut bytes);
        Self { bytes: bytes.into() }
    }

    /// Some bytes from `offset` on, at most `most`.
    pub(crate) fn from(&self, offset: u64, most: usize) -> Bytes {
        let start = (offset % PERIOD as u64) as usize;
        self.bytes.slice(start..PERIOD.min(start + most))
    }

    /// How many of `bytes`, which came at `offset`, are not what they should be.
    pub(crate) fn wrong(&self, mut offset: u64, mut bytes: &[u8]) -> u64 {
        let mut wrong = 0;
        while !bytes.is_empty() {
            let expected = self.from(offset, bytes.len());
            let (piece, rest) = bytes.split_at(expected.len());
            // Comparing slices is fast; only what differs is looked at byte by byte.
            if *piece != *expected {
                wrong += piece.iter().zip(&expected).filter(|(a, b)| a != b).count() as u64;
            }
            offset += piece.len() as u64;
            bytes = rest;
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_right_anywhere() {
        let pattern = Pattern::new();
        for offset in [0, 1, PERIOD as u64 - 3, PERIOD as u64, 7 * PERIOD as u64 + 5] {
            let mut bytes = pattern.from(offset, 1000).to_vec();
            bytes.extend_from_slice(&pattern.from(offset + bytes.len() as u64, 500));
            assert_eq!(pattern.wrong(offset, &bytes), 0, "{offset}");
        }
    }

    #[test]
    fn a_flipped_bit_and_a_shift_are_seen() {
        let pattern = Pattern::new();
        let mut bytes = pattern.from(5, 1000).to_vec();
        bytes[77] ^= 1;
        assert_eq!(pattern.wrong(5, &bytes), 1);
        bytes[77] ^= 1;
        assert!(pattern.wrong(6, &bytes) > 900);
        assert!(pattern.wrong(5 + 1444, &bytes) > 900, "a packet too early");
    }
}
