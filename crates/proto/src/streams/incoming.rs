//! A stream's receiving half. It delivers each byte once, and in order for ordered streams.

use super::window::Window;
use crate::error::Violation;
use crate::ranges::RangeSet;
use crate::run::Run;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::{StreamId, StreamKind};

/// A part of a stream for the application.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its offset in the stream.
    pub offset: u64,
    /// Its bytes.
    pub run: Run,
}

/// The receiving half of one stream.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) id: StreamId,
    received: RangeSet,
    /// Ordered streams: bytes that wait for missing data before them.
    waiting: BTreeMap<u64, Run>,
    ready: VecDeque<Delivery>,
    /// The offset of the next byte to deliver in order.
    next: u64,
    highest: u64,
    size: Option<u64>,
    /// The code with which the sender ends the stream after `size` bytes.
    broken_off: Option<u64>,
    ended: bool,
    window: Window,
    /// Unread bytes at the last check of the reader, and bytes that it had read by then.
    last_check: (u64, u64),
    /// Since when the reader has read nothing although bytes were available.
    stalled: Option<Instant>,
    listed: Listed,
    held: u64,
    /// Bytes that have become available to the application, including those already read.
    available: u64,
    /// Bytes passed to the application.
    polled: u64,
    purpose: Purpose,
    turn: Turn,
}

/// Whether a stream is queued for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    None,
    Waits,
}

/// Whether a stream is among those whose readers are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listed {
    No,
    Yes,
}

/// The result of a check of a stream's reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReaderCheck {
    /// Bytes that wait to be read.
    pub(crate) unread: u64,
    /// Since when the reader has read nothing although bytes were available.
    pub(crate) stalled: Option<Instant>,
}

/// How a stream's bytes are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Deliver,
    /// The application stopped the stream; its bytes only count for flow control.
    Discard,
}

impl Incoming {
    pub(crate) const fn new(id: StreamId, window: Window) -> Self {
        Self {
            id,
            received: RangeSet::new(),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            next: 0,
            highest: 0,
            size: None,
            broken_off: None,
            ended: false,
            window,
            last_check: (0, 0),
            stalled: None,
            listed: Listed::No,
            held: 0,
            available: 0,
            polled: 0,
            purpose: Purpose::Deliver,
            turn: Turn::None,
        }
    }

    /// Handles `run` at `offset`. Returns by how much the stream's highest offset grew.
    pub(crate) fn on_data(&mut self, offset: u64, run: Run) -> Result<u64, Violation> {
        let end = offset + run.len() as u64;
        if end > self.window.limit() {
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
            // In order with nothing missing: only one range is updated.
            self.received.insert(offset, end);
            self.deliver(offset, run);
            return Ok(grown);
        }
        let gaps: Vec<_> = self.received.gaps(offset, end).collect();
        for (from, to) in gaps {
            let mut part = run.clone();
            part.advance((from - offset) as usize);
            part.truncate((to - from) as usize);
            // A small part is copied, so that it does not keep the whole buffer.
            if part.len() < run.len() / 2 {
                part = Run::copied(part.to_vec());
            }
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

    /// Stores `run` until the missing bytes before it arrive.
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
        self.available += run.len() as u64;
        if let Some(last) = self.ready.back_mut()
            && last.offset + last.run.len() as u64 == offset
            && last.run.absorb(&run)
        {
            return;
        }
        self.ready.push_back(Delivery { offset, run });
    }

    /// Handles the final size of the stream.
    pub(crate) fn on_fin(&mut self, size: u64) -> Result<(), Violation> {
        if size < self.highest || self.size.is_some_and(|known| known != size) {
            return Err(Violation::protocol("a stream's end moved"));
        }
        self.size = Some(size);
        Ok(())
    }

    /// Handles the final size of a stream that the peer ends abnormally, with the code.
    pub(crate) fn on_reset_at(&mut self, size: u64, code: u64) -> Result<(), Violation> {
        self.on_fin(size)?;
        self.broken_off.get_or_insert(code);
        Ok(())
    }

    /// The code with which the sender ended the stream abnormally, if it did.
    pub(crate) const fn broken_off(&self) -> Option<u64> {
        self.broken_off
    }

    /// Discards the stream's bytes. Returns the number of bytes that were not passed to the
    /// application, for the flow-control credit. (The application reports the others as consumed,
    /// whether it has read them or not.)
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

    /// Whether no more bytes of a discarded stream can arrive.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_discarding() && self.size == Some(self.highest)
    }

    /// Handles a reset by the sender after `size` bytes. Returns by how much the highest offset
    /// grew, and the number of bytes that will never be read.
    pub(crate) fn on_reset(&mut self, size: u64) -> Result<(u64, u64), Violation> {
        if size < self.highest || size > self.window.limit() {
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
    /// Returns true once, when all bytes up to the final size have been polled.
    pub(crate) fn poll_end(&mut self) -> bool {
        let over = !self.ended
            && self.ready.is_empty()
            && self.size.is_some_and(|size| self.received.prefix() == size);
        self.ended |= over;
        over
    }

    /// Records that the application read `bytes`. Returns the new limit if it has grown enough to
    /// be announced, with a window of at most `most`.
    pub(crate) fn on_consumed(
        &mut self,
        clock: (Instant, Duration),
        bytes: u64,
        most: u64,
    ) -> Option<u64> {
        let limit = self.window.on_read(clock, bytes, most);
        limit.filter(|_| self.size.is_none())
    }

    /// Records that the largest allowed window is `most`. Returns the new limit if it has grown
    /// enough to be announced.
    pub(crate) fn widen(&mut self, most: u64) -> Option<u64> {
        self.window.on_wider(most).filter(|_| self.size.is_none())
    }

    /// The stream's window: how far the peer may send ahead of the reader, in bytes.
    pub(crate) const fn window(&self) -> u64 {
        self.window.bytes()
    }

    /// Checks whether the reader has read anything since the last check.
    pub(crate) fn check_reader(&mut self, now: Instant) -> ReaderCheck {
        let read = self.window.read();
        let unread = self.available.saturating_sub(read);
        let (unread_before, read_before) = core::mem::replace(&mut self.last_check, (unread, read));
        let is_stalled = unread_before > 0 && read == read_before;
        self.stalled = if is_stalled { self.stalled.or(Some(now)) } else { None };
        ReaderCheck { unread, stalled: self.stalled }
    }

    /// Sets whether the stream's reader is checked. Returns the previous value.
    pub(crate) const fn set_listed(&mut self, listed: Listed) -> Listed {
        core::mem::replace(&mut self.listed, listed)
    }

    /// Bytes of `offset..offset+len` that have not arrived.
    pub(crate) fn fresh(&self, offset: u64, len: u64) -> u64 {
        let end = offset + len;
        if offset >= self.highest {
            return len;
        }
        self.received.gaps(offset, end).map(|(from, to)| to - from).sum()
    }

    /// The number of pieces that hold its bytes, and of ranges that record what has arrived.
    pub(crate) fn pieces(&self) -> usize {
        self.waiting.len() + self.ready.len() + self.received.len()
    }

    /// Sets whether the stream is queued for the application. Returns the previous value.
    pub(crate) const fn set_turn(&mut self, turn: Turn) -> Turn {
        core::mem::replace(&mut self.turn, turn)
    }

    /// Bytes that wait for missing data before them.
    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    pub(crate) const fn is_ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests;
