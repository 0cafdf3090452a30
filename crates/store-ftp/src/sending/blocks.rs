//! Extended block mode: blocks in any order. Those that wait and follow each other are one part, and the server confirms each
//! part. Parts stay in memory until then, and are sent again when a connection is lost.
//!
//! As many parts are under way as the path carries, so that no connection waits for a confirmation. The number of connections
//! changes while the upload runs, or from chunk to chunk.

mod chunked;
mod steered;

use super::{Block, Confirmed, Piece, next_of};
use crate::ftp::Ftp;
use chunked::Chunked;
use hikyaku_gridftp::{FtpError, Part, Plan, Progress, Traffic, Transferred, Upload, Wanted};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use steered::Steered;

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
    queue: Queue,
    /// Parts that are not confirmed, and whether each was requested while another was under way.
    under_way: VecDeque<(Piece, Ahead)>,
    confirmed: &'p Confirmed,
    done_bytes: u64,
    number: Number<'p>,
    /// A part that was requested while another was under way is confirmed.
    has_worked_ahead: bool,
}

/// The rule for the number of connections.
enum Number<'p> {
    Chunked(Chunked<'p>),
    Steered(Steered<'p>),
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
            queue: Queue { from, next: None, again: VecDeque::new() },
            under_way: VecDeque::new(),
            confirmed,
            done_bytes: 0,
            number: match ftp.steering_of_uploads() {
                Some(steering) => {
                    Number::Steered(Steered::new(ftp, steering.join(), connections_max))
                }
                None => Number::Chunked(Chunked::new(ftp, connections_max)),
            },
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
        match self.number {
            Number::Chunked(chunked) => chunked.end(),
            Number::Steered(steered) => steered.end(),
        }
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
        if let Number::Chunked(chunked) = &mut self.number {
            chunked.all_again();
        }
    }

    /// Whether another part may be under way.
    fn has_room(&self) -> bool {
        let bytes: u64 = self.under_way.iter().map(|(piece, _)| piece.length()).sum();
        let time = self.ftp.traits().rtt + STORING;
        let rate = match &self.number {
            Number::Chunked(chunked) => chunked.rate(),
            Number::Steered(steered) => steered.rate(),
        };
        // Twice the bytes that the path carries, so that the rate can grow.
        let carried = (2.0 * rate * time.as_secs_f64()) as u64;
        let window = carried.clamp(WINDOW_BYTES.0, WINDOW_BYTES.1);
        self.ftp.works_ahead() && bytes < window && self.under_way.len() < PARTS_MAX
    }
}

impl<'p> Plan<'p, Upload<'p>> for Blocks<'p> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'p, Upload<'p>>> {
        let is_idle = under_way.is_none();
        if !is_idle && !self.has_room() {
            return None;
        }
        let connections = match &mut self.number {
            Number::Chunked(chunked) => chunked.connections()?,
            Number::Steered(steered) => steered.connections(),
        };
        let piece = self.queue.next(is_idle)?;
        let (offset, length, bytes) = (piece.offset, piece.length(), Arc::clone(&piece.bytes));
        if let Number::Chunked(chunked) = &mut self.number {
            chunked.add(length);
        }
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
        match &mut self.number {
            Number::Chunked(chunked) => chunked.done(length, done),
            Number::Steered(steered) => steered.done(length, done),
        }
    }

    fn steer(&mut self, traffic: &Traffic<'_>) -> Option<u32> {
        match &self.number {
            Number::Chunked(_) => None,
            Number::Steered(steered) => Some(steered.steer(traffic)),
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
