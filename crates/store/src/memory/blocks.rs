//! The bytes of a file in memory, with its holes.

use crate::store::Extent;
use std::collections::BTreeMap;
use std::ops::Range;

/// The granularity of holes.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// The bytes of a file in blocks. A missing block is a hole.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    length: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Blocks {
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let length = self.length.saturating_sub(at).min(into.len() as u64) as usize;
        for (range, number, begin) in pieces(at, length) {
            let into = &mut into[range];
            match self.blocks.get(&number) {
                Some(block) => into.copy_from_slice(&block[begin..begin + into.len()]),
                None => into.fill(0),
            }
        }
        length
    }

    /// The number of missing blocks in this range.
    pub(super) fn missing(&self, range: &Range<u64>) -> u64 {
        let blocks = range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES);
        blocks.clone().count() as u64 - self.blocks.range(blocks).count() as u64
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        for (range, number, begin) in pieces(at, bytes.len()) {
            let empty = || vec![0; BLOCK_BYTES as usize].into();
            let block = self.blocks.entry(number).or_insert_with(empty);
            block[begin..begin + range.len()].copy_from_slice(&bytes[range]);
        }
        self.length = self.length.max(at + bytes.len() as u64);
    }

    pub(super) fn set_length(&mut self, length: u64) {
        self.blocks.retain(|number, _| number * BLOCK_BYTES < length);
        if let Some(block) = self.blocks.get_mut(&(length / BLOCK_BYTES)) {
            block[(length % BLOCK_BYTES) as usize..].fill(0);
        }
        self.length = length;
    }

    pub(super) fn allocated(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    pub(super) fn extents(&self, range: Range<u64>) -> Vec<Extent> {
        let (mut all, mut at, end) = (Vec::new(), range.start, range.end.min(self.length));
        while at < end {
            let is_there = |at: u64| self.blocks.contains_key(&(at / BLOCK_BYTES));
            let (begin, is_data) = (at, is_there(at));
            while at < end && is_there(at) == is_data {
                at = (at / BLOCK_BYTES + 1) * BLOCK_BYTES;
            }
            let range = begin..at.min(end);
            all.push(if is_data { Extent::Data(range) } else { Extent::Hole(range) });
        }
        all
    }
}

/// Splits a range of `length` bytes from `at` at block boundaries. Each piece has its range in the
/// caller's buffer, its block, and its offset in the block.
fn pieces(at: u64, length: usize) -> impl Iterator<Item = (Range<usize>, u64, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let offset = at + done as u64;
        let begin = (offset % BLOCK_BYTES) as usize;
        let piece = done..(done + BLOCK_BYTES as usize - begin).min(length);
        done = piece.end;
        (!piece.is_empty()).then_some((piece, offset / BLOCK_BYTES, begin))
    })
}
