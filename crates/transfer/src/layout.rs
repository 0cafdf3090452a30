//! Ranges of a file that lie in an object one after the other.

use crate::geometry::{Geometry, SEGMENT, SegmentIndex};

/// Ranges of a file, and where each begins in the object that carries them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    file: Geometry,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Part {
    /// Bytes of the object before it.
    before: u64,
    from: u64,
    length: u64,
}

impl Layout {
    /// From ranges as (from, to), which a peer may have made up; `None` unless each consists of whole segments of the
    /// file, so that a segment is never opened for a byte.
    // spec: copy-data-1
    pub fn new(file: Geometry, ranges: &[(u64, u64)]) -> Option<Self> {
        let mut before = 0u64;
        let mut parts = Vec::with_capacity(ranges.len());
        for &(from, to) in ranges {
            let is_whole = from % SEGMENT == 0 && (to % SEGMENT == 0 || to == file.size());
            let length = to.checked_sub(from).filter(|&length| length > 0 && is_whole)?;
            if to > file.size() {
                return None;
            }
            parts.push(Part { before, from, length });
            before = before.checked_add(length)?;
        }
        Some(Self { file, parts })
    }

    /// The place in the file of the byte at `offset` of the object, and how many bytes from it on lie together there.
    pub fn locate(&self, offset: u64) -> Option<(u64, u64)> {
        let at = self.parts.partition_point(|part| part.before <= offset).checked_sub(1)?;
        let part = &self.parts[at];
        let inside = offset - part.before;
        (inside < part.length).then(|| (part.from + inside, part.length - inside))
    }

    /// Bytes of the object.
    pub fn length(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.before + part.length)
    }

    /// Its segments in the order of the object.
    pub fn segments(&self) -> impl Iterator<Item = SegmentIndex> {
        let file = self.file;
        self.parts.iter().flat_map(move |part| {
            let first = part.from / SEGMENT;
            let end = (part.from + part.length).div_ceil(SEGMENT);
            (first..end).filter_map(move |at| file.at(at * SEGMENT))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: copy-data-1
    #[test]
    fn an_object_is_laid_over_its_ranges() {
        let file = Geometry::new(3 * SEGMENT + 5).unwrap();
        let layout = Layout::new(file, &[(SEGMENT, 2 * SEGMENT), (3 * SEGMENT, file.size())]);
        let layout = layout.unwrap();
        assert_eq!(layout.locate(0), Some((SEGMENT, SEGMENT)));
        assert_eq!(layout.locate(SEGMENT - 1), Some((2 * SEGMENT - 1, 1)));
        assert_eq!(layout.locate(SEGMENT), Some((3 * SEGMENT, 5)));
        assert_eq!(layout.locate(SEGMENT + 5), None);
        let end = file.size();
        for lie in [(SEGMENT, 0), (0, 0), (0, u64::MAX), (0, 1), (5, SEGMENT), (0, end + SEGMENT)] {
            assert_eq!(Layout::new(file, &[lie]), None, "{lie:?}");
        }
    }
}
