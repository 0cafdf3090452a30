//! A number of connections that is fixed, or that the tuner chooses chunk by chunk: the parts that follow one decision are a chunk,
//! and the tuner learns its goodput.

use crate::ftp::Ftp;
use crate::tuning::{Measured, Tuning};
use hikyaku_gridftp::Transferred;
use hikyaku_tuner::Decision;
use std::collections::VecDeque;
use std::time::Duration;

/// The chunks of an upload.
pub(super) struct Chunked<'p> {
    ftp: &'p Ftp,
    connections_max: u32,
    tuning: Tuning,
    chunks: VecDeque<Chunk>,
    /// Bytes in a second.
    rate: f64,
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

impl<'p> Chunked<'p> {
    pub(super) fn new(ftp: &'p Ftp, connections_max: u32) -> Self {
        let (tuning, chunks, rate) = (ftp.take_tuning(), VecDeque::new(), 0.0);
        Self { ftp, connections_max, tuning, chunks, rate }
    }

    /// Bytes in a second of the present chunk.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// The number of connections of the next part. `None` while the tuner waits for the measurement of the last chunk.
    pub(super) fn connections(&mut self) -> Option<u32> {
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
        self.chunks.back().map(|chunk| chunk.connections)
    }

    /// A part of the chunk is requested.
    pub(super) fn add(&mut self, length: u64) {
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.bytes += length;
        }
    }

    /// A part is confirmed.
    pub(super) fn done(&mut self, length: u64, done: &Transferred) {
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

    /// Parts that were not confirmed are sent again. Their measurements do not count.
    pub(super) fn all_again(&mut self) {
        self.chunks.clear();
    }

    /// The upload has ended.
    pub(super) fn end(mut self) {
        if let Some(chunk) = self.chunks.pop_front().filter(|chunk| chunk.done > 0) {
            self.learn(&chunk);
        }
        self.ftp.keep_tuning(self.tuning);
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
