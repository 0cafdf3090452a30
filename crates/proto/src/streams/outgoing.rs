//! A stream's sending half: bytes kept until they are known to have arrived.

use crate::ranges::RangeSet;
use alloc::collections::VecDeque;
use bytes::Bytes;

/// The sending half of one stream.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Bytes from `base` on, as the application gave them; `None` once a piece has arrived.
    pieces: VecDeque<Piece>,
    /// Next new byte to send.
    next: u64,
    /// Bytes written by the application.
    end: u64,
    /// The peer's limit.
    limit: u64,
    acked: RangeSet,
    fin: Fin,
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
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            pieces: VecDeque::new(),
            next: 0,
            end: 0,
            limit,
            acked: RangeSet::new(),
            fin: Fin::Open,
        }
    }

    /// Takes bytes at the end.
    pub(crate) fn write(&mut self, bytes: Bytes) {
        if bytes.is_empty() || self.fin != Fin::Open {
            return;
        }
        let offset = self.end;
        self.end += bytes.len() as u64;
        self.pieces.push_back(Piece { offset, bytes });
    }

    /// No more will be written.
    pub(crate) const fn finish(&mut self) {
        if matches!(self.fin, Fin::Open) {
            self.fin = Fin::Wanted;
        }
    }

    /// The FIN to send, once all bytes have been sent once.
    pub(crate) fn take_fin(&mut self) -> Option<u64> {
        let ready = self.fin == Fin::Wanted && self.next == self.end;
        ready.then(|| {
            self.fin = Fin::Sent;
            self.end
        })
    }

    pub(crate) const fn set_limit(&mut self, limit: u64) {
        if limit > self.limit {
            self.limit = limit;
        }
    }

    /// New bytes that may be sent: offset and how many, within the peer's limit.
    pub(crate) fn sendable(&self) -> Option<(u64, u64)> {
        let end = self.end.min(self.limit);
        (self.next < end).then(|| (self.next, end - self.next))
    }

    /// Says that new bytes up to `offset` have been sent.
    pub(crate) const fn advance(&mut self, offset: u64) {
        self.next = offset;
    }

    /// Bytes written but not yet sent.
    pub(crate) const fn unsent(&self) -> u64 {
        self.end - self.next
    }

    /// Reads bytes from `offset` on. To be found once for many packets: a window holds thousands of
    /// pieces.
    pub(crate) fn reader(&self, offset: u64) -> Reader<'_> {
        let at =
            self.pieces.partition_point(|piece| piece.offset + piece.bytes.len() as u64 <= offset);
        Reader { pieces: &self.pieces, at, offset }
    }

    /// `offset..offset+len` has arrived; pieces that have arrived whole are let go.
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

    /// The parts of `offset..offset+len` that have not arrived.
    pub(crate) fn missing(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.acked.gaps(offset, offset + len)
    }

    /// A packet with the FIN has arrived.
    pub(crate) const fn on_fin_arrived(&mut self) {
        if matches!(self.fin, Fin::Sent) {
            self.fin = Fin::Arrived;
        }
    }

    /// Whether everything has arrived, and the news of where it ends.
    pub(crate) fn is_delivered(&self) -> bool {
        self.fin == Fin::Arrived && self.acked.prefix() == self.end
    }

    /// Bytes sent at least once: what the peer's flow control has counted or will.
    pub(crate) const fn sent(&self) -> u64 {
        self.next
    }
}

/// Reads on through the pieces of a stream.
pub(crate) struct Reader<'a> {
    pieces: &'a VecDeque<Piece>,
    at: usize,
    offset: u64,
}

impl Reader<'_> {
    /// Copies the next bytes into `out`; false if they are no longer kept.
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
