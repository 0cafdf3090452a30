//! The state of a connection, without I/O: the next frame to write, and the handling of the peer's
//! frames. The threads of the pipes and the handles of the application call it under one lock.

mod peer;
mod pipes;
mod receiving;
mod sending;
mod task;

use crate::connection::{Config, OnLoss};
use crate::error::{OpenError, ReadError, WriteError};
use crate::frame::{Header, Kind, TOKEN_BYTES};
use bytes::Bytes;
use hikyaku_proto::{CloseReason, Side, StreamId, StreamKind, code};
use pipes::Pipes;
pub(crate) use pipes::{Breaker, PipeId};
pub(crate) use receiving::Piece;
use receiving::Receiving;
use sending::Sending;
use std::collections::{HashMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
pub(crate) use task::Task;

/// Maximum bytes of one stream that the application has written and no pipe has taken yet.
const OUTBOX_BYTES_MAX: usize = 1 << 20;

/// The state of all streams.
#[derive(Debug)]
pub(crate) struct Mux {
    config: Config,
    side: Side,
    streams: HashMap<StreamId, StreamState>,
    /// The number of the next stream to open, by kind.
    next_index: [u32; 2],
    /// The numbers below which the peer has opened streams, by kind.
    peer_index: [u32; 2],
    unaccepted: [VecDeque<StreamId>; 2],
    on_opened: Vec<Waker>,
    /// The pipes, and what each has taken.
    pipes: Pipes,
    /// Frames that precede all data.
    control: VecDeque<(Header, Bytes)>,
    /// Streams that have data and credit. Each is listed at most once.
    ready: VecDeque<StreamId>,
    /// The sum of all receive windows.
    granted: u64,
    end: Option<CloseReason>,
    /// The close frame, if one has to be sent to the peer.
    close_frame: Option<(u64, String)>,
    has_said_close: bool,
    /// The token of the peer, with which further pipes can be added.
    token: Option<[u8; TOKEN_BYTES]>,
    end_wakers: Vec<Waker>,
    /// Tasks that wait to open a stream.
    open_wakers: Vec<Waker>,
    pinged: Option<Instant>,
    round_trip: Option<Duration>,
    /// Whether a stream had data and no credit at the last check.
    lacks_credit: bool,
}

/// One stream as this end sees it. A half that this end does not have is `None`.
#[derive(Debug)]
struct StreamState {
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    /// The number of the application's handles.
    handles: u8,
}

const fn index(kind: StreamKind) -> usize {
    match kind {
        StreamKind::Ordered => 0,
        StreamKind::Object => 1,
    }
}

impl Mux {
    pub(crate) fn new(side: Side, config: Config) -> Self {
        Self {
            pipes: Pipes::new(config.on_loss),
            config,
            side,
            streams: HashMap::new(),
            next_index: [0; 2],
            peer_index: [0; 2],
            unaccepted: Default::default(),
            on_opened: Vec::new(),
            control: VecDeque::new(),
            ready: VecDeque::new(),
            granted: 0,
            end: None,
            close_frame: None,
            has_said_close: false,
            token: None,
            end_wakers: Vec::new(),
            open_wakers: Vec::new(),
            pinged: None,
            round_trip: None,
            lacks_credit: false,
        }
    }

    const fn is_ours(&self, id: StreamId) -> bool {
        id.by_server() == matches!(self.side, Side::Server)
    }

    pub(crate) const fn end(&self) -> Option<&CloseReason> {
        self.end.as_ref()
    }

    pub(crate) const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    pub(crate) const fn lacks_credit(&self) -> bool {
        self.lacks_credit
    }

    /// Adds a pipe. Returns false if there is one of this number, or no room for one more.
    pub(crate) fn add_pipe(&mut self, id: PipeId, breaker: Option<Breaker>, now: Instant) -> bool {
        self.end.is_none() && self.pipes.add(id, breaker, now)
    }

    /// A pipe has ended or broken. Without another one, the connection ends for this reason.
    pub(crate) fn lose_pipe(&mut self, id: PipeId, reason: CloseReason) {
        if !self.pipes.lose(id) {
            self.fail(reason);
        }
    }

    pub(crate) const fn pipes(&self) -> usize {
        self.pipes.len()
    }

    /// Whether the connection ends with the pipe.
    pub(crate) fn needs(&self, id: PipeId) -> bool {
        let is_one_of_several = self.config.on_loss == OnLoss::Repair && self.pipes.len() > 1;
        self.pipes.has(id) && !is_one_of_several
    }

    pub(crate) const fn confirmed_bytes(&self) -> u64 {
        self.pipes.confirmed_bytes()
    }

    /// Lets only the first `width` pipes carry data, at both ends.
    pub(crate) fn set_width(&mut self, width: u32) {
        self.pipes.set_width(width as usize);
        self.say(Header::bare(Kind::Width, StreamId(0), width.into()));
    }

    /// Sends the peer the token with which it can add pipes.
    pub(crate) fn offer_token(&mut self, token: [u8; TOKEN_BYTES]) {
        let header = Header { kind: Kind::Token, id: StreamId(0), value: 0, length: token.len() };
        self.control.push_back((header, Bytes::copy_from_slice(&token)));
    }

    pub(crate) const fn token(&self) -> Option<[u8; TOKEN_BYTES]> {
        self.token
    }

    /// Lists a frame without a payload, to be written before all data.
    fn say(&mut self, header: Header) {
        self.control.push_back((header, Bytes::new()));
    }

    /// Opens a stream. Waits while the maximum number of this end's streams is open.
    pub(crate) fn poll_open(
        &mut self,
        kind: StreamKind,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamId, OpenError>> {
        if let Some(end) = &self.end {
            return Poll::Ready(Err(OpenError::Closed(end.clone())));
        }
        let is_open = |(id, stream): (&StreamId, &StreamState)| {
            self.is_ours(*id) && stream.sending.as_ref().is_some_and(|half| !half.is_over())
        };
        if self.streams.iter().filter(|stream| is_open(*stream)).count() >= self.config.streams_max
        {
            add_waker(&mut self.open_wakers, context);
            return Poll::Pending;
        }
        let number = &mut self.next_index[index(kind)];
        let id = StreamId::new(*number, kind, self.side == Side::Server);
        *number += 1;
        let handles = if kind == StreamKind::Ordered { 2 } else { 1 };
        let receiving = (kind == StreamKind::Ordered).then(|| self.receiving(kind));
        let sending = Some(Sending::new(self.config.stream_window));
        self.streams.insert(id, StreamState { sending, receiving, handles });
        Poll::Ready(Ok(id))
    }

    fn receiving(&mut self, kind: StreamKind) -> Receiving {
        self.granted += self.config.stream_window;
        Receiving::new(kind, self.config.stream_window, self.config.on_loss)
    }

    pub(crate) fn poll_accept(
        &mut self,
        kind: StreamKind,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamId, OpenError>> {
        if let Some(id) = self.unaccepted[index(kind)].pop_front() {
            return Poll::Ready(Ok(id));
        }
        if let Some(end) = &self.end {
            return Poll::Ready(Err(OpenError::Closed(end.clone())));
        }
        add_waker(&mut self.on_opened, context);
        Poll::Pending
    }

    pub(crate) fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<CloseReason> {
        match &self.end {
            Some(end) => Poll::Ready(end.clone()),
            None => {
                add_waker(&mut self.end_wakers, context);
                Poll::Pending
            }
        }
    }

    /// Takes `bytes` if the stream's queue has room.
    pub(crate) fn poll_write(
        &mut self,
        id: StreamId,
        bytes: &mut Option<Bytes>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), WriteError>> {
        let end = self.end.clone();
        let Some(sending) = self.sending(id) else {
            return Poll::Ready(Err(WriteError::Finished));
        };
        if let Some(error) = sending.error(end) {
            return Poll::Ready(Err(error));
        }
        if sending.queued() >= OUTBOX_BYTES_MAX {
            sending.set_waker(context);
            return Poll::Pending;
        }
        if let Some(bytes) = bytes.take().filter(|bytes| !bytes.is_empty()) {
            sending.push(bytes);
            self.make_ready(id);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends a stream after what was written, with an error if there is a code.
    pub(crate) fn finish(&mut self, id: StreamId, code: Option<u64>) {
        if let Some(sending) = self.sending(id) {
            sending.finish(code);
            self.make_ready(id);
        }
    }

    pub(crate) fn reset(&mut self, id: StreamId, code: u64) {
        if let Some(sending) = self.sending(id)
            && sending.reset()
        {
            self.say(Header::bare(Kind::Reset, id, code));
            self.forget_if_over(id);
        }
    }

    /// Waits until the peer has all bytes of a finished stream.
    pub(crate) fn poll_delivered(
        &mut self,
        id: StreamId,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), WriteError>> {
        let end = self.end.clone();
        let Some(sending) = self.sending(id) else { return Poll::Ready(Ok(())) };
        if sending.is_received() {
            return Poll::Ready(Ok(()));
        }
        match sending.error_of_delivery(end) {
            Some(error) => Poll::Ready(Err(error)),
            None => {
                sending.set_waker(context);
                Poll::Pending
            }
        }
    }

    pub(crate) fn poll_read(
        &mut self,
        id: StreamId,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Piece>, ReadError>> {
        let end = self.end.clone();
        let Some(receiving) = self.receiving_of(id) else { return Poll::Ready(Ok(None)) };
        match receiving.next() {
            Ok(Some(piece)) => {
                let length = piece.bytes.len() as u64;
                self.take(id, length);
                Poll::Ready(Ok(Some(piece)))
            }
            Ok(None) if receiving.is_at_end() => Poll::Ready(match receiving.broken_off() {
                Some(code) => Err(ReadError::Reset(code)),
                None => Ok(None),
            }),
            Ok(None) => match end {
                Some(end) => Poll::Ready(Err(ReadError::Closed(end))),
                None => {
                    receiving.set_waker(context);
                    Poll::Pending
                }
            },
            Err(code) => Poll::Ready(Err(ReadError::Reset(code))),
        }
    }

    /// Grants the peer credit after the application has read bytes of a stream.
    fn take(&mut self, id: StreamId, length: u64) {
        let room = self.config.window.saturating_sub(self.granted);
        let (round_trip, most) = (self.round_trip, self.config.stream_window_max);
        let Some(receiving) = self.receiving_of(id) else { return };
        if let Some((limit, growth)) = receiving.take(length, (round_trip, room, most)) {
            self.granted += growth;
            self.say(Header::bare(Kind::Credit, id, limit));
        }
    }

    pub(crate) fn stop(&mut self, id: StreamId, code: u64) {
        if let Some(receiving) = self.receiving_of(id)
            && receiving.stop()
        {
            self.say(Header::bare(Kind::Stop, id, code));
        }
    }

    /// Records that a handle of the application was dropped.
    pub(crate) fn drop_handle(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.handles = stream.handles.saturating_sub(1);
            self.forget_if_over(id);
        }
    }

    pub(crate) fn close(&mut self, code: u64, reason: &str) {
        if self.end.is_none() {
            self.close_frame = Some((code, reason.to_owned()));
            self.finish_all(CloseReason::Local);
        }
    }

    /// Ends the connection after the pipe has ended or broken, or the peer has violated the
    /// protocol.
    pub(crate) fn fail(&mut self, reason: CloseReason) {
        if self.end.is_none() {
            if let CloseReason::Violation(text) = &reason {
                self.close_frame = Some((code::PROTOCOL, text.clone()));
            }
            self.finish_all(reason);
        }
    }

    fn finish_all(&mut self, reason: CloseReason) {
        self.end = Some(reason);
        let waiting = self.end_wakers.drain(..).chain(self.on_opened.drain(..));
        waiting.chain(self.open_wakers.drain(..)).for_each(Waker::wake);
        for stream in self.streams.values_mut() {
            stream.sending.iter_mut().for_each(Sending::wake);
            stream.receiving.iter_mut().for_each(Receiving::wake);
        }
    }

    fn sending(&mut self, id: StreamId) -> Option<&mut Sending> {
        self.streams.get_mut(&id)?.sending.as_mut()
    }

    fn receiving_of(&mut self, id: StreamId) -> Option<&mut Receiving> {
        self.streams.get_mut(&id)?.receiving.as_mut()
    }

    fn make_ready(&mut self, id: StreamId) {
        if let Some(sending) = self.sending(id)
            && sending.becomes_ready()
        {
            self.ready.push_back(id);
        }
    }

    /// Removes a stream when neither frames nor handles of it remain.
    fn forget_if_over(&mut self, id: StreamId) {
        if self.sending(id).is_some_and(|sending| sending.is_over()) {
            self.open_wakers.drain(..).for_each(Waker::wake);
        }
        let is_over = self.streams.get(&id).is_some_and(|stream| {
            stream.handles == 0
                && stream.sending.as_ref().is_none_or(Sending::is_over)
                && stream.receiving.as_ref().is_none_or(Receiving::is_over)
        });
        if is_over
            && let Some(stream) = self.streams.remove(&id)
            && let Some(receiving) = stream.receiving
        {
            self.granted = self.granted.saturating_sub(receiving.window());
        }
    }
}

fn add_waker(wakers: &mut Vec<Waker>, context: &Context<'_>) {
    if !wakers.iter().any(|waker| waker.will_wake(context.waker())) {
        wakers.push(context.waker().clone());
    }
}

#[cfg(test)]
mod tests;
