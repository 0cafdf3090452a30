//! Pieces of a file, as they come in any order, put together to whole segments.

use crate::geometry::{Geometry, SEGMENT, SegmentIndex};
use std::collections::BTreeMap;

/// The segments of one file that have begun to arrive.
///
/// The transport delivers each byte once, so a segment is whole when as many bytes have come as it
/// has. A peer that sends some twice and others never is found out by the segment's hash.
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

/// A segment that is all there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// Which.
    pub index: SegmentIndex,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A piece that does not belong to the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("data beyond the end of a file of {size} bytes")]
pub struct Beyond {
    /// Of the file.
    pub size: u64,
}

/// Buffers kept for the next segments.
const MOST_SPARE: usize = 16;

impl Assembly {
    /// Nothing of `file` has come.
    pub const fn new(file: Geometry) -> Self {
        Self { file, open: BTreeMap::new(), spare: Vec::new() }
    }

    /// Puts `piece` at `offset`; gives the segments that are whole by it to `ready`.
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

    /// True when the segment is whole.
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

    /// Takes a buffer back that [`Whole`] gave out.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(bytes);
        }
    }

    /// Bytes of memory in segments that are not whole.
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
