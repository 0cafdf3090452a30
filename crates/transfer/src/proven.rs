//! The segments of a file that are known to be correct, with their hashes.

use crate::geometry::{Geometry, SEGMENT, SegmentIndex};
use crate::tree::{FileHash, SegmentHash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The proven part of one file. Its memory grows with the proven segments, not with the size that a
/// peer claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proven {
    file: Geometry,
    blocks: BTreeMap<u32, Block>,
    /// Runs of segments within holes: the first index, and the index after the last. They count as
    /// proven and have no hashes.
    holes: BTreeMap<u32, u64>,
    missing: u64,
}

/// A run of segments that lie in a hole of the file and read as zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hole {
    /// The first segment.
    pub first: SegmentIndex,
    /// The count of segments.
    pub count: u32,
}

type Block = Box<[Option<SegmentHash>]>;

/// Segments in one allocation.
const BLOCK_SEGMENTS: u32 = 256;

impl Proven {
    /// Nothing of `file` is proven.
    pub const fn nothing(file: Geometry) -> Self {
        Self { file, blocks: BTreeMap::new(), holes: BTreeMap::new(), missing: file.segments() }
    }

    /// The geometry of the file.
    pub const fn file(&self) -> Geometry {
        self.file
    }

    /// Records a correct segment. False if the file has no such segment.
    pub fn insert(&mut self, index: SegmentIndex, hash: SegmentHash) -> bool {
        if self.file.range(index).is_none() {
            return false;
        }
        let block = self.blocks.entry(index.0 / BLOCK_SEGMENTS);
        let block = block.or_insert_with(|| vec![None; BLOCK_SEGMENTS as usize].into());
        let is_new = block[(index.0 % BLOCK_SEGMENTS) as usize].replace(hash).is_none();
        if is_new && !self.is_hole(index) {
            self.missing -= 1;
        }
        true
    }

    /// Records a hole. False if it is empty, lies beyond the end of the file, or does not follow
    /// all holes recorded before.
    // spec: copy-hole-1
    pub fn add_hole(&mut self, hole: Hole) -> bool {
        let (first, end) =
            (u64::from(hole.first.0), u64::from(hole.first.0) + u64::from(hole.count));
        let before = self.holes.values().next_back().copied().unwrap_or(0);
        if first < before || hole.count == 0 || end > self.file.segments() {
            return false;
        }
        // Segments in the hole that were already proven by their hashes are not missing.
        let blocks = self.blocks.range(hole.first.0 / BLOCK_SEGMENTS..);
        let known = blocks.flat_map(|(&block, hashes)| indexed(block, hashes));
        let known = known.map(|(index, _)| u64::from(index.0));
        let known = known.skip_while(|&at| at < first).take_while(|&at| at < end).count();
        self.holes.insert(hole.first.0, end);
        self.missing -= u64::from(hole.count) - known as u64;
        true
    }

    fn is_hole(&self, index: SegmentIndex) -> bool {
        let hole = self.holes.range(..=index.0).next_back();
        hole.is_some_and(|(_, &end)| u64::from(index.0) < end)
    }

    /// Whether a hole is recorded.
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Whether a segment is neither proven by its hash nor in a hole.
    pub fn lacks(&self, index: SegmentIndex) -> bool {
        self.get(index).is_none() && !self.is_hole(index)
    }

    /// The count of recorded holes.
    pub fn holes(&self) -> usize {
        self.holes.len()
    }

    /// Records a run of correct segments. Segments beyond the end of the file are ignored.
    pub fn insert_run(&mut self, first: SegmentIndex, hashes: &[SegmentHash]) {
        for (at, hash) in (u64::from(first.0)..).zip(hashes) {
            let Ok(at) = u32::try_from(at) else { break };
            self.insert(SegmentIndex(at), *hash);
        }
    }

    /// The hash of a proven segment; `None` for one in a hole.
    pub fn get(&self, index: SegmentIndex) -> Option<SegmentHash> {
        self.blocks.get(&(index.0 / BLOCK_SEGMENTS))?[(index.0 % BLOCK_SEGMENTS) as usize]
    }

    /// Whether every segment is proven or in a hole.
    pub const fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// The bytes of segments proven by their hashes.
    pub fn bytes(&self) -> u64 {
        let length = |(index, _)| self.file.range(index).map_or(0, |range| range.end - range.start);
        self.segments().map(length).sum()
    }

    /// The hash of the file; `None` unless all of it is proven. The zeros of holes are hashed for
    /// it: BLAKE3 includes the position of each chunk (section 2.1 of its paper), so zeros at
    /// different offsets hash differently and no hash can be reused. For a terabyte of holes this
    /// takes minutes.
    pub fn hash(&self) -> Option<FileHash> {
        if !self.is_whole() {
            return None;
        }
        let zeros = if self.has_holes() { vec![0; SEGMENT as usize] } else { Vec::new() };
        let of = |index: SegmentIndex| {
            let range = self.file.range(index)?;
            let length = (range.end - range.start) as usize;
            self.get(index).or_else(|| SegmentHash::new(self.file, index, zeros.get(..length)?))
        };
        let hashes = self.file.indices().map(of).collect::<Option<Vec<_>>>()?;
        FileHash::new(self.file, &hashes)
    }

    /// The segments with hashes, in order.
    fn segments(&self) -> impl Iterator<Item = (SegmentIndex, SegmentHash)> {
        self.blocks.iter().flat_map(|(&block, hashes)| indexed(block, hashes))
    }

    /// The runs of segments with hashes, as (first index, hashes).
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
}

/// The segments with hashes in one allocation.
fn indexed(block: u32, hashes: &Block) -> impl Iterator<Item = (SegmentIndex, SegmentHash)> {
    let at = move |(at, hash): (u32, &Option<SegmentHash>)| {
        Some((SegmentIndex(block * BLOCK_SEGMENTS + at), (*hash)?))
    };
    (0..).zip(hashes.iter()).filter_map(at)
}

#[cfg(test)]
mod tests;
