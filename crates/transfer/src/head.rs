//! The head of a segment: its first bytes, where the rest of it has not come.

use crate::geometry::{Geometry, SegmentIndex};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A head that was written to an unfinished file. Its hash proves that these bytes are still in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The segment.
    pub index: SegmentIndex,
    /// The number of its bytes.
    length: u32,
    /// The BLAKE3 hash of these bytes alone.
    hash: [u8; 32],
}

impl Head {
    /// The head of a segment; `None` if it is longer than any segment.
    pub fn new(index: SegmentIndex, bytes: &[u8]) -> Option<Self> {
        let length = u32::try_from(bytes.len()).ok()?;
        Some(Self { index, length, hash: *blake3::hash(bytes).as_bytes() })
    }

    /// The number of its bytes.
    pub const fn length(&self) -> u64 {
        self.length as u64
    }

    /// The place of its bytes in the file; `None` if it is empty or leaves nothing of its segment.
    pub fn range(&self, file: Geometry) -> Option<Range<u64>> {
        let segment = file.range(self.index)?;
        let end = segment.start + self.length();
        (segment.start < end && end < segment.end).then_some(segment.start..end)
    }

    /// Whether these are its bytes.
    pub fn is(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.length() && *blake3::hash(bytes).as_bytes() == self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::SEGMENT;

    #[test]
    fn a_head_is_a_part_of_its_segment() {
        let file = Geometry::new(2 * SEGMENT + 10).unwrap();
        let range = |index, length| {
            let head = Head::new(SegmentIndex(index), &vec![7; length]).unwrap();
            assert!(head.is(&vec![7; length]) && !head.is(&vec![7; length + 1]));
            assert!(length == 0 || !head.is(&vec![8; length]));
            head.range(file)
        };
        assert_eq!(range(1, 5), Some(SEGMENT..SEGMENT + 5));
        assert_eq!(range(2, 9), Some(2 * SEGMENT..2 * SEGMENT + 9));
        for (index, length) in [(0, 0), (0, SEGMENT as usize), (2, 10), (3, 1), (u32::MAX, 1)] {
            assert_eq!(range(index, length), None, "{index} {length}");
        }
    }
}
