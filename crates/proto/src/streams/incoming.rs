//! A stream's receiving half: order restored for ordered streams, each byte once for all.

use crate::error::Violation;
use crate::ranges::RangeSet;
use crate::run::Run;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use hikyaku_wire::{StreamId, StreamKind};

/// A part of a stream for the application.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its place in the stream.
    pub offset: u64,
    /// Its bytes.
    pub run: Run,
}

/// The receiving half of one stream.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) id: StreamId,
    received: RangeSet,
    /// Ordered streams: what waits for a hole before it to be filled.
    waiting: BTreeMap<u64, Run>,
    ready: VecDeque<Delivery>,
    /// Next byte to deliver in order.
    next: u64,
    highest: u64,
    size: Option<u64>,
    ended: bool,
    /// Bytes taken by the application.
    consumed: u64,
    limit: u64,
    held: u64,
    /// Bytes handed to the application.
    polled: u64,
    purpose: Purpose,
}

/// Pieces that wait for others, or for the application. The largest window holds a third as many full
/// packets, and of tiny ones that continue each other [`Run::absorb`] makes fewer: more of them have holes
/// between them, which no honest sender makes.
const MOST_PIECES: usize = 1 << 20;

/// What becomes of a stream's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Deliver,
    /// The application wants no more of them; they only count for flow control.
    Discard,
}

impl Incoming {
    pub(crate) const fn new(id: StreamId, limit: u64) -> Self {
        Self {
            id,
            received: RangeSet::new(),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            next: 0,
            highest: 0,
            size: None,
            ended: false,
            consumed: 0,
            limit,
            held: 0,
            polled: 0,
            purpose: Purpose::Deliver,
        }
    }

    /// Takes `run` at `offset`; gives by how much the stream's highest byte grew.
    pub(crate) fn on_data(&mut self, offset: u64, run: Run) -> Result<u64, Violation> {
        let end = offset + run.len() as u64;
        if end > self.limit {
            return Err(Violation::flow_control("more stream data than allowed"));
        }
        if self.size.is_some_and(|size| end > size) {
            return Err(Violation::protocol("data beyond the end of its stream"));
        }
        let grown = end.saturating_sub(self.highest);
        self.highest = self.highest.max(end);
        if self.purpose == Purpose::Discard {
            return Ok(grown);
        }
        if offset == self.next && self.waiting.is_empty() && self.id.kind() == StreamKind::Ordered {
            // In order with nothing missing: no bookkeeping beyond one range.
            self.received.insert(offset, end);
            self.deliver(offset, run);
            return Ok(grown);
        }
        if self.waiting.len().max(self.ready.len()) > MOST_PIECES {
            return Err(Violation::flow_control("a stream in too many pieces"));
        }
        let gaps: Vec<_> = self.received.gaps(offset, end).collect();
        for (from, to) in gaps {
            let mut part = run.clone();
            part.advance((from - offset) as usize);
            part.truncate((to - from) as usize);
            self.received.insert(from, to);
            self.place(from, part);
        }
        Ok(grown)
    }

    fn place(&mut self, offset: u64, run: Run) {
        match self.id.kind() {
            StreamKind::Object => self.deliver(offset, run),
            StreamKind::Ordered if offset > self.next => {
                self.held += run.len() as u64;
                self.keep(offset, run);
            }
            StreamKind::Ordered => {
                self.deliver(offset, run);
                while let Some(entry) = self.waiting.first_entry() {
                    if *entry.key() != self.next {
                        break;
                    }
                    let (offset, run) = entry.remove_entry();
                    self.held -= run.len() as u64;
                    self.deliver(offset, run);
                }
            }
        }
    }

    /// Lets `run` wait for what is missing before it.
    fn keep(&mut self, offset: u64, run: Run) {
        if let Some((&from, before)) = self.waiting.range_mut(..offset).next_back()
            && from + before.len() as u64 == offset
            && before.absorb(&run)
        {
            return;
        }
        self.waiting.insert(offset, run);
    }

    fn deliver(&mut self, offset: u64, run: Run) {
        self.next = offset + run.len() as u64;
        if let Some(last) = self.ready.back_mut()
            && last.offset + last.run.len() as u64 == offset
            && last.run.absorb(&run)
        {
            return;
        }
        self.ready.push_back(Delivery { offset, run });
    }

    /// The peer said where the stream ends.
    pub(crate) fn on_fin(&mut self, size: u64) -> Result<(), Violation> {
        if size < self.highest || self.size.is_some_and(|known| known != size) {
            return Err(Violation::protocol("a stream's end moved"));
        }
        self.size = Some(size);
        Ok(())
    }

    /// The application wants no more; gives the bytes that were not handed to it, for the credit.
    /// (Those that were it reports as consumed, read or not.)
    pub(crate) fn discard(&mut self) -> u64 {
        self.purpose = Purpose::Discard;
        self.waiting.clear();
        self.ready.clear();
        self.held = 0;
        self.highest - self.polled
    }

    pub(crate) fn is_discarding(&self) -> bool {
        self.purpose == Purpose::Discard
    }

    /// Whether nothing more can come of a discarded stream.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_discarding() && self.size == Some(self.highest)
    }

    /// The sender gave up after `size` bytes: gives by how much the highest byte grew, and the
    /// bytes that will never be taken.
    pub(crate) fn on_reset(&mut self, size: u64) -> Result<(u64, u64), Violation> {
        if size < self.highest || size > self.limit {
            return Err(Violation::protocol("a stream was reset to an impossible size"));
        }
        let grown = size - self.highest;
        let untaken = if self.is_discarding() { grown } else { size - self.polled };
        Ok((grown, untaken))
    }

    /// The next part for the application.
    pub(crate) fn poll(&mut self) -> Option<Delivery> {
        let delivery = self.ready.pop_front()?;
        self.polled += delivery.run.len() as u64;
        Some(delivery)
    }

    // spec: stream-2
    /// True once, when all bytes up to the FIN have been polled.
    pub(crate) fn poll_end(&mut self) -> bool {
        let over = !self.ended
            && self.ready.is_empty()
            && self.size.is_some_and(|size| self.received.prefix() == size);
        self.ended |= over;
        over
    }

    /// The application took `bytes`; gives the new limit if it is worth saying.
    pub(crate) const fn on_consumed(&mut self, bytes: u64, window: u64) -> Option<u64> {
        self.consumed += bytes;
        self.widen(window)
    }

    /// The limit under a window of `window` bytes, if it has grown by an eighth of it.
    pub(crate) const fn widen(&mut self, window: u64) -> Option<u64> {
        let limit = self.consumed + window;
        if self.size.is_none() && limit >= self.limit + window / 8 {
            self.limit = limit;
            Some(limit)
        } else {
            None
        }
    }

    /// Bytes that wait for holes before them.
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests;
