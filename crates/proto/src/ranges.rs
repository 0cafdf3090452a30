//! A set of disjoint, merged ranges of `u64`.

use alloc::collections::BTreeMap;

/// Half-open ranges that are kept disjoint and merged. Appending to the last range, the common
/// case, changes one entry.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// An empty set.
    pub const fn new() -> Self {
        Self { ranges: BTreeMap::new() }
    }

    /// Adds `start..end`. Returns how many numbers of it were not in the set.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let (mut from, mut to, mut known) = (start, end, 0);
        while let Some((&s, &e)) = self.ranges.range(..=to).next_back() {
            if e < from {
                break;
            }
            known += e.min(end).saturating_sub(s.max(start));
            from = from.min(s);
            to = to.max(e);
            self.ranges.remove(&s);
        }
        self.ranges.insert(from, to);
        end - start - known
    }

    /// The parts of `start..end` that are not in the set, in order.
    pub fn gaps(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = self.ranges.range(..=start).next_back().map(|(_, &e)| e);
        let mut at = before.map_or(start, |e| e.max(start));
        let mut inside = self.ranges.range(start.saturating_add(1)..end.max(start + 1));
        core::iter::from_fn(move || {
            while at < end {
                let (gap_end, next) = match inside.next() {
                    Some((&s, &e)) => (s, e),
                    None => (end, end),
                };
                let gap = (at, gap_end.min(end));
                at = next.max(gap.1);
                if gap.0 < gap.1 {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Whether all of `start..end` is in the set.
    pub fn contains(&self, start: u64, end: u64) -> bool {
        self.ranges.range(..=start).next_back().is_some_and(|(_, &e)| e >= end)
    }

    /// The end of the range that begins at zero, or zero if there is none.
    pub fn prefix(&self) -> u64 {
        self.ranges.get(&0).copied().unwrap_or(0)
    }

    /// The number of disjoint ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests;
