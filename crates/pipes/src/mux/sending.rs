//! The sending half of a stream.

use crate::error::WriteError;
use crate::frame::{Header, Kind};
use bytes::Bytes;
use hikyaku_proto::{CloseReason, StreamId};
use std::collections::VecDeque;
use std::task::{Context, Waker};

/// Bytes that wait to be written, and the credit for them.
#[derive(Debug)]
pub(crate) struct Sending {
    queue: VecDeque<Bytes>,
    queued: usize,
    /// The offset of the first byte in the queue.
    next: u64,
    /// The offset up to which the receiver has granted credit.
    limit: u64,
    stage: Stage,
    stopped: Option<u64>,
    is_listed: bool,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The application may write.
    Open,
    /// The application has finished the stream, or reset it with a code; the frame for that is not written yet.
    Finishing(Option<u64>),
    /// The finish frame is written.
    Finished,
    /// The receiver has confirmed that it has everything.
    Received,
    /// The application has reset the stream.
    Reset,
}

impl Sending {
    pub(super) const fn new(limit: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            queued: 0,
            next: 0,
            limit,
            stage: Stage::Open,
            stopped: None,
            is_listed: false,
            waker: None,
        }
    }

    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    pub(super) fn error(&self, end: Option<CloseReason>) -> Option<WriteError> {
        match (self.stopped, self.stage) {
            (Some(code), _) => Some(WriteError::Stopped(code)),
            (None, Stage::Open) => end.map(WriteError::Closed),
            (None, _) => Some(WriteError::Finished),
        }
    }

    pub(super) fn error_of_delivery(&self, end: Option<CloseReason>) -> Option<WriteError> {
        match (self.stopped, self.stage) {
            (Some(code), _) => Some(WriteError::Stopped(code)),
            (None, Stage::Reset) => Some(WriteError::Finished),
            (None, _) => end.map(WriteError::Closed),
        }
    }

    pub(super) fn is_received(&self) -> bool {
        self.stage == Stage::Received
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        self.queued += bytes.len();
        self.queue.push_back(bytes);
    }

    /// Ends the stream after what was written, with an error if there is a code.
    pub(super) fn finish(&mut self, code: Option<u64>) {
        if self.stage == Stage::Open {
            self.stage = Stage::Finishing(code);
        }
    }

    /// Resets the stream. Returns whether the peer must be informed.
    pub(super) fn reset(&mut self) -> bool {
        let is_new = matches!(self.stage, Stage::Open | Stage::Finishing(_) | Stage::Finished);
        if is_new {
            self.stage = Stage::Reset;
            self.clear();
        }
        is_new
    }

    fn clear(&mut self) {
        self.queue.clear();
        self.queued = 0;
        self.wake();
    }

    /// Handles the receiver's request to stop sending.
    pub(super) fn stop(&mut self, code: u64) {
        self.stopped = Some(code);
        self.clear();
    }

    pub(super) fn credit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    pub(super) fn received(&mut self) -> Result<(), String> {
        match self.stage {
            Stage::Finished => {
                self.stage = Stage::Received;
                self.wake();
                Ok(())
            }
            // The reset and the receiver's confirmation crossed.
            Stage::Reset => Ok(()),
            Stage::Open | Stage::Finishing(_) | Stage::Received => {
                Err("the peer has bytes that were not sent".to_owned())
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.stopped.is_some() || matches!(self.stage, Stage::Received | Stage::Reset)
    }

    fn may_send(&self) -> bool {
        let has_data = self.queued > 0 && self.next < self.limit;
        has_data || (self.queued == 0 && matches!(self.stage, Stage::Finishing(_)))
    }

    pub(super) const fn lacks_credit(&self) -> bool {
        self.queued > 0 && self.next >= self.limit
    }

    /// Whether the stream must be added to the list of those that can send.
    pub(super) fn becomes_ready(&mut self) -> bool {
        let is_new = !self.is_listed && self.may_send() && self.stopped.is_none();
        self.is_listed |= is_new;
        is_new
    }

    /// The next frame of the stream, which thereby leaves the list.
    pub(super) fn next(&mut self, id: StreamId, most: usize) -> Option<(Header, Bytes)> {
        self.is_listed = false;
        if !self.may_send() || self.stopped.is_some() {
            return None;
        }
        let Some(first) = self.queue.front_mut() else {
            let Stage::Finishing(code) = self.stage else { return None };
            self.stage = Stage::Finished;
            let end = Header::bare(Kind::Finish, id, self.next);
            return Some(match code {
                None => (end, Bytes::new()),
                Some(code) => {
                    let code = Bytes::copy_from_slice(&code.to_le_bytes());
                    (Header { kind: Kind::BreakOff, length: code.len(), ..end }, code)
                }
            });
        };
        let room = usize::try_from(self.limit - self.next).unwrap_or(usize::MAX);
        let length = first.len().min(most).min(room);
        let bytes = first.split_to(length);
        if first.is_empty() {
            self.queue.pop_front();
        }
        let header = Header { kind: Kind::Data, id, value: self.next, length };
        self.queued -= length;
        self.next += length as u64;
        self.wake();
        Some((header, bytes))
    }

    pub(super) fn set_waker(&mut self, context: &Context<'_>) {
        self.waker = Some(context.waker().clone());
    }

    pub(super) fn wake(&mut self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}
