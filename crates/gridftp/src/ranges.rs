//! Which bytes of a part have arrived.

use std::collections::BTreeMap;

/// Separate ranges that a server may make this end hold. Blocks arrive in any order, but each connection sends its own in
/// order, so a real server leaves a few gaps a connection.
const RANGES_MAX: usize = 65_536;

/// Disjoint ranges, each of which ends before the next begins.
#[derive(Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

/// Why a range was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotAdded {
    /// A part of it has arrived before.
    Twice,
    /// There are too many separate ranges.
    TooMany,
}

impl Ranges {
    /// Adds `[start, end)`, which must not be empty.
    pub(crate) fn add(&mut self, start: u64, end: u64) -> Result<(), NotAdded> {
        let before = self.0.range(..=start).next_back().map(|(&start, &end)| (start, end));
        let after = self.0.range(start..).next().map(|(&start, &end)| (start, end));
        if before.is_some_and(|before| before.1 > start) || after.is_some_and(|after| after.0 < end)
        {
            return Err(NotAdded::Twice);
        }
        let end = match after {
            Some((next, next_end)) if next == end => {
                self.0.remove(&next);
                next_end
            }
            _ => end,
        };
        match before {
            Some((first, first_end)) if first_end == start => self.0.insert(first, end),
            _ => self.0.insert(start, end),
        };
        if self.0.len() > RANGES_MAX { Err(NotAdded::TooMany) } else { Ok(()) }
    }

    /// Whether all bytes before `length` are here.
    pub(crate) fn are_whole(&self, length: u64) -> bool {
        length == 0 || self.0.get(&0).is_some_and(|&end| end >= length)
    }

    /// Whether there is at most one range.
    pub(crate) fn is_one(&self) -> bool {
        self.0.len() <= 1
    }

    /// Bytes from the start without a gap.
    pub(crate) fn first(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_any_order_become_one() {
        let mut ranges = Ranges::default();
        for (start, end) in [(30, 40), (0, 10), (20, 30), (10, 20)] {
            assert!(!ranges.are_whole(40));
            ranges.add(start, end).unwrap();
        }
        assert!(ranges.are_whole(40) && !ranges.are_whole(41));
        assert_eq!(ranges.0.len(), 1);
    }

    #[test]
    fn what_came_before_is_not_added() {
        let mut ranges = Ranges::default();
        ranges.add(10, 20).unwrap();
        for (start, end) in [(10, 20), (0, 11), (19, 30), (0, 30), (12, 13)] {
            assert_eq!(ranges.add(start, end), Err(NotAdded::Twice), "{start}-{end}");
        }
        assert_eq!(ranges.first(), 0);
        ranges.add(0, 10).unwrap();
        assert_eq!(ranges.first(), 20);
    }

    #[test]
    fn crumbs_have_a_limit() {
        let mut ranges = Ranges::default();
        let mut crumbs = (0..).map(|at| ranges.add(2 * at, 2 * at + 1));
        let refused = crumbs.position(|added| added == Err(NotAdded::TooMany));
        assert_eq!(refused, Some(RANGES_MAX));
    }
}
