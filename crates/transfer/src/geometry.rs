//! How a file is divided into segments.

use crate::proven::Hole;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The size of a segment in bytes (1 MiB). The segment is the unit of hashing, of writing and of
/// resuming. It is read or written by one system call, is hashed in under a millisecond, and its
/// hash has 32 bytes, so the hashes of a terabyte take 32 MB.
pub const SEGMENT: u64 = 1 << 20;

/// The index of a segment in its file, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SegmentIndex(pub u32);

/// The size of a file and its division into segments. All are [`SEGMENT`] bytes long but the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    size: u64,
}

/// The largest file: 2^52 bytes, which is 2^32 segments. It is above the limits of the file systems
/// in use.
const FILE_BYTES_MAX: u64 = SEGMENT << 32;

impl Geometry {
    /// The geometry of a file of `size` bytes; `None` above 2^52 bytes.
    pub const fn new(size: u64) -> Option<Self> {
        if size <= FILE_BYTES_MAX { Some(Self { size }) } else { None }
    }

    /// The size of the file in bytes.
    pub const fn size(self) -> u64 {
        self.size
    }

    /// The count of segments. An empty file has none.
    pub const fn segments(self) -> u64 {
        self.size.div_ceil(SEGMENT)
    }

    /// The byte range of a segment; `None` if the file has no such segment.
    pub fn range(self, index: SegmentIndex) -> Option<Range<u64>> {
        let from = u64::from(index.0) * SEGMENT;
        (from < self.size).then(|| from..self.size.min(from + SEGMENT))
    }

    /// The segment that contains the byte at `offset`; `None` beyond the end of the file.
    pub fn at(self, offset: u64) -> Option<SegmentIndex> {
        (offset < self.size).then_some(SegmentIndex((offset / SEGMENT) as u32))
    }

    /// The segments that lie completely within the byte range of a hole; `None` if there are none.
    pub fn hole(self, bytes: Range<u64>) -> Option<Hole> {
        let first = bytes.start.div_ceil(SEGMENT);
        // The last segment of the file may be shorter than the others.
        let end = if bytes.end >= self.size { self.segments() } else { bytes.end / SEGMENT };
        let count = u32::try_from(end.checked_sub(first)?).ok().filter(|&count| count > 0)?;
        Some(Hole { first: SegmentIndex(u32::try_from(first).ok()?), count })
    }

    /// The bytes of the file within a hole.
    pub fn bytes_of(self, hole: Hole) -> u64 {
        let at = |segment: u64| self.size.min(segment.saturating_mul(SEGMENT));
        let first = u64::from(hole.first.0);
        at(first + u64::from(hole.count)) - at(first)
    }

    /// All segment indices in order.
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
        let bytes = |first, count| file.bytes_of(Hole { first: SegmentIndex(first), count });
        assert_eq!((bytes(1, 2), bytes(3, 2), bytes(4, 1)), (2 * SEGMENT, SEGMENT + 5, 5));
        assert_eq!((bytes(5, 1), bytes(u32::MAX, u32::MAX)), (0, 0));
        assert_eq!(Geometry::new(u64::MAX), None, "what a peer claims");
    }
}
