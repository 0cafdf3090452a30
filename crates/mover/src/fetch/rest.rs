//! The rest of segments: the bytes of a request that have not come over another connection before.

use hikyaku_store::Heads;
use hikyaku_transfer::{SEGMENT, SegmentIndex};
use std::ops::Range;
use std::sync::Arc;

/// The part of a request that is fetched.
#[derive(Default)]
pub(super) struct Rest {
    /// In the order of the request. A range begins behind the head of its first segment.
    pub(super) ranges: Vec<Range<u64>>,
    /// The heads that are left out, if any are.
    pub(super) heads: Option<Arc<Heads>>,
}

/// The heads that a request leaves out: where the segment of each begins in the bytes of the request, and its length.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct LeftOut(Vec<(u64, u64)>);

impl Rest {
    /// The part of these ranges, which are whole segments, that is behind the heads.
    pub(super) fn of(ranges: &[Range<u64>], heads: &Arc<Heads>) -> (Self, LeftOut) {
        let (mut rest, mut left_out, mut before) = (Vec::new(), LeftOut::default(), 0);
        for range in ranges {
            let (mut start, length) = (range.start, range.end - range.start);
            for segment in heads.segments().into_iter().map(begin) {
                let head = heads.length(SegmentIndex((segment / SEGMENT) as u32));
                // A request may complete the segment meanwhile.
                let is_part = head > 0 && segment + head < range.end.min(segment + SEGMENT);
                if segment >= start && segment < range.end && is_part {
                    rest.extend(Some(start..segment).filter(|part| !part.is_empty()));
                    start = segment + head;
                    left_out.0.push((before + segment - range.start, head));
                }
            }
            rest.push(start..range.end);
            before += length;
        }
        (Self { ranges: rest, heads: Some(heads.clone()) }, left_out)
    }
}

const fn begin(index: SegmentIndex) -> u64 {
    index.0 as u64 * SEGMENT
}

impl LeftOut {
    /// The bytes of the heads.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, length)| length).sum()
    }

    /// The offset in the bytes that are fetched of the begin of a segment of the request.
    pub(super) fn fetched(&self, offset: u64) -> u64 {
        let before = self.0.iter().filter(|(at, _)| *at < offset);
        offset - before.map(|(_, length)| length).sum::<u64>()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_divided_behind_each_head() {
        const S: u64 = SEGMENT;
        let heads = Arc::new(Heads::default());
        for (index, length) in [(1, 100), (3, 1), (4, 7), (9, 5), (12, 4)] {
            heads.put(SegmentIndex(index), vec![0; length]);
        }
        // Segment 12 is the last one of the file, and has four bytes.
        let (rest, left_out) = Rest::of(&[S..6 * S, 7 * S..8 * S, 9 * S..12 * S + 4], &heads);
        assert_eq!(
            rest.ranges,
            [
                S + 100..3 * S,
                3 * S + 1..4 * S,
                4 * S + 7..6 * S,
                7 * S..8 * S,
                9 * S + 5..12 * S + 4
            ]
        );
        assert_eq!(left_out, LeftOut(vec![(0, 100), (2 * S, 1), (3 * S, 7), (6 * S, 5)]));
        assert_eq!(left_out.bytes(), 113);
        for (offset, fetched) in
            [(0, 0), (S, S - 100), (2 * S, 2 * S - 100), (4 * S, 4 * S - 108), (7 * S, 7 * S - 113)]
        {
            assert_eq!(left_out.fetched(offset), fetched, "{offset}");
        }
        let (rest, left_out) = Rest::of(&[0..S], &heads);
        assert_eq!((rest.ranges, left_out), (vec![0..S], LeftOut::default()));
    }
}
