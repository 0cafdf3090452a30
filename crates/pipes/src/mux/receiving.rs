//! The receiving half of a stream.

use super::pipes::FRAMES_UNCONFIRMED_MAX;
use crate::connection::OnLoss;
use hikyaku_proto::StreamKind;
use std::collections::BTreeMap;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// Ranges of a stream that may have arrived with gaps between them: twice as many as an honest sender's frames that are
/// not confirmed.
const RANGES_MAX: usize = 2 * FRAMES_UNCONFIRMED_MAX;

/// Bytes of a stream and their offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Bytes that have arrived and not been read, and the credit of the peer.
#[derive(Debug)]
pub(crate) struct Receiving {
    kind: StreamKind,
    /// Whether bytes may come twice, because a lost pipe may have delivered them.
    on_loss: OnLoss,
    parts: BTreeMap<u64, Vec<u8>>,
    /// If bytes may come twice: those that have arrived, as first offset and the one behind the last.
    ranges: BTreeMap<u64, u64>,
    /// Bytes that have arrived, each counted once.
    arrived: u64,
    /// Bytes that the application has read.
    taken: u64,
    /// The flow-control limit: the offset up to which the peer may send.
    limit: u64,
    /// The receive window: the distance that is kept between `taken` and `limit`.
    window: u64,
    /// The final size, once it is known.
    size: Option<u64>,
    reset: Option<u64>,
    /// The code with which the stream ends after its bytes, if it ends with an error.
    broken_off: Option<u64>,
    is_stopped: bool,
    has_said_all: bool,
    credited: Option<Instant>,
    waker: Option<Waker>,
}

impl Receiving {
    pub(super) const fn new(kind: StreamKind, window: u64, on_loss: OnLoss) -> Self {
        Self {
            kind,
            on_loss,
            parts: BTreeMap::new(),
            ranges: BTreeMap::new(),
            arrived: 0,
            taken: 0,
            limit: window,
            window,
            size: None,
            reset: None,
            broken_off: None,
            is_stopped: false,
            has_said_all: false,
            credited: None,
            waker: None,
        }
    }

    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    /// Bytes that are held for the application.
    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.parts.values().map(|part| part.len() as u64).sum()
    }

    /// Handles data of the peer. It may arrive out of order over several pipes. It may arrive twice if lost pipes are
    /// repaired.
    pub(super) fn data(&mut self, offset: u64, bytes: Vec<u8>) -> Result<(), String> {
        let length = bytes.len() as u64;
        let end = offset.checked_add(length).ok_or("an offset that no stream has")?;
        if end > self.limit {
            return Err("more bytes than the credit allows".to_owned());
        }
        if self.size.is_some_and(|size| end > size) {
            return Err("bytes behind the end of a stream".to_owned());
        }
        if bytes.is_empty() {
            return Err("a frame without data".to_owned());
        }
        if self.on_loss == OnLoss::Repair && self.came_before(offset, end) {
            return Ok(());
        }
        let before = self.parts.range(..end).next_back();
        let overlaps = before.is_some_and(|(at, part)| at + part.len() as u64 > offset);
        if overlaps || (self.kind == StreamKind::Ordered && offset < self.taken) {
            return Err("bytes that came before".to_owned());
        }
        self.arrived += length;
        if self.arrived > self.limit {
            return Err("more bytes than the credit allows".to_owned());
        }
        if self.on_loss == OnLoss::Repair {
            self.note(offset, end)?;
        }
        if self.is_stopped || self.reset.is_some() {
            // The application has stopped the stream, so the bytes count as read.
            self.taken += length;
            return Ok(());
        }
        self.parts.insert(offset, bytes);
        self.wake();
        Ok(())
    }

    /// Whether all these bytes have arrived before.
    fn came_before(&self, offset: u64, end: u64) -> bool {
        let at = self.ranges.range(..=offset).next_back();
        at.is_some_and(|(_, &behind)| end <= behind)
    }

    /// Records that these bytes have arrived, of which none had.
    fn note(&mut self, offset: u64, end: u64) -> Result<(), String> {
        let before = self.ranges.range(..end).next_back().map(|(&from, &behind)| (from, behind));
        if before.is_some_and(|(_, behind)| behind > offset) {
            return Err("bytes that came before".to_owned());
        }
        let from = before.filter(|(_, behind)| *behind == offset).map_or(offset, |(from, _)| from);
        let behind = self.ranges.remove(&end).unwrap_or(end);
        self.ranges.insert(from, behind);
        match self.ranges.len() <= RANGES_MAX {
            true => Ok(()),
            false => Err("a stream in too many pieces".to_owned()),
        }
    }

    pub(super) fn finish(&mut self, size: u64) -> Result<(), String> {
        let last = self.parts.iter().next_back().map_or(0, |(at, part)| at + part.len() as u64);
        if size < last || size < self.arrived || self.size.is_some_and(|known| known != size) {
            return Err("a stream that ends before its bytes".to_owned());
        }
        self.size = Some(size);
        self.wake();
        Ok(())
    }

    /// The peer ended the stream at `size`, with an error.
    pub(super) fn break_off(&mut self, size: u64, code: u64) -> Result<(), String> {
        let is_again = self.on_loss == OnLoss::Repair && self.broken_off == Some(code);
        if self.size.is_some() && !is_again {
            return Err("a stream that ends twice".to_owned());
        }
        self.broken_off = Some(code);
        self.finish(size)
    }

    /// The code with which the stream ended after its bytes, if it ended with an error.
    pub(super) fn broken_off(&self) -> Option<u64> {
        self.broken_off.filter(|_| !self.is_stopped)
    }

    pub(super) fn reset(&mut self, code: u64) {
        self.reset = Some(code);
        self.parts.clear();
        self.wake();
    }

    /// Stops the stream. Returns whether the peer must be informed.
    pub(super) fn stop(&mut self) -> bool {
        let is_news = !self.is_stopped && self.reset.is_none() && !self.has_all();
        self.is_stopped = true;
        self.parts.clear();
        is_news
    }

    fn has_all(&self) -> bool {
        self.size == Some(self.arrived)
    }

    /// Returns true once, when all bytes have arrived and the peer has not been informed.
    pub(super) fn has_all_now(&mut self) -> bool {
        let is_news = self.has_all() && !self.has_said_all;
        self.has_said_all |= is_news;
        is_news
    }

    /// The next bytes to read, or the peer's code if it has reset the stream.
    pub(super) fn next(&mut self) -> Result<Option<Piece>, u64> {
        if let Some(code) = self.reset {
            return Err(code);
        }
        let Some(entry) = self.parts.first_entry() else { return Ok(None) };
        if self.kind == StreamKind::Ordered && *entry.key() != self.taken {
            return Ok(None);
        }
        let (offset, bytes) = entry.remove_entry();
        Ok(Some(Piece { offset, bytes }))
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_stopped || (self.parts.is_empty() && self.has_all())
    }

    /// Records that the application has read `bytes`. Returns the new limit if the peer must be
    /// informed, and by how much the window grew. It grows if the reader empties it within a few
    /// round trips, because it then limits the sender.
    pub(super) fn take(
        &mut self,
        length: u64,
        (round_trip, room, most): (Option<Duration>, u64, u64),
    ) -> Option<(u64, u64)> {
        self.taken += length;
        if self.size.is_some() || self.limit - self.taken > self.window / 2 {
            return None;
        }
        let now = Instant::now();
        let is_fast = match (self.credited, round_trip) {
            (Some(last), Some(round_trip)) => now.duration_since(last) < 4 * round_trip,
            _ => false,
        };
        let growth =
            if is_fast { self.window.min(room).min(most.saturating_sub(self.window)) } else { 0 };
        self.window += growth;
        self.credited = Some(now);
        self.limit = self.taken + self.window;
        Some((self.limit, growth))
    }

    pub(super) fn is_over(&self) -> bool {
        self.reset.is_some() || self.is_stopped || (self.has_all() && self.has_said_all)
    }

    pub(super) fn set_waker(&mut self, context: &Context<'_>) {
        self.waker = Some(context.waker().clone());
    }

    pub(super) fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}
