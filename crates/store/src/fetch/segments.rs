//! Bytes of a request become segments.

use super::{Asked, Heads, Incomplete, Segment};
use hikyaku_transfer::{Geometry, SEGMENT, SegmentHash, SegmentIndex};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Puts bytes that come in any order together into segments, for a fetcher whose protocol has no segments.
///
/// Such a protocol proves a file only by its metadata after the last byte. So the last segment of a request is held back until
/// the fetcher has looked at the file again ([`end`](Self::end)): a file of which all segments were passed on is of one content.
///
/// Incomplete segments are among the heads of the request from their first byte on, also after its end.
#[derive(Debug)]
pub struct Segments<'h> {
    geometry: Geometry,
    /// Segments of which bytes are missing.
    parts: BTreeMap<SegmentIndex, Arc<Part>>,
    heads: Option<&'h Heads>,
    /// The last segment of the request.
    last: Option<SegmentIndex>,
    /// The segment that is held back.
    whole: Option<(SegmentIndex, Vec<u8>)>,
    /// The room of a segment that was passed on.
    spare: Vec<u8>,
}

/// A segment of which bytes are missing.
#[derive(Debug, Default)]
struct Part(Mutex<Filled>);

#[derive(Debug, Default)]
struct Filled {
    /// Up to the last byte that has come. Bytes before it that have not come are zeros.
    bytes: Vec<u8>,
    /// The number of bytes that have come.
    count: usize,
}

impl<'h> Segments<'h> {
    /// Those of a request for ranges of a file.
    pub fn new(geometry: Geometry, asked: &Asked<'h>) -> Self {
        let Asked { ranges, heads } = *asked;
        let ends = ranges.iter().rev().filter(|range| !range.is_empty());
        let last = ends.map(|range| range.end - 1).find_map(|at| geometry.at(at));
        let (parts, spare) = (BTreeMap::new(), Vec::new());
        let mut segments = Self { geometry, parts, heads, last, whole: None, spare };
        ranges.iter().for_each(|range| segments.begin_within(range.start));
        segments
    }

    /// Begins with the head of the segment that has the byte at `start`. If the head does not exist any more, the segment
    /// stays incomplete.
    fn begin_within(&mut self, start: u64) {
        let (Some(heads), Some(index)) = (self.heads, self.geometry.at(start)) else { return };
        let length = (start % SEGMENT) as usize;
        if length > 0 {
            let bytes = heads.first(index, length).unwrap_or_default();
            let part = Arc::new(Part(Filled { count: bytes.len(), bytes }.into()));
            heads.replace(index, part.clone());
            self.parts.insert(index, part);
        }
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
            let (spare, heads) = (&mut self.spare, self.heads);
            let new = || {
                let filled = Filled { bytes: std::mem::take(spare), count: 0 };
                let part = Arc::new(Part(filled.into()));
                heads.iter().for_each(|heads| heads.add(index, part.clone()));
                part
            };
            let part = self.parts.entry(index).or_insert_with(new);
            let whole = part.filled().add(start, first, length);
            if let Some(bytes) = whole {
                self.parts.remove(&index);
                if Some(index) == self.last {
                    self.whole = Some((index, bytes));
                } else {
                    self.pass((index, bytes), each);
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

impl Drop for Segments<'_> {
    /// Another request for the last byte of the segment that is held back looks at the file again.
    fn drop(&mut self) {
        if let (Some(heads), Some((index, mut bytes))) = (self.heads, self.whole.take()) {
            bytes.pop();
            heads.put(index, bytes);
        }
    }
}

impl Part {
    fn filled(&self) -> MutexGuard<'_, Filled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filled {
    /// Adds bytes of a segment of this length. Returns the segment if it is whole.
    fn add(&mut self, start: usize, bytes: &[u8], length: usize) -> Option<Vec<u8>> {
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
        self.count += bytes.len();
        (self.count == length).then(|| std::mem::take(self).bytes)
    }

    /// The head: all that has come, if it came in order.
    fn head(&self) -> &[u8] {
        if self.count == self.bytes.len() { &self.bytes } else { &[] }
    }
}

impl Incomplete for Part {
    fn head_length(&self) -> usize {
        self.filled().head().len()
    }

    fn head(&self, length_max: usize) -> Vec<u8> {
        let filled = self.filled();
        let head = filled.head();
        head[..head.len().min(length_max)].to_vec()
    }
}

#[cfg(test)]
mod tests;
