//! Which segments of a file are known to be right, with their hashes.

use crate::geometry::{Geometry, SEGMENT, SegmentIndex};
use crate::tree::{FileHash, SegmentHash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The proven part of one file. It takes memory for what is proven, not for what a file is said to
/// have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proven {
    file: Geometry,
    blocks: BTreeMap<u32, Block>,
    /// Runs of segments that are zeros and never were written: the first of each, and the one behind
    /// it. They are proven and have no hashes.
    holes: BTreeMap<u32, u64>,
    missing: u64,
}

/// Segments of a file that nobody has ever written: they read as zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hole {
    /// The first of them.
    pub first: SegmentIndex,
    /// How many.
    pub count: u32,
}

type Block = Box<[Option<SegmentHash>]>;

/// Segments of a block.
const BLOCK: u32 = 256;

impl Proven {
    /// Nothing is proven yet.
    pub const fn nothing(file: Geometry) -> Self {
        Self { file, blocks: BTreeMap::new(), holes: BTreeMap::new(), missing: file.segments() }
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
        let is_new = block[(index.0 % BLOCK) as usize].replace(hash).is_none();
        if is_new && !self.is_hole(index) {
            self.missing -= 1;
        }
        true
    }

    /// Notes segments that are zeros; false if the file has no such segments, or if they do not lie
    /// behind all that were noted before.
    pub fn add_hole(&mut self, hole: Hole) -> bool {
        let (first, end) =
            (u64::from(hole.first.0), u64::from(hole.first.0) + u64::from(hole.count));
        let before = self.holes.values().next_back().copied().unwrap_or(0);
        if first < before || hole.count == 0 || end > self.file.segments() {
            return false;
        }
        // Those that were proven by their bytes are not missing.
        let blocks = self.blocks.range(hole.first.0 / BLOCK..);
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

    /// Whether some of it has no hash.
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Whether a segment is neither proven nor a hole.
    pub fn lacks(&self, index: SegmentIndex) -> bool {
        self.get(index).is_none() && !self.is_hole(index)
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

    /// Bytes that are proven and no hole.
    pub fn bytes(&self) -> u64 {
        let length = |(index, _)| self.file.range(index).map_or(0, |range| range.end - range.start);
        self.segments().map(length).sum()
    }

    /// The file's hash, once all of it is proven. For holes zeros are hashed: BLAKE3 counts its
    /// chunks, so that no two stretches of zeros have the same hash (section 2.1 of its paper), and a
    /// terabyte of them takes minutes.
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

    /// Segments with hashes, in order.
    fn segments(&self) -> impl Iterator<Item = (SegmentIndex, SegmentHash)> {
        self.blocks.iter().flat_map(|(&block, hashes)| indexed(block, hashes))
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
}

/// The proven segments of a block.
fn indexed(block: u32, hashes: &Block) -> impl Iterator<Item = (SegmentIndex, SegmentHash)> {
    let at = move |(at, hash): (u32, &Option<SegmentHash>)| {
        Some((SegmentIndex(block * BLOCK + at), (*hash)?))
    };
    (0..).zip(hashes.iter()).filter_map(at)
}

#[cfg(test)]
mod tests;
