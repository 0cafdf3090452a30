//! Bytes of a request become segments.

use super::Segment;
use hikyaku_transfer::{Geometry, SegmentHash, SegmentIndex};
use std::collections::BTreeMap;
use std::ops::Range;

/// Puts bytes that come in any order together into segments, for a fetcher whose protocol has no segments.
///
/// Such a protocol proves a file only by its metadata after the last byte. So the last segment of a request is held back until
/// the fetcher has looked at the file again ([`end`](Self::end)): a file of which all segments were passed on is of one content.
#[derive(Debug)]
pub struct Segments {
    geometry: Geometry,
    /// Segments of which bytes are missing.
    parts: BTreeMap<SegmentIndex, Part>,
    /// The last segment of the request.
    last: Option<SegmentIndex>,
    /// The segment that is held back.
    whole: Option<(SegmentIndex, Vec<u8>)>,
    /// The room of a segment that was passed on.
    spare: Vec<u8>,
}

/// A segment of which bytes are missing.
#[derive(Debug)]
struct Part {
    /// Up to the last byte that has come. Bytes before it that have not come are zeros.
    bytes: Vec<u8>,
    /// The number of bytes that have come.
    filled: usize,
}

impl Segments {
    /// Those of these ranges of a file.
    pub fn new(geometry: Geometry, ranges: &[Range<u64>]) -> Self {
        let ends = ranges.iter().rev().filter(|range| !range.is_empty());
        let last = ends.map(|range| range.end - 1).find_map(|at| geometry.at(at));
        Self { geometry, parts: BTreeMap::new(), last, whole: None, spare: Vec::new() }
    }

    /// Adds bytes at an offset of the file. Each byte is added once. Calls `each` with segments that are whole, but for the
    /// last one of the ranges. Bytes behind the end of the file are ignored.
    pub fn add(&mut self, mut at: u64, mut bytes: &[u8], each: &mut dyn FnMut(Segment<'_>)) {
        while !bytes.is_empty()
            && let Some(index) = self.geometry.at(at)
            && let Some(range) = self.geometry.range(index)
        {
            let (length, start) = ((range.end - range.start) as usize, (at - range.start) as usize);
            let (first, rest) = bytes.split_at(bytes.len().min(length - start));
            let spare = &mut self.spare;
            let new = || Part { bytes: std::mem::take(spare), filled: 0 };
            let part = self.parts.entry(index).or_insert_with(new);
            part.add(start, first, length);
            if part.filled == length {
                let part = self.parts.remove(&index).map(|part| (index, part.bytes));
                if Some(index) == self.last {
                    self.whole = part;
                } else if let Some(part) = part {
                    self.pass(part, each);
                }
            }
            at += first.len() as u64;
            bytes = rest;
        }
    }

    /// The file has one content: calls `each` with the segment that was held back.
    pub fn end(&mut self, each: &mut dyn FnMut(Segment<'_>)) {
        if let Some(part) = self.whole.take() {
            self.pass(part, each);
        }
    }

    fn pass(&mut self, (index, bytes): (SegmentIndex, Vec<u8>), each: &mut dyn FnMut(Segment<'_>)) {
        if let Some(hash) = SegmentHash::new(self.geometry, index, &bytes) {
            each(Segment { index, hash, bytes: &bytes });
            self.spare = bytes;
            self.spare.clear();
        }
    }
}

impl Part {
    /// Adds bytes of a segment of this length.
    fn add(&mut self, start: usize, bytes: &[u8], length: usize) {
        self.bytes.reserve_exact(length - self.bytes.len());
        let end = start + bytes.len();
        if start == self.bytes.len() {
            self.bytes.extend_from_slice(bytes);
        } else {
            if self.bytes.len() < end {
                self.bytes.resize(end, 0);
            }
            self.bytes[start..end].copy_from_slice(bytes);
        }
        self.filled += bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_transfer::SEGMENT;

    #[test]
    fn bytes_in_any_order_become_segments_and_the_last_one_is_held_back() {
        let size = 2 * SEGMENT + 100;
        let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let pieces = |length: u64| {
            (0..size).step_by(length as usize).map(move |at| at..size.min(at + length))
        };
        let in_order: Vec<_> = pieces(100_000).collect();
        let backwards: Vec<_> = pieces(300_000).collect::<Vec<_>>().into_iter().rev().collect();
        let two = [0..SEGMENT + 7, SEGMENT + 7..size].to_vec();
        for order in [in_order, backwards, two] {
            let all = [0..size, size..size];
            let mut segments = Segments::new(Geometry::new(size).unwrap(), &all);
            let mut passed = Vec::new();
            let mut each = |segment: Segment<'_>| {
                let at = (u64::from(segment.index.0) * SEGMENT) as usize;
                assert!(segment.bytes == &content[at..content.len().min(at + SEGMENT as usize)]);
                passed.push(segment.index.0);
            };
            for piece in &order {
                let bytes = &content[piece.start as usize..piece.end as usize];
                segments.add(piece.start, bytes, &mut each);
            }
            // Behind the end.
            segments.add(size, b"x", &mut each);
            let before = passed.len();
            let mut each = |segment: Segment<'_>| passed.push(segment.index.0);
            segments.end(&mut each);
            segments.end(&mut each);
            assert_eq!((before, passed.last()), (2, Some(&2)));
            passed.sort_unstable();
            assert_eq!(passed, [0, 1, 2]);
        }
    }
}
