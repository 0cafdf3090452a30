//! The missing parts of a file, and the chunk that comes next.

use hikyaku_transfer::missing;
use std::ops::Range;

/// The parts of a file that are not transferred yet, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing(Vec<Range<u64>>);

impl Missing {
    /// `all` without the ranges `have`.
    pub fn new(all: Range<u64>, have: &[Range<u64>]) -> Self {
        Self(missing(all, have))
    }

    /// These ranges, which are in order and disjoint.
    pub(crate) fn of(ranges: &[Range<u64>]) -> Self {
        Self(ranges.iter().filter(|range| !range.is_empty()).cloned().collect())
    }

    /// The number of missing bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// The next chunk, of at most `bytes`. It is missing until [`remove`](Self::remove).
    pub fn next(&self, bytes: u64) -> Option<Range<u64>> {
        let first = self.0.first()?;
        Some(first.start..first.end.min(first.start.saturating_add(bytes.max(1))))
    }

    /// The offset of the first missing byte.
    pub fn begin(&self) -> u64 {
        self.0.first().map_or(0, |range| range.start)
    }

    /// Makes all bytes from the beginning of the file on missing.
    pub fn all_again(&mut self) {
        let end = self.0.last().map_or(0, |range| range.end);
        self.0 = std::iter::once(0..end).collect();
    }

    /// `chunk` was transferred.
    pub fn remove(&mut self, chunk: &Range<u64>) {
        let has = std::slice::from_ref(chunk);
        self.0 =
            std::mem::take(&mut self.0).into_iter().flat_map(|range| missing(range, has)).collect();
    }

    /// `chunk`, which was removed, is missing after all.
    pub(crate) fn add(&mut self, chunk: Range<u64>) {
        let at = self.0.partition_point(|range| range.start < chunk.start);
        self.0.insert(at, chunk);
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_what_is_missing_once() {
        let mut missing = Missing::new(0..100, &[40..50]);
        let mut chunks = Vec::new();
        while let Some(chunk) = missing.next(30) {
            missing.remove(&chunk);
            chunks.push(chunk);
        }
        assert_eq!(chunks, [0..30, 30..40, 50..80, 80..100]);
        assert_eq!(missing.bytes(), 0);
    }

    #[test]
    fn chunks_are_transferred_in_any_order_and_some_are_not() {
        let mut missing = Missing::new(0..100, &[]);
        missing.remove(&(60..80));
        missing.remove(&(0..20));
        assert_eq!((missing.bytes(), missing.next(100)), (60, Some(20..60)));
        missing.add(0..20);
        missing.remove(&(20..100));
        assert_eq!((missing.bytes(), missing.next(100)), (20, Some(0..20)));
    }
}
