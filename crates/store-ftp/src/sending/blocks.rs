//! Extended block mode: blocks in any order. Blocks that follow each other are one part (`queue`), and the server confirms each
//! part. Parts stay in memory until then, and are sent again when a connection is lost.
//!
//! As many parts are under way as the path carries, so that no connection waits for a confirmation. The number of connections
//! changes while the upload runs, or from chunk to chunk.

mod chunked;
mod queue;
mod steered;

use super::{Block, Confirmed, Piece};
use crate::ftp::Ftp;
use chunked::Chunked;
use hikyaku_gridftp::{FtpError, Part, Plan, Progress, Traffic, Transferred, Upload, Wanted};
use queue::Queue;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use steered::Steered;

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

/// Whether a part is requested while another one is under way.
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
            queue: Queue::new(from),
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
            self.queue.again(piece);
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
        let ahead = if under_way.is_some() { Ahead::Yes } else { Ahead::No };
        if ahead == Ahead::Yes && !self.has_room() {
            return None;
        }
        let connections = match &mut self.number {
            Number::Chunked(chunked) => chunked.connections()?,
            Number::Steered(steered) => steered.connections(),
        };
        let piece = self.queue.next(ahead, self.confirmed.awaited())?;
        let (offset, length, bytes) = (piece.offset, piece.length(), Arc::clone(&piece.bytes));
        if let Number::Chunked(chunked) = &mut self.number {
            chunked.add(length);
        }
        self.under_way.push_back((piece, ahead));
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
        self.confirmed.add(piece.numbers);
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
