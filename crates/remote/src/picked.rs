//! Ranges of a file that need not lie along segments, taken for a file of their own.

use crate::message::PICKED_RANGES_MAX;
use hikyaku_transfer::{Geometry, Layout};
use std::ops::Range;

/// Ranges of a file, one after the other.
pub(crate) struct Picked<'a> {
    ranges: &'a [(u64, u64)],
    /// Bytes of all ranges before each of them.
    before: Vec<u64>,
    file: Geometry,
    layout: Layout,
}

impl<'a> Picked<'a> {
    /// From ranges as (from, to), which a peer may have made up; `None` unless there is at least one, none is empty, each
    /// begins at or behind the end of the last, and all lie in a file of `size` bytes.
    // spec: store-pick-1
    pub(crate) fn new(size: u64, ranges: &'a [(u64, u64)]) -> Option<Self> {
        if ranges.is_empty() || ranges.len() > PICKED_RANGES_MAX {
            return None;
        }
        let (mut before, mut total, mut end) = (Vec::with_capacity(ranges.len()), 0u64, 0);
        for &(from, to) in ranges {
            if from < end || to <= from || to > size {
                return None;
            }
            before.push(total);
            // The ranges do not overlap, so their sum is at most the size of the file.
            total += to - from;
            end = to;
        }
        let file = Geometry::new(total)?;
        let layout = Layout::new(file, &[(0, total)])?;
        Some(Self { ranges, before, file, layout })
    }

    /// The file that the ranges make, and all of it as one range.
    pub(crate) fn as_file(&self) -> (Geometry, Layout) {
        (self.file, self.layout.clone())
    }

    /// Where the bytes `wanted` of that file lie in the real one, in order.
    pub(crate) fn places(&self, wanted: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.before.partition_point(|&before| before <= wanted.start).saturating_sub(1);
        let ranges = self.ranges.iter().zip(&self.before).skip(first);
        ranges.map_while(move |(&(from, to), &before)| {
            let start = from + wanted.start.saturating_sub(before);
            let end = to.min(from + wanted.end.saturating_sub(before));
            (start < end).then_some(start..end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_picked_ranges_lie_where_they_were_picked() {
        let ranges = [(5, 10), (10, 11), (90, 100)];
        let picked = Picked::new(100, &ranges).unwrap();
        assert_eq!(picked.as_file().0.size(), 16);
        let places = |wanted| picked.places(wanted).collect::<Vec<_>>();
        assert_eq!(places(0..16), [5..10, 10..11, 90..100]);
        assert_eq!(places(4..7), [9..10, 10..11, 90..91]);
        assert_eq!(places(6..16).len(), 1);
        assert_eq!(places(5..7), [10..11, 90..91]);
    }

    // spec: store-pick-1
    #[test]
    fn ranges_that_make_no_file_are_refused() {
        let too_many: Vec<_> = (0..=PICKED_RANGES_MAX as u64).map(|at| (at, at + 1)).collect();
        for lie in
            [&[][..], &[(5, 5)], &[(6, 5)], &[(0, 101)], &[(5, 9), (8, 10)], &[(0, u64::MAX)]]
        {
            assert!(Picked::new(100, lie).is_none(), "{lie:?}");
        }
        assert!(Picked::new(u64::MAX, &too_many).is_none());
        assert!(Picked::new(u64::MAX, &[(0, u64::MAX)]).is_none());
    }
}
