//! The next work of a pipe's writer.

use super::Mux;
use super::pipes::PipeId;
use crate::connection::OnLoss;
use crate::frame::{DATA_BYTES_MAX, Header, Kind, REASON_BYTES_MAX, SHARED_DATA_BYTES_MAX};
use bytes::Bytes;
use hikyaku_proto::StreamId;
use std::time::{Duration, Instant};

/// The interval of pings, which measure the round-trip time and show the peer that this end is
/// alive.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// The next work of a pipe's writer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Task {
    /// Write this frame.
    Write(Header, Bytes),
    /// Write this last frame; the pipe ends after it.
    WriteLast(Header, Bytes),
    /// Wait until the mux changes or this time has passed.
    Wait(Duration),
    /// The pipe is lost, or the connection has ended without a close frame.
    End,
}

impl Mux {
    /// Whether the pipe can write a frame now.
    pub(crate) fn has_task(&self, pipe: PipeId, now: Instant) -> bool {
        let waits = !self.control.is_empty() || self.pipes.has_again(pipe);
        self.end.is_some()
            || !self.pipes.has(pipe)
            || (waits && self.pipes.may_take_control(pipe, now))
            || (!self.ready.is_empty() && self.pipes.may_take_data(pipe))
    }

    /// Whether pipes that wait must be woken: there is something to write, or they must look again earlier.
    pub(crate) fn take_news(&mut self) -> bool {
        self.take_new_timer()
            || self.end.is_some()
            || !self.control.is_empty()
            || !self.ready.is_empty()
            || self.pipes.has_any_again()
    }

    /// Whether pipes that wait must be woken, because they must look again earlier than they know. True once.
    pub(crate) const fn take_new_timer(&mut self) -> bool {
        self.pipes.take_new_timer()
    }

    /// When a pipe that has nothing to do must look again.
    pub(crate) fn look_again(&self, now: Instant) -> Duration {
        self.pipes.wait(now)
    }

    /// The next frame for a pipe, with a payload of at most `most` bytes.
    pub(crate) fn next_task(&mut self, pipe: PipeId, now: Instant, most: usize) -> Task {
        if self.end.is_some() {
            return self.last_task(pipe);
        }
        self.pipes.sweep(now, self.ready.is_empty());
        if !self.pipes.has(pipe) {
            return Task::End;
        }
        if let Some((header, bytes)) = self.pipes.confirmation(now) {
            return self.write(pipe, header, bytes, now);
        }
        if self.pipes.may_take_control(pipe, now) {
            if let Some((header, bytes)) = self.pipes.again(pipe, now) {
                return Task::Write(header, bytes);
            }
            if let Some((header, bytes)) = self.control.pop_front() {
                return self.write(pipe, header, bytes, now);
            }
        }
        while self.pipes.may_take_data(pipe)
            && let Some(id) = self.ready.pop_front()
        {
            let longest = match self.config.on_loss {
                OnLoss::End => DATA_BYTES_MAX,
                OnLoss::Repair => SHARED_DATA_BYTES_MAX,
            };
            if let Some((header, bytes)) = self.next_of(id, most.clamp(1, longest)) {
                return self.write(pipe, header, bytes, now);
            }
        }
        let look = self.pipes.wait(now);
        match self.pinged.map(|at| now.saturating_duration_since(at)) {
            Some(since) if since < PING_INTERVAL => {
                Task::Wait(PING_INTERVAL.saturating_sub(since).min(look))
            }
            _ => {
                self.pinged = Some(now);
                self.write(pipe, Header::bare(Kind::Ping, StreamId(0), 0), Bytes::new(), now)
            }
        }
    }

    fn write(&mut self, pipe: PipeId, header: Header, bytes: Bytes, now: Instant) -> Task {
        self.pipes.record(pipe, &header, &bytes, now);
        Task::Write(header, bytes)
    }

    /// The last frame of a pipe, if the peer does not know yet that the connection ends.
    fn last_task(&mut self, pipe: PipeId) -> Task {
        let Some((code, reason)) = &self.close_frame else { return Task::End };
        // One pipe is enough where each is safe. Otherwise the first one that ends would look lost to the peer.
        let is_first = !std::mem::replace(&mut self.has_said_close, true);
        let is_to_say = self.pipes.is_to_say_close(pipe);
        if !(is_first || (is_to_say && self.config.on_loss == OnLoss::Repair)) {
            return Task::End;
        }
        let mut end = reason.len().min(REASON_BYTES_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let payload = Bytes::copy_from_slice(&reason.as_bytes()[..end]);
        let length = payload.len();
        let header = Header { kind: Kind::Close, id: StreamId(0), value: *code, length };
        Task::WriteLast(header, payload)
    }

    fn next_of(&mut self, id: StreamId, most: usize) -> Option<(Header, Bytes)> {
        let sending = self.sending(id)?;
        let frame = sending.next(id, most);
        let (is_ready, lacks_credit) = (sending.becomes_ready(), sending.lacks_credit());
        if is_ready {
            self.ready.push_back(id);
        }
        self.lacks_credit = lacks_credit;
        self.forget_if_over(id);
        frame
    }
}
