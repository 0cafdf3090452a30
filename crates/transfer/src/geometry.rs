//! How a file is cut.

use crate::proven::Hole;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes of a segment: the unit of hashing, of writing and of going on after an interruption. A
/// mebibyte is read and written by one call, is hashed in a fraction of a millisecond, and costs 32
/// bytes of hash: a terabyte keeps 32 MB of them.
pub const SEGMENT: u64 = 1 << 20;

/// Which segment of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SegmentIndex(pub u32);

/// A file of a known size, cut into segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    size: u64,
}

/// 2^52 bytes: more than any file system here holds, and 2^32 segments.
const MAX_SIZE: u64 = SEGMENT << 32;

impl Geometry {
    /// A file of `size` bytes; `None` if no file is as large.
    pub const fn new(size: u64) -> Option<Self> {
        if size <= MAX_SIZE { Some(Self { size }) } else { None }
    }

    /// Bytes in all.
    pub const fn size(self) -> u64 {
        self.size
    }

    /// How many segments; an empty file has none.
    pub const fn segments(self) -> u64 {
        self.size.div_ceil(SEGMENT)
    }

    /// The bytes of a segment; `None` beyond the end.
    pub fn range(self, index: SegmentIndex) -> Option<Range<u64>> {
        let from = u64::from(index.0) * SEGMENT;
        (from < self.size).then(|| from..self.size.min(from + SEGMENT))
    }

    /// The segment that holds the byte at `offset`; `None` beyond the end.
    pub fn at(self, offset: u64) -> Option<SegmentIndex> {
        (offset < self.size).then_some(SegmentIndex((offset / SEGMENT) as u32))
    }

    /// The segments that lie in a hole from end to end.
    pub fn hole(self, bytes: Range<u64>) -> Option<Hole> {
        let first = bytes.start.div_ceil(SEGMENT);
        // The last segment may be a short one.
        let end = if bytes.end >= self.size { self.segments() } else { bytes.end / SEGMENT };
        let count = u32::try_from(end.checked_sub(first)?).ok().filter(|&count| count > 0)?;
        Some(Hole { first: SegmentIndex(u32::try_from(first).ok()?), count })
    }

    /// All segments in order.
    pub fn indices(self) -> impl Iterator<Item = SegmentIndex> {
        (0..self.segments()).map(|index| SegmentIndex(index as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cover_a_file_exactly() {
        for size in [0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 5 * SEGMENT + 17] {
            let file = Geometry::new(size).unwrap();
            let mut end = 0;
            for index in file.indices() {
                let range = file.range(index).unwrap();
                assert_eq!(range.start, end);
                assert_eq!(file.at(range.start), Some(index));
                assert_eq!(file.at(range.end - 1), Some(index));
                end = range.end;
            }
            assert_eq!(end, size);
            assert_eq!(file.at(size), None);
            assert_eq!(file.range(SegmentIndex(file.segments() as u32)), None);
        }
        let file = Geometry::new(4 * SEGMENT + 5).unwrap();
        let hole = |from, to| file.hole(from..to).map(|hole| (hole.first.0, hole.count));
        assert_eq!(hole(0, file.size()), Some((0, 5)));
        assert_eq!(hole(1, 3 * SEGMENT), Some((1, 2)));
        assert_eq!(hole(SEGMENT + 1, 2 * SEGMENT + 9), None);
        assert_eq!(hole(4 * SEGMENT, file.size()), Some((4, 1)));
        assert_eq!(hole(4 * SEGMENT + 1, file.size()), None);
        assert_eq!(Geometry::new(u64::MAX), None, "what a peer claims");
    }
}
