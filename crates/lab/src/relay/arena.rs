//! Where the bytes in flight are kept.
//!
//! A path of 10 Gbit/s and 200 ms has 250 MB in flight, as four thousand super-packets or as two
//! hundred thousand small ones. Packets are laid end to end in blocks, which fits both; a block is
//! used again when its last packet has left.

use hikyaku_tun::{Pages, Tun};
use std::io;
use std::ops::Range;

const BLOCK: usize = Pages::LEN;

/// A pool of blocks.
#[derive(Debug)]
pub(crate) struct Arena {
    blocks: Vec<Block>,
    free: Vec<u32>,
    /// The block being filled, and how far it is.
    current: u32,
    cursor: usize,
    /// More blocks than this are refused: a link with an unlimited queue must not take the host's
    /// memory.
    most: usize,
}

#[derive(Debug)]
struct Block {
    bytes: Pages,
    /// How many slices point into it.
    live: u32,
}

/// Some bytes in the arena. Each one made must be released once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    block: u32,
    start: u32,
    len: u32,
}

impl Slice {
    /// No bytes; needs no release, and bears it.
    pub(crate) const EMPTY: Self = Self { block: 0, start: 0, len: 0 };

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

impl Arena {
    /// An arena that holds `expected` bytes without asking the system for more, and never more than
    /// `most`.
    pub(crate) fn new(expected: u64, most: u64) -> io::Result<Self> {
        let count = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX) / BLOCK + 1;
        let most = count(most).max(2);
        let blocks: io::Result<Vec<_>> =
            (0..count(expected).min(most)).map(|_| Block::new()).collect();
        let blocks = blocks?;
        let free = (1..blocks.len() as u32).rev().collect();
        Ok(Self { blocks, free, current: 0, cursor: 0, most })
    }

    /// Room for one packet of the largest size, to be taken with [`Self::commit`]. `None` if the
    /// arena is full.
    pub(crate) fn space(&mut self) -> Option<&mut [u8]> {
        self.ensure(Tun::LARGEST)?;
        Some(&mut self.blocks[self.current as usize].bytes[self.cursor..])
    }

    /// Takes the first `len` bytes of the last [`Self::space`].
    pub(crate) fn commit(&mut self, len: usize) -> Slice {
        if len == 0 {
            return Slice::EMPTY;
        }
        let slice = Slice { block: self.current, start: self.cursor as u32, len: len as u32 };
        self.blocks[self.current as usize].live += 1;
        // Cache lines are not shared between packets.
        self.cursor = (self.cursor + len).next_multiple_of(64).min(BLOCK);
        slice
    }

    /// A copy of `bytes`, which are no more than a packet.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Option<Slice> {
        self.ensure(bytes.len())?;
        let block = &mut self.blocks[self.current as usize];
        block.bytes[self.cursor..self.cursor + bytes.len()].copy_from_slice(bytes);
        Some(self.commit(bytes.len()))
    }

    /// A part of `slice`, which lives on by itself.
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

    /// Ends the life of `slice`.
    #[inline]
    pub(crate) fn release(&mut self, slice: Slice) {
        if slice.is_empty() {
            return;
        }
        let block = &mut self.blocks[slice.block as usize];
        block.live -= 1;
        if block.live == 0 {
            if slice.block == self.current {
                // The memory just read is still in the cache.
                self.cursor = 0;
            } else {
                self.free.push(slice.block);
            }
        }
    }

    fn ensure(&mut self, len: usize) -> Option<()> {
        if self.cursor + len <= BLOCK {
            return Some(());
        }
        let next = match self.free.pop() {
            Some(next) => next,
            None if self.blocks.len() < self.most => {
                self.blocks.push(Block::new().ok()?);
                self.blocks.len() as u32 - 1
            }
            None => return None,
        };
        // The full block is live: had its last slice been released, the cursor would be at zero.
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
    fn blocks_are_used_again() {
        let mut arena = Arena::new(0, 3 * BLOCK as u64).unwrap();
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
    fn a_full_arena_refuses() {
        let mut arena = Arena::new(0, 0).unwrap();
        let kept: Vec<_> = std::iter::from_fn(|| arena.put(&[7; 65_536])).collect();
        assert_eq!(kept.len(), 2 * BLOCK / 65_536);
        kept.into_iter().for_each(|slice| arena.release(slice));
        assert!(arena.space().is_some());
    }

    #[test]
    fn parts_keep_their_block() {
        let mut arena = Arena::new(0, 0).unwrap();
        let whole = arena.put(&[1, 2, 3, 4]).unwrap();
        let part = arena.part(whole, 1..3);
        arena.release(whole);
        arena.put(&[9; 100]).unwrap();
        assert_eq!(arena.get(part), [2, 3]);
    }
}
