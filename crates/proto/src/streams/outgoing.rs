//! A stream's sending half. It keeps bytes until they are acknowledged.

use super::schedule::Place;
use crate::ranges::RangeSet;
use alloc::collections::VecDeque;
use bytes::Bytes;
use hikyaku_wire::{Frame, StreamId};

/// The sending half of one stream.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Bytes that are not yet acknowledged, as the application wrote them. A piece is removed once
    /// all of it is acknowledged.
    pieces: VecDeque<Piece>,
    /// The offset of the next new byte to send.
    next: u64,
    /// Bytes written by the application.
    end: u64,
    /// The peer's limit, as an offset.
    limit: u64,
    acked: RangeSet,
    fin: Fin,
    ending: Ending,
    pub(crate) place: Place,
}

/// How the stream ends for the peer's application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// Normally.
    Clean,
    /// Abnormally after the last byte, with this code.
    Code(u64),
}

#[derive(Debug)]
struct Piece {
    offset: u64,
    bytes: Bytes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fin {
    Open,
    Wanted,
    Sent,
    Arrived,
}

impl Outgoing {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            pieces: VecDeque::new(),
            next: 0,
            end: 0,
            limit,
            acked: RangeSet::new(),
            fin: Fin::Open,
            ending: Ending::Clean,
            place: Place::default(),
        }
    }

    /// Appends bytes. They are ignored after the end.
    pub(crate) fn write(&mut self, bytes: Bytes) {
        if bytes.is_empty() || self.fin != Fin::Open {
            return;
        }
        let offset = self.end;
        self.end += bytes.len() as u64;
        self.pieces.push_back(Piece { offset, bytes });
    }

    /// Ends the stream after the bytes written so far.
    pub(crate) const fn finish(&mut self) {
        if matches!(self.fin, Fin::Open) {
            self.fin = Fin::Wanted;
        }
    }

    /// Ends the stream after the bytes written so far, with this code for the peer's application.
    pub(crate) const fn break_off(&mut self, code: u64) {
        if matches!(self.fin, Fin::Open) {
            self.fin = Fin::Wanted;
            self.ending = Ending::Code(code);
        }
    }

    /// Discards bytes that were not sent, so that the stream ends after the last byte that was.
    /// Returns its size; `None` if the peer has already been told a final size.
    pub(crate) fn cut(&mut self) -> Option<u64> {
        if !matches!(self.fin, Fin::Open | Fin::Wanted) {
            return None;
        }
        while let Some(piece) = self.pieces.back_mut() {
            if piece.offset < self.next {
                piece.bytes.truncate((self.next - piece.offset) as usize);
                break;
            }
            self.pieces.pop_back();
        }
        self.end = self.next;
        self.fin = Fin::Wanted;
        Some(self.end)
    }

    /// The frame with the final size, as soon as all bytes have been sent once.
    pub(crate) fn take_fin(&mut self, stream: StreamId) -> Option<Frame> {
        if self.fin != Fin::Wanted || self.next != self.end {
            return None;
        }
        self.fin = Fin::Sent;
        let size = self.end;
        Some(match self.ending {
            Ending::Clean => Frame::Fin { stream, size },
            Ending::Code(code) => Frame::ResetAt { stream, code, size },
        })
    }

    pub(crate) const fn set_limit(&mut self, limit: u64) {
        if limit > self.limit {
            self.limit = limit;
        }
    }

    /// New bytes that may be sent within the peer's limit: the offset and the number.
    pub(crate) fn sendable(&self) -> Option<(u64, u64)> {
        let end = self.end.min(self.limit);
        (self.next < end).then(|| (self.next, end - self.next))
    }

    /// Records that new bytes up to `offset` have been sent.
    pub(crate) const fn advance(&mut self, offset: u64) {
        self.next = offset;
    }

    /// Bytes written but not yet sent.
    pub(crate) const fn unsent(&self) -> u64 {
        self.end - self.next
    }

    /// A reader of the bytes from `offset`. Finding the position is a search through thousands of
    /// pieces, so one reader serves many packets.
    pub(crate) fn reader(&self, offset: u64) -> Reader<'_> {
        let at =
            self.pieces.partition_point(|piece| piece.offset + piece.bytes.len() as u64 <= offset);
        Reader { pieces: &self.pieces, at, offset }
    }

    /// Records that `offset..offset+len` is acknowledged, and removes pieces that are acknowledged
    /// completely.
    pub(crate) fn on_arrived(&mut self, offset: u64, len: u64) {
        self.acked.insert(offset, offset + len);
        let first =
            self.pieces.partition_point(|piece| piece.offset + piece.bytes.len() as u64 <= offset);
        let mut at = first;
        while let Some(piece) = self.pieces.get_mut(at) {
            if piece.offset >= offset + len {
                break;
            }
            let end = piece.offset + piece.bytes.len() as u64;
            if self.acked.contains(piece.offset, end) {
                self.pieces.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// The parts of `offset..offset+len` that are not acknowledged.
    pub(crate) fn missing(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.acked.gaps(offset, offset + len)
    }

    /// Records that a packet with the final size is acknowledged.
    pub(crate) const fn on_fin_arrived(&mut self) {
        if matches!(self.fin, Fin::Sent) {
            self.fin = Fin::Arrived;
        }
    }

    /// Whether all bytes and the final size are acknowledged.
    pub(crate) fn is_delivered(&self) -> bool {
        self.fin == Fin::Arrived && self.acked.prefix() == self.end
    }

    /// Bytes sent at least once, which is what the peer's flow control counts.
    pub(crate) const fn sent(&self) -> u64 {
        self.next
    }
}

/// Reads consecutive bytes of a stream's pieces.
pub(crate) struct Reader<'a> {
    pieces: &'a VecDeque<Piece>,
    at: usize,
    offset: u64,
}

impl Reader<'_> {
    /// Copies the next bytes into `out`. Returns false if they are no longer kept.
    pub(crate) fn copy(&mut self, out: &mut [u8]) -> bool {
        let mut done = 0;
        while done < out.len() {
            let Some(piece) = self.pieces.get(self.at).filter(|piece| piece.offset <= self.offset)
            else {
                return false;
            };
            let rest = &piece.bytes[(self.offset - piece.offset) as usize..];
            let n = rest.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&rest[..n]);
            done += n;
            self.offset += n as u64;
            if n == rest.len() {
                self.at += 1;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
