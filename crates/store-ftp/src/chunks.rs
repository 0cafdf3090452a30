//! The chunks of a file, as a channel requests them.
//!
//! The next chunk is requested before the last one is complete, so that the server begins it without waiting for the client.
//! While the number of connections is searched, the decision on the next chunk needs the goodput of the last one. That is
//! measured shortly before its end, from the same instant as the whole chunk: at least half of its bytes, and all but what
//! the path carries in about three round trips. A final number needs no measurement.

use crate::missing::Missing;
use crate::tuning::{Measured, Tuning};
use hikyaku_gridftp::{Part, Plan, Progress, Transferred, Wanted};
use hikyaku_transfer::SEGMENT;
use hikyaku_tuner::Decision;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// A connection is not worth opening for fewer bytes than these: those of one block of a server.
const CONNECTION_BYTES_MIN: u64 = 256 << 10;
/// The next chunk is requested this number of round trips before the expected end of the last one. One passes until the
/// server's first byte arrives; the others cover the error of the estimate.
pub(crate) const LEAD_ROUND_TRIPS: u32 = 3;
/// The least such time, for a path without delay: a server opens a file within it.
pub(crate) const LEAD_MIN: Duration = Duration::from_millis(30);

/// When the next chunk is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Foresight {
    /// Before the end of the last one, also while the number of connections is searched: this end sees its progress.
    Measured,
    /// Before the end of the last one if the number of connections is final.
    Final,
    /// After the end of the last one: the server has failed with two parts at once.
    None,
}

/// Receives each complete chunk: the decision that it followed, its bytes, and its transfer.
pub type Report<'r> = dyn Fn(&Decision, u64, &Transferred) + 'r;

/// The chunks of a file.
pub(crate) struct Chunks<'p, 's, F> {
    path: &'p [u8],
    with: F,
    tuning: &'s mut Tuning,
    missing: &'s mut Missing,
    foresight: Foresight,
    parts: Parts,
    /// Mean time from a command to its reply.
    rtt: Duration,
    report: &'s Report<'s>,
    /// Called with each complete chunk.
    done: &'s mut dyn FnMut(&Range<u64>),
    /// The missing bytes that were not requested.
    unasked: Missing,
    under_way: VecDeque<Chunk>,
    /// Bytes of the complete chunks.
    done_bytes: u64,
    /// A chunk that was requested before the end of another one is complete.
    has_worked_ahead: bool,
}

struct Chunk {
    range: Range<u64>,
    connections: u32,
    asked: Decision,
    /// It was requested before the end of the chunk before it.
    is_ahead: bool,
    /// The tuner has its measurement.
    is_learned: bool,
}

/// The parts of a file that one command may request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parts {
    /// The tuner chooses their sizes.
    Chunks,
    /// Segments: in stream mode consecutive ones need no command of their own, and a cut ends a request at any of them.
    Segments,
    /// The whole file.
    Whole,
}

/// Everything that a session has for its chunks.
pub(crate) struct Tools<'p, 's, F> {
    pub(crate) path: &'p [u8],
    pub(crate) with: F,
    pub(crate) tuning: &'s mut Tuning,
    pub(crate) foresight: Foresight,
    pub(crate) parts: Parts,
    /// Mean time from a command to its reply.
    pub(crate) rtt: Duration,
    pub(crate) report: &'s Report<'s>,
}

impl<'p, 's, F> Chunks<'p, 's, F> {
    /// The chunks of the `missing` bytes. `done` is called with each complete one.
    pub(crate) fn new(
        tools: Tools<'p, 's, F>,
        missing: &'s mut Missing,
        done: &'s mut dyn FnMut(&Range<u64>),
    ) -> Self {
        let Tools { path, with, tuning, foresight, parts, rtt, report } = tools;
        let (unasked, under_way) = (missing.clone(), VecDeque::new());
        let (done_bytes, has_worked_ahead) = (0, false);
        Self {
            path,
            with,
            tuning,
            missing,
            foresight,
            parts,
            rtt,
            report,
            done,
            unasked,
            under_way,
            done_bytes,
            has_worked_ahead,
        }
    }

    /// Bytes of the complete chunks.
    pub(crate) const fn done_bytes(&self) -> u64 {
        self.done_bytes
    }

    /// Whether more than one chunk is under way.
    pub(crate) fn is_ahead(&self) -> bool {
        self.under_way.len() > 1
    }

    /// Whether a chunk that was requested before the end of another one is complete.
    pub(crate) const fn has_worked_ahead(&self) -> bool {
        self.has_worked_ahead
    }

    /// Whether the next chunk is requested while the oldest one is under way.
    fn is_time(&mut self, progress: &Progress) -> bool {
        let Some(chunk) = self.under_way.front_mut() else { return true };
        // A number that this end has lowered is no measurement of the path.
        let is_tuned = chunk.connections == chunk.asked.n && !self.tuning.is_final();
        match self.foresight {
            Foresight::None => return false,
            Foresight::Final if is_tuned => return false,
            Foresight::Final | Foresight::Measured => {}
        }
        if !is_tuned {
            return true;
        }
        let length = chunk.range.end - chunk.range.start;
        let lead = self.rtt.saturating_mul(LEAD_ROUND_TRIPS).max(LEAD_MIN);
        if progress.bytes < length / 2 || time_left(length, progress) > lead {
            return false;
        }
        chunk.is_learned = true;
        self.tuning.learn(&Measured {
            bytes: progress.bytes,
            connections: progress.connections,
            elapsed: progress.elapsed,
            local_share: progress.local_share,
        });
        true
    }
}

impl<'p, F: Clone> Plan<'p, F> for Chunks<'p, '_, F> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<Wanted<'p, F>> {
        if self.is_ahead() || self.unasked.bytes() == 0 {
            return None;
        }
        if under_way.is_some_and(|progress| !self.is_time(progress)) {
            return None;
        }
        let asked = self.tuning.asked();
        let most = match self.parts {
            Parts::Chunks => self.tuning.chunk_bytes(),
            Parts::Segments => SEGMENT - self.unasked.begin() % SEGMENT,
            Parts::Whole => u64::MAX,
        };
        let range = self.unasked.next(most)?;
        let length = range.end - range.start;
        let worth = u32::try_from(length.div_ceil(CONNECTION_BYTES_MIN)).unwrap_or(u32::MAX);
        let connections = asked.n.min(worth).max(1);
        let part = Part { path: self.path, offset: range.start, length };
        self.unasked.remove(&range);
        let is_ahead = under_way.is_some();
        let is_learned = false;
        self.under_way.push_back(Chunk { range, connections, asked, is_ahead, is_learned });
        Some(Wanted { part, connections, with: self.with.clone() })
    }

    fn done(&mut self, done: &Transferred) {
        let Some(chunk) = self.under_way.pop_front() else { return };
        let length = chunk.range.end - chunk.range.start;
        self.missing.remove(&chunk.range);
        self.done_bytes += length;
        self.has_worked_ahead |= chunk.is_ahead;
        (self.report)(&chunk.asked, length, done);
        if !chunk.is_learned && chunk.connections == chunk.asked.n {
            self.tuning.learn(&Measured {
                bytes: length,
                connections: done.connections,
                elapsed: done.elapsed,
                local_share: done.local_share,
            });
        }
        (self.done)(&chunk.range);
    }
}

/// The expected time until the end of a part, by its goodput up to now.
pub(crate) fn time_left(length: u64, progress: &Progress) -> Duration {
    let left = length.saturating_sub(progress.bytes) as f64;
    let goodput = progress.bytes as f64 / progress.elapsed.as_secs_f64();
    Duration::try_from_secs_f64(left / goodput).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests;
