//! Bounds on what a peer can make this end hold. Flow control bounds the bytes of streams.
//! `docs/internals/budgets.md` lists all bounds.

use super::input::Found;
use super::{Connection, Holdings, State};
use crate::error::Violation;

/// Maximum frames that wait to be sent or acknowledged; each packet with frames counts as one more.
/// With an honest peer and 1,024 streams of each kind there are 20,000 if all streams end within
/// one round trip, and an outage of a day leaves 90,000 unanswered probes. The maximum is 64 MB of
/// memory.
const MOST_FRAMES: usize = 1 << 18;
/// Bytes of receive window for each allowed piece of a stream. A piece takes about 200 bytes in
/// addition to its data. Small adjacent pieces are combined into pieces of at least this size, so
/// an honest peer stays below the limit.
const WINDOW_BYTES_PER_PIECE: u64 = 512;
/// Additional pieces allowed, because each lost packet divides a piece.
const ADDITIONAL_PIECES: u64 = 1 << 16;

impl Connection {
    /// Closes the connection with a peer that causes more and more frames and acknowledges none of
    /// them.
    // spec: ack-8
    pub(super) fn check_budget(&mut self) {
        if self.state != State::Established {
            // In this state only CLOSE is still sent.
            self.control.clear();
        } else if self.frames() > MOST_FRAMES {
            self.fail(&Violation::protocol("acknowledges nothing of what it asks for"));
        }
    }

    fn frames(&self) -> usize {
        self.control.len() + self.recovery.unacked_frames()
    }

    /// The maximum number of pieces of streams that wait for missing data or for the application.
    pub(super) fn most_pieces(&self) -> usize {
        let pieces =
            self.config.receive_window.bytes() / WINDOW_BYTES_PER_PIECE + ADDITIONAL_PIECES;
        usize::try_from(pieces).unwrap_or(usize::MAX)
    }

    pub(super) fn holdings(&self) -> Holdings {
        let (records, looks) = self.recovery.work();
        let (pieces, turns) = (self.streams.pieces, self.streams.readable.len());
        Holdings { records, looks, frames: self.frames(), pieces, turns }
    }

    /// The number of bytes in these parts of a buffer that have not arrived before. A buffer is not
    /// kept for the others. The parts are at most the 64 datagrams that the kernel puts into one
    /// buffer.
    pub(super) fn fresh(&self, runs: &[Found]) -> usize {
        let fresh = |(number, found): (usize, &Found)| {
            if runs[..number].iter().any(|before| before.overlaps(found)) {
                return 0;
            }
            match self.streams.incoming.get(&found.stream) {
                Some(incoming) => incoming.fresh(found.offset, found.shape.len as u64) as usize,
                None => found.shape.len,
            }
        };
        runs.iter().enumerate().map(fresh).sum()
    }
}
