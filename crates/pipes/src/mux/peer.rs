//! Handling of the peer's frames.

use super::{Mux, PipeId, StreamState, index};
use crate::connection::OnLoss;
use crate::frame::{Header, Kind};
use crate::mux::sending::Sending;
use bytes::Bytes;
use hikyaku_proto::{CloseReason, StreamId, StreamKind};
use std::task::Waker;
use std::time::Instant;

impl Mux {
    /// Handles a frame of the peer. An error ends the connection.
    pub(crate) fn on_frame(
        &mut self,
        pipe: PipeId,
        (header, payload): (Header, Vec<u8>),
        now: Instant,
    ) -> Result<(), String> {
        let Header { kind, id, value, .. } = header;
        self.pipes.count(pipe, &header, now);
        match kind {
            Kind::Data => self.on_data(id, value, payload)?,
            Kind::Finish => {
                self.open_if_new(id)?;
                if let Some(receiving) = self.receiving_of(id) {
                    receiving.finish(value)?;
                }
                self.after_receiving(id);
            }
            Kind::BreakOff => {
                let code = payload.try_into().map_err(|_| "a code of the wrong length")?;
                self.open_if_new(id)?;
                if let Some(receiving) = self.receiving_of(id) {
                    receiving.break_off(value, u64::from_le_bytes(code))?;
                }
                self.after_receiving(id);
            }
            Kind::Reset => {
                self.open_if_new(id)?;
                if let Some(receiving) = self.receiving_of(id) {
                    receiving.reset(value);
                }
                self.forget_if_over(id);
            }
            Kind::Stop => {
                if let Some(sending) = self.sending(id) {
                    sending.stop(value);
                }
                self.forget_if_over(id);
            }
            Kind::Credit => {
                if let Some(sending) = self.sending(id) {
                    sending.credit(value);
                    self.make_ready(id);
                }
            }
            Kind::Received => {
                let may_come_twice = self.config.on_loss == OnLoss::Repair;
                if let Some(sending) = self.sending(id)
                    && !(may_come_twice && sending.is_received())
                {
                    sending.received()?;
                }
                self.forget_if_over(id);
            }
            Kind::Close => {
                let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
                let reason = String::from_utf8_lossy(&payload).chars().map(plain).collect();
                self.finish_all(CloseReason::Peer { code: value, reason });
            }
            Kind::Ping => self.on_ping()?,
            Kind::Confirmed => self.pipes.on_confirmed(&payload, now)?,
            Kind::Width => self.pipes.set_width(usize::try_from(value).unwrap_or(usize::MAX)),
            Kind::Token => {
                let token = payload.try_into().map_err(|_| "a token of the wrong length")?;
                self.token = Some(token);
            }
            Kind::Join => return Err("a pipe of another connection".to_owned()),
            Kind::Pong => {
                self.round_trip = self.pinged.map(|at| now.saturating_duration_since(at));
            }
        }
        Ok(())
    }

    /// Handles a ping. It is an error if pings arrive faster than their answers are written.
    fn on_ping(&mut self) -> Result<(), String> {
        let pong = |(header, _): &&(Header, Bytes)| header.kind == Kind::Pong;
        if self.control.iter().filter(pong).count() > 16 {
            return Err("the peer asks for too many answers".to_owned());
        }
        self.say(Header::bare(Kind::Pong, StreamId(0), 0));
        Ok(())
    }

    fn on_data(&mut self, id: StreamId, offset: u64, payload: Vec<u8>) -> Result<(), String> {
        self.open_if_new(id)?;
        if let Some(receiving) = self.receiving_of(id) {
            receiving.data(offset, payload)?;
        }
        self.after_receiving(id);
        Ok(())
    }

    /// Confirms to the peer once that all bytes of a stream have arrived.
    fn after_receiving(&mut self, id: StreamId) {
        if let Some(receiving) = self.receiving_of(id)
            && receiving.has_all_now()
        {
            self.say(Header::bare(Kind::Received, id, 0));
        }
        self.forget_if_over(id);
    }

    /// The number of the peer's streams whose bytes have not all arrived.
    fn open_by_peer(&self) -> usize {
        let is_open = |(id, stream): &(&StreamId, &StreamState)| {
            !self.is_ours(**id) && stream.receiving.as_ref().is_some_and(|half| !half.is_over())
        };
        self.streams.iter().filter(is_open).count()
    }

    /// Opens the stream and those of the same kind before it, if this is the peer's first frame for
    /// it.
    fn open_if_new(&mut self, id: StreamId) -> Result<(), String> {
        let (kind, number) = (id.kind(), id.index());
        if self.is_ours(id) {
            // Frames about an ended stream of this end may still be in flight.
            let is_known = number < self.next_index[index(kind)];
            return is_known.then_some(()).ok_or_else(|| "an unknown stream".to_owned());
        }
        while self.peer_index[index(kind)] <= number {
            if self.open_by_peer() >= 2 * self.config.streams_max {
                return Err("more streams than may be open".to_owned());
            }
            let next = self.peer_index[index(kind)];
            let new = StreamId::new(next, kind, id.by_server());
            self.peer_index[index(kind)] += 1;
            let sending =
                (kind == StreamKind::Ordered).then(|| Sending::new(self.config.stream_window));
            let handles = if kind == StreamKind::Ordered { 2 } else { 1 };
            let receiving = Some(self.receiving(kind));
            self.streams.insert(new, StreamState { sending, receiving, handles });
            self.unaccepted[index(kind)].push_back(new);
            self.on_opened.drain(..).for_each(Waker::wake);
        }
        Ok(())
    }
}
