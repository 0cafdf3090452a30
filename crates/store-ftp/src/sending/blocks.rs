//! Extended block mode: blocks in any order. Those that wait and follow each other are one part, and the server confirms each
//! part. Parts stay in memory until then, and are sent again when a connection is lost.
//!
//! As many parts are under way as the path carries, so that no connection waits for a confirmation. The tuner chooses the
//! number of connections: the parts that follow one decision are a chunk, and the tuner learns its goodput.

use super::{Block, Confirmed, Piece, next_of};
use crate::ftp::Ftp;
use crate::tuning::{Measured, Tuning};
use hikyaku_gridftp::{FtpError, Part, Plan, Progress, Transferred, Upload, Wanted};
use hikyaku_tuner::Decision;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Bytes up to which waiting blocks are put together into a part.
const PART_BYTES_MAX: usize = 4 << 20;
/// Bytes of parts under way at least, and at most.
const WINDOW_BYTES: (u64, u64) = (32 << 20, 256 << 20);
/// Parts that the server is asked to store before it has confirmed the first of them.
const PARTS_MAX: usize = 64;
/// The time beside the round trip that a server takes for a part.
const STORING: Duration = Duration::from_millis(50);

/// The blocks of an upload.
pub(super) struct Blocks<'p> {
    ftp: &'p Ftp,
    path: &'p [u8],
    connections_max: u32,
    queue: Queue,
    /// Parts that are not confirmed, and whether each was requested while another was under way.
    under_way: VecDeque<(Piece, Ahead)>,
    confirmed: &'p Confirmed,
    done_bytes: u64,
    tuning: Tuning,
    chunks: VecDeque<Chunk>,
    /// Bytes in a second.
    rate: f64,
    /// A part that was requested while another was under way is confirmed.
    has_worked_ahead: bool,
}

/// The parts that are not sent, or have to be sent again.
struct Queue {
    from: Receiver<Block>,
    /// A block that was received and does not follow the last one.
    next: Option<Piece>,
    /// Parts that a lost connection has not confirmed.
    again: VecDeque<Piece>,
}

impl Queue {
    /// The next part: that of a lost connection, or the blocks that wait. While nothing is under way it waits for one.
    fn next(&mut self, is_idle: bool) -> Option<Piece> {
        if let Some(piece) = self.again.pop_front() {
            return Some(piece);
        }
        let first = self.next.take().or_else(|| match is_idle {
            true => next_of(&self.from),
            false => self.from.try_recv().ok().map(Piece::from),
        })?;
        let Piece { offset, bytes, mut blocks } = first;
        let mut bytes = Arc::unwrap_or_clone(bytes);
        while bytes.len() < PART_BYTES_MAX
            && let Ok((at, more)) = self.from.try_recv()
        {
            if at != offset + bytes.len() as u64 {
                self.next = Some(Piece::from((at, more)));
                break;
            }
            bytes.extend_from_slice(&more);
            blocks += 1;
        }
        Some(Piece { offset, bytes: Arc::new(bytes), blocks })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ahead {
    Yes,
    No,
}

/// The parts that follow one decision of the tuner.
struct Chunk {
    asked: Decision,
    connections: u32,
    /// Bytes that it has.
    bytes: u64,
    /// Whether it gets further parts.
    growth: Growth,
    done: u64,
    elapsed: Duration,
    /// Time of the connections that was spent at this end.
    local: f64,
    retransmitted: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Growth {
    Open,
    Closed,
}

impl<'p> Blocks<'p> {
    pub(super) fn new(
        ftp: &'p Ftp,
        (path, connections_max): (&'p [u8], u32),
        from: Receiver<Block>,
        confirmed: &'p Confirmed,
    ) -> Self {
        Self {
            ftp,
            path,
            connections_max,
            queue: Queue { from, next: None, again: VecDeque::new() },
            under_way: VecDeque::new(),
            confirmed,
            done_bytes: 0,
            tuning: ftp.take_tuning(),
            chunks: VecDeque::new(),
            rate: 0.0,
            has_worked_ahead: false,
        }
    }

    /// Sends all blocks.
    ///
    /// # Errors
    ///
    /// That of the last attempt.
    pub(super) fn send(mut self) -> Result<(), FtpError> {
        let ftp = self.ftp;
        let (counter, mut attempts) = (ftp.sent().counter(), ftp.attempts());
        let sent = loop {
            let before = self.done_bytes;
            let sent = ftp.with(|channel| channel.upload(&mut self, &counter.bytes));
            let Err(error) = sent else { break Ok(()) };
            counter.bytes.store(self.done_bytes, Ordering::Relaxed);
            if self.done_bytes > before {
                attempts.renew();
            }
            if self.fails_ahead(&error) {
                // An error that has another cause comes again.
                ftp.works_one_by_one();
            } else if let Err(error) = attempts.after(error) {
                break Err(error);
            }
            self.all_again();
        };
        if let Some(chunk) = self.chunks.pop_front().filter(|chunk| chunk.done > 0) {
            self.learn(&chunk);
        }
        ftp.keep_tuning(self.tuning);
        sent
    }

    /// Whether a server may have failed because it was asked for two parts at once.
    fn fails_ahead(&self, error: &FtpError) -> bool {
        let is_other = matches!(
            error,
            FtpError::Stopped | FtpError::Local(_) | FtpError::Refused { code: 550, .. }
        );
        let is_ahead = self.under_way.len() > 1 && !self.has_worked_ahead;
        is_ahead && !is_other && self.ftp.works_ahead()
    }

    /// Parts that were not confirmed are sent again. Their measurements do not count.
    fn all_again(&mut self) {
        while let Some((piece, _)) = self.under_way.pop_back() {
            self.queue.again.push_front(piece);
        }
        self.chunks.clear();
    }

    /// Whether another part may be under way.
    fn has_room(&self) -> bool {
        let bytes: u64 = self.under_way.iter().map(|(piece, _)| piece.length()).sum();
        let time = self.ftp.traits().rtt + STORING;
        // Twice the bytes that the path carries, so that the rate can grow.
        let carried = (2.0 * self.rate * time.as_secs_f64()) as u64;
        let window = carried.clamp(WINDOW_BYTES.0, WINDOW_BYTES.1);
        self.ftp.works_ahead() && bytes < window && self.under_way.len() < PARTS_MAX
    }

    /// Begins the chunk that the next part belongs to, unless it has begun. `None` while the tuner waits for the measurement of
    /// the last one.
    fn begin_chunk(&mut self) -> Option<()> {
        let limit = self.tuning.chunk_bytes();
        if let Some(last) = self.chunks.back_mut()
            && last.bytes >= limit
        {
            last.growth = Growth::Closed;
        }
        let is_open = self.chunks.back().is_some_and(|last| last.growth == Growth::Open);
        if !is_open {
            if !self.chunks.is_empty() && !self.tuning.is_final() {
                return None;
            }
            let asked = self.tuning.asked();
            self.chunks.push_back(Chunk {
                connections: asked.n.min(self.connections_max).max(1),
                asked,
                bytes: 0,
                growth: Growth::Open,
                done: 0,
                elapsed: Duration::ZERO,
                local: 0.0,
                retransmitted: None,
            });
        }
        Some(())
    }

    /// The tuner and the observer learn of a chunk.
    fn learn(&mut self, chunk: &Chunk) {
        let Chunk { asked, connections, done: bytes, elapsed, retransmitted, .. } = *chunk;
        let seconds = elapsed.as_secs_f64();
        let local_share = if seconds > 0.0 { chunk.local / seconds } else { 0.0 };
        let done = Transferred { connections, elapsed, local_share, retransmitted };
        self.ftp.observed(|observer| observer.chunk(&asked, bytes, &done));
        // A number that this end has lowered is no measurement of the path.
        if connections == asked.n {
            self.tuning.learn(&Measured { bytes, connections, elapsed, local_share });
        }
    }
}

impl<'p> Plan<'p, Upload<'p>> for Blocks<'p> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'p, Upload<'p>>> {
        let is_idle = under_way.is_none();
        if !is_idle && !self.has_room() {
            return None;
        }
        self.begin_chunk()?;
        let piece = self.queue.next(is_idle)?;
        let (offset, length, bytes) = (piece.offset, piece.length(), Arc::clone(&piece.bytes));
        let chunk = self.chunks.back_mut()?;
        chunk.bytes += length;
        let connections = chunk.connections;
        self.under_way.push_back((piece, if is_idle { Ahead::No } else { Ahead::Yes }));
        let part = Part { path: self.path, offset, length };
        let supply = move |at: u64, into: &mut [u8]| {
            let start = usize::try_from(at - offset).map_err(io::Error::other)?;
            into.copy_from_slice(&bytes[start..start + into.len()]);
            Ok(())
        };
        Some(Wanted { part, connections, with: Arc::new(supply) })
    }

    fn done(&mut self, done: &Transferred) {
        let Some((piece, ahead)) = self.under_way.pop_front() else { return };
        let length = piece.length();
        self.done_bytes += length;
        self.has_worked_ahead |= ahead == Ahead::Yes;
        self.confirmed.add(piece.blocks);
        let (limit, Some(chunk)) = (self.tuning.chunk_bytes(), self.chunks.front_mut()) else {
            return;
        };
        chunk.done += length;
        chunk.elapsed += done.elapsed;
        chunk.local += done.local_share * done.elapsed.as_secs_f64();
        let again = done.retransmitted.map(|count| chunk.retransmitted.unwrap_or(0) + count);
        chunk.retransmitted = again.or(chunk.retransmitted);
        let seconds = chunk.elapsed.as_secs_f64();
        if seconds > 0.0 {
            self.rate = chunk.done as f64 / seconds;
        }
        let is_full = chunk.growth == Growth::Closed || chunk.bytes >= limit;
        if is_full
            && chunk.done == chunk.bytes
            && let Some(chunk) = self.chunks.pop_front()
        {
            self.learn(&chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn waiting_blocks_that_follow_each_other_are_one_part() {
        const BLOCK: usize = PART_BYTES_MAX / 4;
        let (blocks, from) = sync_channel(16);
        for number in [0, 1, 2, 3, 4, 5, 9, 7] {
            blocks.send((number * BLOCK as u64, vec![number as u8; BLOCK])).unwrap();
        }
        drop(blocks);
        let mut queue = Queue { from, next: None, again: VecDeque::new() };
        let mut parts = Vec::new();
        while let Some(piece) = queue.next(true) {
            assert_eq!(u64::from(*piece.bytes.last().unwrap()), piece.end() / BLOCK as u64 - 1);
            parts.push((piece.offset / BLOCK as u64, piece.blocks));
        }
        assert_eq!(parts, [(0, 4), (4, 2), (9, 1), (7, 1)]);
    }
}
