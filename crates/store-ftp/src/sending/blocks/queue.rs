//! The blocks of an upload that are in no part yet.
//!
//! Blocks come in any order, because several parts of a source are read at once. While a part is under way, blocks wait until
//! they fill another one, as Nagle's algorithm lets small writes wait (RFC 896). They do not wait for more if nothing is under
//! way, if the source has ended, if too many bytes wait, or if a caller waits for their confirmation: none waits for ever.

use super::{Ahead, Block, Piece};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Bytes of a part that is full.
const PART_BYTES: u64 = 4 << 20;
/// Bytes that wait to fill a part at most: four parts of a source are read at once.
const WAITING_BYTES_MAX: u64 = 4 * PART_BYTES;

/// The blocks that are not sent, or have to be sent again.
pub(super) struct Queue {
    from: Receiver<Block>,
    source: Source,
    /// Pieces that go before all others: those that a lost connection has not confirmed, and those of which a later block
    /// overwrites bytes.
    first: VecDeque<Piece>,
    /// Pieces by their offsets. They are disjoint and do not touch.
    waiting: BTreeMap<u64, Piece>,
}

/// Whether further blocks may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Open,
    Ended,
}

impl Queue {
    pub(super) fn new(from: Receiver<Block>) -> Self {
        let (first, waiting) = (VecDeque::new(), BTreeMap::new());
        Self { from, source: Source::Open, first, waiting }
    }

    /// A part has to be sent again, before all others.
    pub(super) fn again(&mut self, piece: Piece) {
        self.first.push_front(piece);
    }

    /// The next part. The confirmation of blocks with numbers below `awaited` is awaited. If no part is under way, the call waits
    /// for a block, and `None` is the end.
    pub(super) fn next(&mut self, ahead: Ahead, awaited: u64) -> Option<Piece> {
        if self.first.is_empty() && self.waiting.is_empty() && ahead == Ahead::No {
            let block = self.from.recv().ok()?;
            self.add(block);
        }
        while self.first.is_empty() && self.due(awaited).is_none() && !self.is_full() {
            match self.from.try_recv() {
                Ok(block) => self.add(block),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.source = Source::Ended;
                    break;
                }
            }
        }
        if let Some(piece) = self.first.pop_front() {
            return Some(piece);
        }
        let goes_at_once = ahead == Ahead::No || self.source == Source::Ended || self.is_full();
        let longest = || {
            let all = self.waiting.iter().rev();
            all.max_by_key(|(_, piece)| piece.length()).map(|(offset, _)| *offset)
        };
        let offset = self.due(awaited).or_else(|| longest().filter(|_| goes_at_once))?;
        self.waiting.remove(&offset)
    }

    /// A piece that does not wait for more.
    fn due(&self, awaited: u64) -> Option<u64> {
        let is_due = |piece: &Piece| {
            piece.length() >= PART_BYTES || piece.numbers.iter().any(|number| *number < awaited)
        };
        self.waiting.iter().find(|(_, piece)| is_due(piece)).map(|(offset, _)| *offset)
    }

    /// Whether no further block is taken before a piece has gone.
    fn is_full(&self) -> bool {
        self.waiting.values().map(Piece::length).sum::<u64>() >= WAITING_BYTES_MAX
    }

    fn add(&mut self, block: Block) {
        let mut piece = Piece::from(block);
        let (begin, end) = (piece.offset, piece.end());
        // The server stores the parts in their order, so that the later bytes stay.
        while let Some((&offset, before)) = self.waiting.range(..end).next_back()
            && before.end() > begin
        {
            self.first.extend(self.waiting.remove(&offset));
        }
        if let Some((&offset, before)) = self.waiting.range(..begin).next_back()
            && before.end() == begin
            && let Some(before) = self.waiting.remove(&offset)
        {
            piece = before.followed_by(piece);
        }
        if let Some(behind) = self.waiting.remove(&end) {
            piece = piece.followed_by(behind);
        }
        self.waiting.insert(piece.offset, piece);
    }
}

impl Piece {
    /// This piece and the one that begins at its end, as one.
    fn followed_by(mut self, other: Self) -> Self {
        Arc::make_mut(&mut self.bytes).extend_from_slice(&other.bytes);
        self.numbers.extend(other.numbers);
        self
    }
}

#[cfg(test)]
mod tests;
