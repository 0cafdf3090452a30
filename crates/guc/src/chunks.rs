//! What is missing of a file, and the chunk that comes next.

use hikyaku_transfer::missing;
use std::ops::Range;

/// The parts of a file that are not transferred yet, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Missing(Vec<Range<u64>>);

impl Missing {
    /// `all` without what is there.
    pub(crate) fn new(all: Range<u64>, have: &[Range<u64>]) -> Self {
        Self(missing(all, have))
    }

    /// Bytes that are missing.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// The next chunk, of at most `bytes`. It is missing until [`remove`](Self::remove).
    pub(crate) fn next(&self, bytes: u64) -> Option<Range<u64>> {
        let first = self.0.first()?;
        Some(first.start..first.end.min(first.start.saturating_add(bytes.max(1))))
    }

    /// The first byte that is missing.
    pub(crate) fn begin(&self) -> u64 {
        self.0.first().map_or(0, |range| range.start)
    }

    /// All from the beginning of the file on is missing.
    pub(crate) fn all_again(&mut self) {
        let end = self.0.last().map_or(0, |range| range.end);
        self.0 = std::iter::once(0..end).collect();
    }

    /// `chunk` is there: the one that `next` told.
    pub(crate) fn remove(&mut self, chunk: &Range<u64>) {
        if let Some(first) = self.0.first_mut() {
            first.start = chunk.end.min(first.end);
        }
        self.0.retain(|range| !range.is_empty());
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
}
