//! Sets of segments of one file, as sorted runs.

use alloc::vec::Vec;
use hikyaku_units::DataSize;

/// The size of a segment in bytes (1 MiB): the unit of a copy's hashes. A range is asked and proven in whole
/// segments; only the last segment of a file is shorter.
pub const SEGMENT_BYTES: u64 = 1 << 20;

/// Consecutive segments: from the first to before the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) end: u32,
}

impl Run {
    pub(crate) const fn new(first: u32, end: u32) -> Self {
        Self { first, end }
    }

    /// The number of segments.
    pub(crate) const fn count(self) -> u32 {
        self.end - self.first
    }

    /// The bytes of the segments in a file of this size.
    pub(crate) fn bytes(self, size: DataSize) -> u64 {
        let to = (u64::from(self.end) * SEGMENT_BYTES).min(size.bytes());
        to.saturating_sub(u64::from(self.first) * SEGMENT_BYTES)
    }
}

/// A set of segments: runs that are sorted, not empty, and neither overlap nor touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Segments(Vec<Run>);

impl Segments {
    /// The segments from 0 to before `end`.
    pub(crate) fn up_to(end: u32) -> Self {
        let mut all = Self::default();
        all.insert(Run::new(0, end));
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.0
    }

    /// The number of segments.
    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|run| run.count()).sum()
    }

    /// Adds a run.
    pub(crate) fn insert(&mut self, run: Run) {
        if run.first >= run.end {
            return;
        }
        let from = self.0.partition_point(|old| old.end < run.first);
        let to = self.0.partition_point(|old| old.first <= run.end);
        let mut joined = run;
        if from < to {
            joined.first = joined.first.min(self.0[from].first);
            joined.end = joined.end.max(self.0[to - 1].end);
        }
        self.0.splice(from..to, [joined]);
    }

    /// Removes a run. Returns the removed parts, sorted.
    pub(crate) fn remove(&mut self, run: Run) -> Vec<Run> {
        let from = self.0.partition_point(|old| old.end <= run.first);
        let to = self.0.partition_point(|old| old.first < run.end);
        if run.first >= run.end || from >= to {
            return Vec::new();
        }
        let (first, last) = (self.0[from], self.0[to - 1]);
        let before = Run::new(first.first, run.first.max(first.first));
        let behind = Run::new(run.end.min(last.end), last.end);
        let kept = [before, behind].into_iter().filter(|run| run.count() > 0);
        let mut removed: Vec<Run> = self.0.splice(from..to, kept).collect();
        removed[0].first = before.end;
        let count = removed.len();
        removed[count - 1].end = behind.first;
        removed
    }

    /// The parts of `run` that are not in the set, sorted.
    pub(crate) fn missing(&self, run: Run) -> Vec<Run> {
        let mut rest = Self::default();
        rest.insert(run);
        for &have in &self.0 {
            if have.first < run.end && run.first < have.end {
                rest.remove(have);
            }
        }
        rest.0
    }

    /// Takes up to `count` segments off the first run.
    pub(crate) fn take_front(&mut self, count: u32) -> Option<Run> {
        let first = *self.0.first()?;
        let taken = Run::new(first.first, first.end.min(first.first.saturating_add(count)));
        self.remove(taken);
        Some(taken)
    }

    /// Takes up to `count` segments off the end of the last run.
    pub(crate) fn take_back(&mut self, count: u32) -> Option<Run> {
        let last = *self.0.last()?;
        let taken = Run::new(last.first.max(last.end.saturating_sub(count)), last.end);
        self.remove(taken);
        Some(taken)
    }
}

#[cfg(test)]
mod tests;
