//! Which segments of a file are known to be right, with their hashes.

use crate::geometry::{Geometry, SegmentIndex};
use crate::tree::{FileHash, SegmentHash};
use std::ops::Range;

/// The proven part of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proven {
    file: Geometry,
    hashes: Vec<Option<SegmentHash>>,
    missing: u64,
}

impl Proven {
    /// Nothing is proven yet.
    pub fn nothing(file: Geometry) -> Self {
        Self { file, hashes: Vec::new(), missing: file.segments() }
    }

    /// The file.
    pub const fn file(&self) -> Geometry {
        self.file
    }

    /// Notes that a segment is right; false if the file has no such segment.
    pub fn insert(&mut self, index: SegmentIndex, hash: SegmentHash) -> bool {
        if self.file.range(index).is_none() {
            return false;
        }
        let at = index.0 as usize;
        if self.hashes.len() <= at {
            self.hashes.resize(at + 1, None);
        }
        if self.hashes[at].replace(hash).is_none() {
            self.missing -= 1;
        }
        true
    }

    /// The hash of a proven segment.
    pub fn get(&self, index: SegmentIndex) -> Option<SegmentHash> {
        *self.hashes.get(index.0 as usize)?
    }

    /// Whether all of it is proven.
    pub const fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// The file's hash, once all of it is proven.
    pub fn hash(&self) -> Option<FileHash> {
        let hashes: Option<Vec<_>> = self.hashes.iter().copied().collect();
        FileHash::new(self.file, &hashes?)
    }

    /// The runs of proven segments, as (first, hashes): what is said to a sender.
    pub fn runs(&self) -> Vec<(SegmentIndex, Vec<SegmentHash>)> {
        let mut runs: Vec<(SegmentIndex, Vec<SegmentHash>)> = Vec::new();
        for (at, hash) in self.hashes.iter().enumerate() {
            let Some(hash) = hash else { continue };
            match runs.last_mut() {
                Some((first, run)) if first.0 as usize + run.len() == at => run.push(*hash),
                _ => runs.push((SegmentIndex(at as u32), vec![*hash])),
            }
        }
        runs
    }

    /// The ranges of bytes that are still missing, in order, as large as they are.
    pub fn gaps(&self) -> Vec<Range<u64>> {
        let mut gaps: Vec<Range<u64>> = Vec::new();
        for index in self.file.indices().filter(|index| self.get(*index).is_none()) {
            let Some(range) = self.file.range(index) else { break };
            match gaps.last_mut() {
                Some(gap) if gap.end == range.start => gap.end = range.end,
                _ => gaps.push(range),
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::SEGMENT;

    #[test]
    fn gaps_and_runs_are_each_others_rest() {
        let file = Geometry::new(4 * SEGMENT + 5).unwrap();
        let mut proven = Proven::nothing(file);
        assert_eq!(proven.gaps(), vec![Range { start: 0, end: file.size() }]);
        for index in [0, 1, 3] {
            assert!(proven.insert(SegmentIndex(index), SegmentHash([index as u8; 32])));
        }
        assert!(!proven.insert(SegmentIndex(5), SegmentHash([0; 32])), "beyond the end");
        assert_eq!(proven.gaps(), [2 * SEGMENT..3 * SEGMENT, 4 * SEGMENT..file.size()]);
        let lengths: Vec<_> = proven.runs().iter().map(|(at, run)| (at.0, run.len())).collect();
        assert_eq!(lengths, [(0, 2), (3, 1)]);
        assert!(!proven.is_whole() && proven.hash().is_none());
        for index in [2, 4, 4] {
            proven.insert(SegmentIndex(index), SegmentHash([9; 32]));
        }
        assert!(proven.is_whole() && proven.hash().is_some() && proven.gaps().is_empty());
    }

    #[test]
    fn an_empty_file_is_whole_at_once() {
        let proven = Proven::nothing(Geometry::new(0).unwrap());
        assert!(proven.is_whole());
        assert_eq!(proven.hash().unwrap().to_string(), blake3::hash(b"").to_hex().as_str());
    }
}
