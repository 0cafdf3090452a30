//! Payload that can be verified by its offset, so that no reference copy is needed.

use bytes::Bytes;
use std::fmt;

/// Bytes whose value is derived from their offset. The period is a prime number, so that no packet
/// size hides a wrong offset.
#[derive(Clone)]
pub struct Pattern {
    block: Bytes,
}

const PERIOD: usize = 65_521;
const COPIES: usize = 3;

/// A byte differs from the one expected at its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The offset of the byte.
    pub offset: u64,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrong byte at offset {}", self.offset)
    }
}

impl Pattern {
    /// The pattern of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut one = vec![0; PERIOD];
        rng.fill(&mut one);
        Self { block: Bytes::from(one.repeat(COPIES)) }
    }

    /// At most one period of bytes from `offset`.
    pub fn bytes(&self, offset: u64, len: usize) -> Bytes {
        let at = (offset % PERIOD as u64) as usize;
        self.block.slice(at..at + len.min(PERIOD))
    }

    /// Verifies bytes against their offset.
    pub fn verify(&self, offset: u64, bytes: &[u8]) -> Result<(), PatternError> {
        let mut at = offset;
        for part in bytes.chunks(PERIOD) {
            if self.bytes(at, part.len()) != part {
                return Err(PatternError { offset: at });
            }
            at += part.len() as u64;
        }
        Ok(())
    }
}
