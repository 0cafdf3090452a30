//! Which segments of a file are known to be right, with their hashes.

use crate::geometry::{Geometry, SegmentIndex};
use crate::tree::{FileHash, SegmentHash};
use std::collections::BTreeMap;
use std::ops::Range;

/// The proven part of one file. It takes memory for what is proven, not for what a file is said to
/// have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proven {
    file: Geometry,
    blocks: BTreeMap<u32, Block>,
    missing: u64,
}

type Block = Box<[Option<SegmentHash>]>;

/// Segments of a block.
const BLOCK: u32 = 256;

impl Proven {
    /// Nothing is proven yet.
    pub const fn nothing(file: Geometry) -> Self {
        Self { file, blocks: BTreeMap::new(), missing: file.segments() }
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
        let block = self.blocks.entry(index.0 / BLOCK);
        let block = block.or_insert_with(|| vec![None; BLOCK as usize].into());
        if block[(index.0 % BLOCK) as usize].replace(hash).is_none() {
            self.missing -= 1;
        }
        true
    }

    /// Notes a run of right segments, as far as the file has them.
    pub fn insert_run(&mut self, first: SegmentIndex, hashes: &[SegmentHash]) {
        for (at, hash) in (u64::from(first.0)..).zip(hashes) {
            let Ok(at) = u32::try_from(at) else { break };
            self.insert(SegmentIndex(at), *hash);
        }
    }

    /// The hash of a proven segment.
    pub fn get(&self, index: SegmentIndex) -> Option<SegmentHash> {
        self.blocks.get(&(index.0 / BLOCK))?[(index.0 % BLOCK) as usize]
    }

    /// Whether all of it is proven.
    pub const fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Bytes that are proven.
    pub fn bytes(&self) -> u64 {
        let length = |(index, _)| self.file.range(index).map_or(0, |range| range.end - range.start);
        self.segments().map(length).sum()
    }

    /// The file's hash, once all of it is proven.
    pub fn hash(&self) -> Option<FileHash> {
        let hashes: Vec<SegmentHash> = self.segments().map(|(_, hash)| hash).collect();
        FileHash::new(self.file, &hashes)
    }

    /// Proven segments in order.
    fn segments(&self) -> impl Iterator<Item = (SegmentIndex, SegmentHash)> {
        self.blocks.iter().flat_map(|(&block, hashes)| {
            let at = move |(at, hash): (u32, &Option<SegmentHash>)| {
                Some((SegmentIndex(block * BLOCK + at), (*hash)?))
            };
            (0..).zip(hashes.iter()).filter_map(at)
        })
    }

    /// The runs of proven segments, as (first, hashes): what is said to a sender.
    pub fn runs(&self) -> Vec<(SegmentIndex, Vec<SegmentHash>)> {
        let mut runs: Vec<(SegmentIndex, Vec<SegmentHash>)> = Vec::new();
        for (index, hash) in self.segments() {
            match runs.last_mut() {
                Some((first, run)) if first.0 as usize + run.len() == index.0 as usize => {
                    run.push(hash);
                }
                _ => runs.push((index, vec![hash])),
            }
        }
        runs
    }

    /// The ranges of bytes that are still missing, in order, as large as they are.
    pub fn gaps(&self) -> Vec<Range<u64>> {
        let (mut gaps, mut from) = (Vec::new(), 0);
        for (index, _) in self.segments() {
            let Some(range) = self.file.range(index) else { break };
            if from < range.start {
                gaps.push(from..range.start);
            }
            from = range.end;
        }
        if from < self.file.size() {
            gaps.push(from..self.file.size());
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

    #[test]
    fn a_liars_size_costs_nothing() {
        let file = Geometry::new(SEGMENT << 32).unwrap();
        let mut proven = Proven::nothing(file);
        assert!(proven.insert(SegmentIndex(u32::MAX), SegmentHash([1; 32])));
        assert_eq!((proven.gaps().len(), proven.bytes()), (1, SEGMENT));
        assert!(!proven.is_whole());
    }
}
