//! Reassembly of segments from pieces of a file that arrive in any order.

use crate::geometry::{Geometry, SEGMENT, SegmentIndex};
use std::collections::BTreeMap;

/// The incomplete segments of one file.
///
/// The transport delivers each byte once, so a segment is complete when the count of received bytes
/// reaches its length. If a peer sends some bytes twice and others never, the segment's hash will
/// not match.
#[derive(Debug)]
pub struct Assembly {
    file: Geometry,
    open: BTreeMap<SegmentIndex, Part>,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    filled: usize,
}

/// A complete segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// Its index in the file.
    pub index: SegmentIndex,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The error for a piece that reaches beyond the end of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("data beyond the end of a file of {size} bytes")]
pub struct Beyond {
    /// The size of the file in bytes.
    pub size: u64,
}

/// The most buffers of one segment each that are kept for reuse.
const SPARE_BUFFERS_MAX: usize = 16;

impl Assembly {
    /// An assembly of `file` that has received nothing.
    pub const fn new(file: Geometry) -> Self {
        Self { file, open: BTreeMap::new(), spare: Vec::new() }
    }

    /// Copies `piece` to file offset `offset`, and appends the segments that it completes to
    /// `ready`. A piece beyond the end of the file is refused without any effect.
    pub fn place(
        &mut self,
        mut offset: u64,
        mut piece: &[u8],
        ready: &mut Vec<Whole>,
    ) -> Result<(), Beyond> {
        let beyond = Beyond { size: self.file.size() };
        let end = offset.checked_add(piece.len() as u64).ok_or(beyond)?;
        if end > self.file.size() {
            return Err(beyond);
        }
        while !piece.is_empty() {
            let index = self.file.at(offset).ok_or(beyond)?;
            let range = self.file.range(index).ok_or(beyond)?;
            let (here, rest) = piece.split_at(piece.len().min((range.end - offset) as usize));
            let length = (range.end - range.start) as usize;
            if self.fill(index, (offset - range.start) as usize, here, length)
                && let Some(part) = self.open.remove(&index)
            {
                ready.push(Whole { index, bytes: part.bytes });
            }
            offset += here.len() as u64;
            piece = rest;
        }
        Ok(())
    }

    /// Copies `bytes` into a segment of `length` bytes at `at`. True if that completes the segment.
    fn fill(&mut self, index: SegmentIndex, at: usize, bytes: &[u8], length: usize) -> bool {
        let spare = &mut self.spare;
        let part = self.open.entry(index).or_insert_with(|| {
            let mut bytes = spare.pop().unwrap_or_default();
            bytes.resize(length, 0);
            Part { bytes, filled: 0 }
        });
        part.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        part.filled += bytes.len();
        part.filled >= length
    }

    /// Returns the buffer of a [`Whole`] for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            self.spare.push(bytes);
        }
    }

    /// The memory held by incomplete segments, in bytes.
    pub fn held(&self) -> u64 {
        self.open.len() as u64 * SEGMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_become_segments() {
        let mut rng = fastrand::Rng::with_seed(1);
        let size = 3 * SEGMENT as usize + 12_345;
        let bytes: Vec<u8> = (0..size).map(|_| rng.u8(..)).collect();
        let file = Geometry::new(size as u64).unwrap();
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < size {
            let end = size.min(at + rng.usize(1..200_000));
            pieces.push(at..end);
            at = end;
        }
        rng.shuffle(&mut pieces);
        let (mut assembly, mut ready) = (Assembly::new(file), Vec::new());
        let mut seen = 0;
        for piece in pieces {
            assembly.place(piece.start as u64, &bytes[piece], &mut ready).unwrap();
            for whole in ready.drain(..) {
                let range = file.range(whole.index).unwrap();
                assert_eq!(whole.bytes, bytes[range.start as usize..range.end as usize]);
                assembly.recycle(whole.bytes);
                seen += 1;
            }
        }
        assert_eq!((seen, assembly.held()), (4, 0));
    }

    #[test]
    fn data_beyond_the_end_are_refused() {
        let mut assembly = Assembly::new(Geometry::new(10).unwrap());
        for offset in [1, 10, u64::MAX - 3, u64::MAX] {
            assert_eq!(assembly.place(offset, &[0; 10], &mut Vec::new()), Err(Beyond { size: 10 }));
        }
        assert_eq!(assembly.held(), 0, "and cost nothing");
    }
}
