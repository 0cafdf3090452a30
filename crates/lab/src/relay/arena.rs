//! Memory for the bytes in flight.
//!
//! A path of 10 Gbit/s and 200 ms has 250 MB in flight, as four thousand super-packets or as two
//! hundred thousand small packets. Packets are stored one after another in blocks, which suits both
//! cases. A block is reused when the last packet in it has been released.

use hikyaku_tun::{Pages, Tun};
use std::io;
use std::ops::Range;

const BLOCK_BYTES: usize = Pages::LEN;

/// A pool of blocks.
#[derive(Debug)]
pub(crate) struct Arena {
    blocks: Vec<Block>,
    free: Vec<u32>,
    /// The block being filled, and the position in it.
    current: u32,
    cursor: usize,
    /// Limit on the number of blocks, so that a link with an unlimited queue does not exhaust the
    /// memory of the machine.
    blocks_max: usize,
}

#[derive(Debug)]
struct Block {
    bytes: Pages,
    /// Number of slices that point into this block.
    live: u32,
}

/// A range of bytes in the arena. Every slice has to be released exactly once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    block: u32,
    start: u32,
    len: u32,
}

impl Slice {
    /// An empty slice. It need not be released, but may be.
    pub(crate) const EMPTY: Self = Self { block: 0, start: 0, len: 0 };

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

impl Arena {
    /// Creates an arena with memory for `expected` bytes; it grows up to `blocks_max` bytes.
    pub(crate) fn new(expected: u64, blocks_max: u64) -> io::Result<Self> {
        let count = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX) / BLOCK_BYTES + 1;
        let blocks_max = count(blocks_max).max(2);
        let blocks: io::Result<Vec<_>> =
            (0..count(expected).min(blocks_max)).map(|_| Block::new()).collect();
        let blocks = blocks?;
        let free = (1..blocks.len() as u32).rev().collect();
        Ok(Self { blocks, free, current: 0, cursor: 0, blocks_max })
    }

    /// Space for one packet of the largest size, which [`Self::commit`] then takes. `None` if the
    /// arena is full.
    pub(crate) fn space(&mut self) -> Option<&mut [u8]> {
        self.ensure(Tun::LARGEST)?;
        Some(&mut self.blocks[self.current as usize].bytes[self.cursor..])
    }

    /// Takes the first `len` bytes of the space returned by the last [`Self::space`].
    pub(crate) fn commit(&mut self, len: usize) -> Slice {
        if len == 0 {
            return Slice::EMPTY;
        }
        let slice = Slice { block: self.current, start: self.cursor as u32, len: len as u32 };
        self.blocks[self.current as usize].live += 1;
        // Aligned, so that two packets do not share a cache line.
        self.cursor = (self.cursor + len).next_multiple_of(64).min(BLOCK_BYTES);
        slice
    }

    /// Copies `bytes`, which must not be longer than a packet.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Option<Slice> {
        self.ensure(bytes.len())?;
        let block = &mut self.blocks[self.current as usize];
        block.bytes[self.cursor..self.cursor + bytes.len()].copy_from_slice(bytes);
        Some(self.commit(bytes.len()))
    }

    /// A part of `slice` as a slice of its own, which is released separately.
    pub(crate) fn part(&mut self, slice: Slice, range: Range<usize>) -> Slice {
        if range.is_empty() {
            return Slice::EMPTY;
        }
        debug_assert!(range.end <= slice.len());
        self.blocks[slice.block as usize].live += 1;
        let start = slice.start + range.start as u32;
        Slice { block: slice.block, start, len: range.len() as u32 }
    }

    #[inline]
    pub(crate) fn get(&self, slice: Slice) -> &[u8] {
        let start = slice.start as usize;
        &self.blocks[slice.block as usize].bytes[start..start + slice.len()]
    }

    /// Releases `slice`.
    #[inline]
    pub(crate) fn release(&mut self, slice: Slice) {
        if slice.is_empty() {
            return;
        }
        let block = &mut self.blocks[slice.block as usize];
        block.live -= 1;
        if block.live == 0 {
            if slice.block == self.current {
                // The block whose memory is still in the cache is reused first.
                self.cursor = 0;
            } else {
                self.free.push(slice.block);
            }
        }
    }

    fn ensure(&mut self, len: usize) -> Option<()> {
        if self.cursor + len <= BLOCK_BYTES {
            return Some(());
        }
        let next = match self.free.pop() {
            Some(next) => next,
            None if self.blocks.len() < self.blocks_max => {
                self.blocks.push(Block::new().ok()?);
                self.blocks.len() as u32 - 1
            }
            None => return None,
        };
        // The block that is full still has slices: otherwise the cursor would have been reset to
        // zero.
        self.current = next;
        self.cursor = 0;
        Some(())
    }
}

impl Block {
    fn new() -> io::Result<Self> {
        Ok(Self { bytes: Pages::new()?, live: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_block_is_reused() {
        let mut arena = Arena::new(0, 3 * BLOCK_BYTES as u64).unwrap();
        for round in 0..100u8 {
            let slices: Vec<_> =
                (0..60).map(|n| arena.put(&[round ^ n; 60_000]).unwrap()).collect();
            for (n, slice) in slices.iter().enumerate() {
                assert!(arena.get(*slice).iter().all(|byte| *byte == round ^ n as u8));
            }
            slices.into_iter().for_each(|slice| arena.release(slice));
        }
        assert!(arena.blocks.len() <= 3);
    }

    #[test]
    fn a_full_arena_returns_none() {
        let mut arena = Arena::new(0, 0).unwrap();
        let kept: Vec<_> = std::iter::from_fn(|| arena.put(&[7; 65_536])).collect();
        assert_eq!(kept.len(), 2 * BLOCK_BYTES / 65_536);
        kept.into_iter().for_each(|slice| arena.release(slice));
        assert!(arena.space().is_some());
    }

    #[test]
    fn a_part_keeps_its_block_in_use() {
        let mut arena = Arena::new(0, 0).unwrap();
        let whole = arena.put(&[1, 2, 3, 4]).unwrap();
        let part = arena.part(whole, 1..3);
        arena.release(whole);
        arena.put(&[9; 100]).unwrap();
        assert_eq!(arena.get(part), [2, 3]);
    }
}
