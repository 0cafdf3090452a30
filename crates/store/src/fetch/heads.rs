//! Heads of segments: the bytes of a segment up to its first missing one. They outlive the request that brought them, so
//! that another request asks for the rest only.

use hikyaku_transfer::{SEGMENT, SegmentIndex};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Heads of one file at most. Each is smaller than a segment.
const HEADS_MAX: usize = 256;

/// A segment of which bytes are missing. A request may add bytes to it meanwhile.
pub trait Incomplete: Send + Sync {
    /// The length of its head.
    fn head_length(&self) -> usize;

    /// A copy of its head, of at most this length.
    fn head(&self, length_max: usize) -> Vec<u8>;
}

/// The heads of a file's segments, as all requests for the file share them.
#[derive(Default)]
pub struct Heads {
    parts: Mutex<BTreeMap<SegmentIndex, Arc<dyn Incomplete>>>,
}

/// The bytes of a file that one request is for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Whole segments. The last segment of the file may be shorter, and with heads a range may begin within a segment.
    pub ranges: &'a [Range<u64>],
    /// The bytes before a range that begins within a segment. The request adds its own incomplete segments to them.
    pub heads: Option<&'a Heads>,
}

impl<'a> Asked<'a> {
    /// Whole segments, without heads.
    pub const fn whole(ranges: &'a [Range<u64>]) -> Self {
        Self { ranges, heads: None }
    }

    /// Whether a range begins within this segment.
    pub fn has_head(&self, index: SegmentIndex) -> bool {
        let is_within = |start: u64| !start.is_multiple_of(SEGMENT);
        let mut starts = self.ranges.iter().map(|range| range.start);
        starts.any(|start| is_within(start) && start / SEGMENT == u64::from(index.0))
    }
}

/// The head that a request or an earlier run has left.
struct Left(Vec<u8>);

impl Incomplete for Left {
    fn head_length(&self) -> usize {
        self.0.len()
    }

    fn head(&self, length_max: usize) -> Vec<u8> {
        self.0[..self.0.len().min(length_max)].to_vec()
    }
}

impl Heads {
    fn parts(&self) -> MutexGuard<'_, BTreeMap<SegmentIndex, Arc<dyn Incomplete>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the head that an earlier run has left.
    pub fn put(&self, index: SegmentIndex, bytes: Vec<u8>) {
        self.add(index, Arc::new(Left(bytes)));
    }

    /// Adds the segment that a request has begun, unless a longer head of it is known.
    pub fn add(&self, index: SegmentIndex, part: Arc<dyn Incomplete>) {
        if self.length(index) <= part.head_length() as u64 {
            self.replace(index, part);
        }
    }

    /// Adds the segment that a request goes on with.
    pub fn replace(&self, index: SegmentIndex, part: Arc<dyn Incomplete>) {
        let mut parts = self.parts();
        if !parts.contains_key(&index) && parts.len() >= HEADS_MAX {
            // A request that is under way has the bytes of its segment in any case.
            let left = parts.iter().filter(|(_, part)| Arc::strong_count(part) == 1);
            let shortest = left.min_by_key(|(_, part)| part.head_length()).map(|(index, _)| *index);
            match shortest {
                Some(shortest) => parts.remove(&shortest),
                None => return,
            };
        }
        parts.insert(index, part);
    }

    /// The segment is complete.
    pub fn remove(&self, index: SegmentIndex) {
        self.parts().remove(&index);
    }

    /// The length of the head of a segment; 0 without one.
    pub fn length(&self, index: SegmentIndex) -> u64 {
        self.parts().get(&index).map_or(0, |part| part.head_length() as u64)
    }

    /// The first bytes of a segment, of this length; `None` if its head is shorter.
    pub fn first(&self, index: SegmentIndex, length: usize) -> Option<Vec<u8>> {
        let part = self.parts().get(&index)?.clone();
        Some(part.head(length)).filter(|head| head.len() == length)
    }

    /// All segments with a head.
    pub fn segments(&self) -> Vec<SegmentIndex> {
        let parts = self.parts();
        parts.iter().filter(|(_, part)| part.head_length() > 0).map(|(index, _)| *index).collect()
    }
}

impl fmt::Debug for Heads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.segments()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_without_a_request_are_bounded_and_the_longest_ones_stay() {
        let heads = Heads::default();
        let under_way: Arc<dyn Incomplete> = Arc::new(Left(vec![0; 1]));
        heads.add(SegmentIndex(0), under_way.clone());
        for index in 1..2_000_u32 {
            heads.put(SegmentIndex(index), vec![7; index as usize]);
        }
        let segments = heads.segments();
        assert_eq!(
            (segments.len(), segments[0], segments[1]),
            (256, SegmentIndex(0), SegmentIndex(1_745))
        );
        drop(under_way);
        assert_eq!(heads.length(SegmentIndex(1_999)), 1_999);
    }

    #[test]
    fn the_longer_head_of_a_segment_stays() {
        let (heads, index) = (Heads::default(), SegmentIndex(3));
        heads.put(index, vec![1; 5]);
        heads.put(index, vec![1; 2]);
        assert_eq!((heads.length(index), heads.first(index, 3)), (5, Some(vec![1; 3])));
        assert_eq!((heads.first(index, 6), heads.first(SegmentIndex(4), 1)), (None, None));
        heads.remove(index);
        assert_eq!((heads.length(index), heads.segments()), (0, vec![]));
    }
}
