//! Blocks of files in memory.
//!
//! A block that has arrived is unread until a reader takes it. Unread blocks are evicted last, because they were asked
//! for. Blocks that were read go by S3-FIFO (Yang et al., SOSP 2023): a small queue that a single reading passes
//! through, a main queue for blocks that were read again, and the names of blocks that have just left the small queue.

use crate::BLOCK_BYTES;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;

#[cfg(test)]
mod tests;

/// One version of one file. The caller does not use a number again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Content(pub u64);

/// Why a block is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// It is expected to be read.
    Ahead,
    /// A program waits for it.
    Fault,
}

/// Blocks of files within a budget of memory. `B` holds the bytes of a block and is cheap to clone.
///
/// Call [`ask`](Self::ask) for each block before it is requested, then [`put`](Self::put) or [`fail`](Self::fail) once
/// for each that `ask` returned.
#[derive(Debug)]
pub struct Pages<B> {
    blocks: BTreeMap<Key, Block<B>>,
    unread: VecDeque<Key>,
    small: VecDeque<Key>,
    main: VecDeque<Key>,
    /// Blocks that have left the small queue without a second read, oldest first, and the same as a set.
    ghosts: VecDeque<Key>,
    is_ghost: BTreeSet<Key>,
    budget: u64,
    small_bytes: u64,
    totals: PagesTotals,
}

/// Sums over all blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PagesTotals {
    /// Bytes of present blocks.
    pub here_bytes: u64,
    /// Bytes of present blocks that no program has read.
    pub unread_bytes: u64,
    /// Bytes of requested blocks, counted as whole blocks.
    pub asked_bytes: u64,
    /// Bytes of blocks that were evicted or dropped before a program had read them.
    pub wasted_bytes: u64,
}

/// The result for a block that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// The block is present.
    Here,
    /// The block was not requested, or its file has been dropped.
    Unwanted,
}

type Key = (Content, u64);

#[derive(Debug)]
enum Block<B> {
    Asked(Class),
    Here { bytes: B, length: u64, place: Queue, uses: u8 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    Unread,
    Small,
    Main,
}

/// Reads of a block beyond this count do not keep it longer.
const USES_MAX: u8 = 3;
/// The small queue has this part of the budget.
const SMALL_PART: u64 = 10;

impl<B: Clone> Pages<B> {
    /// No blocks, and memory for `budget` bytes of them.
    pub const fn new(budget: u64) -> Self {
        Self {
            blocks: BTreeMap::new(),
            unread: VecDeque::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            is_ghost: BTreeSet::new(),
            budget,
            small_bytes: 0,
            totals: PagesTotals { here_bytes: 0, unread_bytes: 0, asked_bytes: 0, wasted_bytes: 0 },
        }
    }

    /// Sums over all blocks.
    pub const fn totals(&self) -> PagesTotals {
        self.totals
    }

    /// Bytes that may still be asked for ahead: unread and asked blocks have at most half of the budget.
    pub const fn room_ahead(&self) -> u64 {
        let taken = self.totals.unread_bytes + self.totals.asked_bytes;
        (self.budget / 2).saturating_sub(taken)
    }

    /// The blocks of `wanted` that are absent; they count as asked for from here on. One that is asked for already is
    /// raised to `class` if that is higher.
    pub fn ask(&mut self, content: Content, wanted: Range<u64>, class: Class) -> Vec<u64> {
        let mut absent = Vec::new();
        for index in wanted {
            match self.blocks.get_mut(&(content, index)) {
                None => absent.push(index),
                Some(Block::Asked(asked)) => *asked = class.max(*asked),
                Some(Block::Here { .. }) => {}
            }
        }
        for &index in &absent {
            self.blocks.insert((content, index), Block::Asked(class));
        }
        self.totals.asked_bytes += absent.len() as u64 * BLOCK_BYTES;
        absent
    }

    /// Whether a block is neither here nor asked for.
    pub fn is_absent(&self, content: Content, index: u64) -> bool {
        !self.blocks.contains_key(&(content, index))
    }

    /// The class in which a block is asked for, if it is.
    pub fn asked(&self, content: Content, index: u64) -> Option<Class> {
        match self.blocks.get(&(content, index)) {
            Some(Block::Asked(class)) => Some(*class),
            _ => None,
        }
    }

    /// A block of `length` bytes has arrived.
    pub fn put(&mut self, content: Content, index: u64, bytes: B, length: u64) -> Put {
        let key = (content, index);
        if self.asked(content, index).is_none() {
            return Put::Unwanted;
        }
        self.totals.asked_bytes -= BLOCK_BYTES;
        self.make_room(length);
        let place = Queue::Unread;
        self.blocks.insert(key, Block::Here { bytes, length, place, uses: 0 });
        self.unread.push_back(key);
        self.totals.here_bytes += length;
        self.totals.unread_bytes += length;
        Put::Here
    }

    /// A block that was asked for will not come; it is absent again.
    pub fn fail(&mut self, content: Content, index: u64) {
        if self.asked(content, index).is_some() {
            self.blocks.remove(&(content, index));
            self.totals.asked_bytes -= BLOCK_BYTES;
        }
    }

    /// A block, for a reader; `None` if it is not here.
    pub fn read(&mut self, content: Content, index: u64) -> Option<B> {
        let key = (content, index);
        let Some(Block::Here { bytes, length, place, uses }) = self.blocks.get_mut(&key) else {
            return None;
        };
        match place {
            Queue::Unread if self.is_ghost.remove(&key) => {
                *place = Queue::Main;
                self.main.push_back(key);
                self.totals.unread_bytes -= *length;
            }
            Queue::Unread => {
                *place = Queue::Small;
                self.small.push_back(key);
                self.small_bytes += *length;
                self.totals.unread_bytes -= *length;
            }
            Queue::Small | Queue::Main => *uses = USES_MAX.min(*uses + 1),
        }
        Some(bytes.clone())
    }

    /// Whether all these blocks are here.
    pub fn has(&self, content: Content, wanted: Range<u64>) -> bool {
        let is_here =
            |index| matches!(self.blocks.get(&(content, index)), Some(Block::Here { .. }));
        wanted.into_iter().all(is_here)
    }

    /// No program reads the file any more: its unread blocks may be evicted like those that were read.
    pub fn abandon(&mut self, content: Content) {
        for (&key, block) in self.blocks.range_mut((content, 0)..=(content, u64::MAX)) {
            if let Block::Here { length, place: place @ Queue::Unread, .. } = block {
                *place = Queue::Small;
                self.small.push_back(key);
                self.small_bytes += *length;
                self.totals.unread_bytes -= *length;
                self.totals.wasted_bytes += *length;
            }
        }
    }

    /// Forgets a content. Blocks of it that are asked for are unwanted when they arrive.
    pub fn drop_content(&mut self, content: Content) {
        let all = self.blocks.range((content, 0)..=(content, u64::MAX));
        let keys: Vec<Key> = all.map(|(&key, _)| key).collect();
        for key in keys {
            match self.blocks.get(&key) {
                Some(Block::Asked(_)) => self.fail(key.0, key.1),
                _ => self.evict(key),
            }
        }
    }

    /// Evicts until there is room for `length` bytes more, or nothing is left that may go.
    fn make_room(&mut self, length: u64) {
        while self.totals.here_bytes + self.totals.asked_bytes + length > self.budget {
            let is_small_full = self.small_bytes > self.budget / SMALL_PART;
            let from_small = is_small_full || self.main.is_empty();
            let is_done = match (from_small, self.small.is_empty(), self.main.is_empty()) {
                (true, false, _) | (false, false, true) => self.pop_small(),
                (_, _, false) => self.pop_main(),
                (_, true, true) => self.pop_unread(),
            };
            if !is_done {
                return;
            }
        }
    }

    fn pop_small(&mut self) -> bool {
        let Some(key) = self.small.pop_front() else { return false };
        match self.blocks.get_mut(&key) {
            Some(Block::Here { length, place: place @ Queue::Small, uses, .. }) if *uses > 0 => {
                *place = Queue::Main;
                *uses = 0;
                self.small_bytes -= *length;
                self.main.push_back(key);
            }
            Some(Block::Here { place: Queue::Small, .. }) => {
                self.evict(key);
                self.remember(key);
            }
            // It was dropped, or has come again since.
            _ => {}
        }
        true
    }

    fn pop_main(&mut self) -> bool {
        let Some(key) = self.main.pop_front() else { return false };
        match self.blocks.get_mut(&key) {
            Some(Block::Here { place: Queue::Main, uses, .. }) if *uses > 0 => {
                *uses -= 1;
                self.main.push_back(key);
            }
            Some(Block::Here { place: Queue::Main, .. }) => self.evict(key),
            _ => {}
        }
        true
    }

    fn pop_unread(&mut self) -> bool {
        let Some(key) = self.unread.pop_front() else { return false };
        if let Some(Block::Here { place: Queue::Unread, .. }) = self.blocks.get(&key) {
            self.evict(key);
        }
        true
    }

    fn evict(&mut self, key: Key) {
        if let Some(Block::Here { length, place, .. }) = self.blocks.remove(&key) {
            self.totals.here_bytes -= length;
            match place {
                Queue::Unread => {
                    self.totals.unread_bytes -= length;
                    self.totals.wasted_bytes += length;
                }
                Queue::Small => self.small_bytes -= length,
                Queue::Main => {}
            }
        }
        // Names of unread blocks that were read long ago.
        if self.unread.len() > 2 * self.blocks.len() + 64 {
            let blocks = &self.blocks;
            self.unread.retain(|key| {
                matches!(blocks.get(key), Some(Block::Here { place: Queue::Unread, .. }))
            });
        }
    }

    /// Remembers that a block has left the small queue, for as many blocks as the budget has.
    fn remember(&mut self, key: Key) {
        if self.is_ghost.insert(key) {
            self.ghosts.push_back(key);
        }
        while self.ghosts.len() as u64 > self.budget / BLOCK_BYTES {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.is_ghost.remove(&oldest);
            }
        }
    }
}
