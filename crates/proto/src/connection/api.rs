//! The application's calls.

use super::input::kind_index;
use super::{Connection, Event, State};
use crate::config::Side;
use crate::streams::{Backlog, Delivery, Growth, Incoming, Outgoing, Priority, Turn, Window};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::SocketAddr;
use core::num::NonZeroU32;
use core::time::Duration;
use hikyaku_cc::PathHint;
use hikyaku_units::{DataSize, Instant, Rate};
use hikyaku_wire::{ConnectionId, Frame, StreamId, StreamKind};

impl Connection {
    /// Opens a stream. Returns `None` before the handshake is complete, and if the peer's stream
    /// limit is reached.
    pub fn open(&mut self, kind: StreamKind) -> Option<StreamId> {
        let slot = kind_index(kind);
        let index = self.streams.next_index[slot];
        let transport = self.transport.as_ref()?;
        if index >= self.streams.peer_allows[slot] {
            return None;
        }
        self.streams.next_index[slot] += 1;
        let id = StreamId::new(index, kind, self.side == Side::Server);
        self.streams.outgoing.insert(id, Outgoing::new(transport.peer.max_stream_data));
        if kind == StreamKind::Ordered {
            self.streams.incoming.insert(id, Incoming::new(id, self.first_window()));
        }
        Some(id)
    }

    /// Appends bytes to a stream. They are kept until they are acknowledged. The caller limits the
    /// amount by [`Connection::unsent`].
    pub fn write(&mut self, id: StreamId, bytes: Bytes) {
        if let Some(outgoing) = self.streams.outgoing.get_mut(&id) {
            let backlog = if outgoing.unsent() == 0 { Backlog::New } else { Backlog::Old };
            let before = outgoing.unsent();
            outgoing.write(bytes);
            self.streams.unsent += outgoing.unsent() - before;
            if outgoing.sendable().is_some() {
                let clock = (self.timing.now, self.recovery.srtt());
                self.streams.schedule.enter(id, &mut outgoing.place, backlog, clock);
            }
        }
    }

    /// Sets the priority of a stream's bytes, including those already waiting.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) {
        if let Some(outgoing) = self.streams.outgoing.get_mut(&id) {
            self.streams.schedule.set_priority(id, &mut outgoing.place, priority);
        }
    }

    /// Bytes written to a stream and not sent yet. `None` if its sending half has ended.
    pub fn unsent(&self, id: StreamId) -> Option<u64> {
        self.streams.outgoing.get(&id).map(Outgoing::unsent)
    }

    /// Bytes written to all streams and not sent yet.
    pub const fn all_unsent(&self) -> u64 {
        self.streams.unsent
    }

    /// Appends to `served` the streams that have sent new bytes since the last call, so that the
    /// caller can write more to them. A stream may be listed several times.
    pub fn take_served(&mut self, served: &mut Vec<StreamId>) {
        served.append(&mut self.streams.served);
    }

    /// The pacing rate.
    pub fn pacing_rate(&self) -> Rate {
        self.recovery.controller.pacing_rate()
    }

    /// Bytes that the application may read from a stream before it calls [`Connection::consumed`].
    pub fn read_step(&self, id: StreamId) -> u64 {
        let window = self.streams.incoming.get(&id).map_or(u64::MAX, Incoming::window);
        window.min(self.receive_flow.window()) / 16
    }

    /// Ends a stream's sending half.
    pub fn finish(&mut self, id: StreamId) {
        if let Some(outgoing) = self.streams.outgoing.get_mut(&id) {
            outgoing.finish();
            self.control.extend(outgoing.take_fin(id));
        }
    }

    // spec: stream-3
    /// Ends a stream's sending half with a code. The bytes written before are still delivered.
    pub fn reset_after(&mut self, id: StreamId, code: u64) {
        if let Some(outgoing) = self.streams.outgoing.get_mut(&id) {
            outgoing.break_off(code);
            self.control.extend(outgoing.take_fin(id));
        }
    }

    /// Ends a stream's sending half after the last byte that was sent, and discards the bytes after
    /// it. Returns its size; `None` if it has ended already.
    pub fn cut(&mut self, id: StreamId) -> Option<u64> {
        let outgoing = self.streams.outgoing.get_mut(&id)?;
        let unsent = outgoing.unsent();
        let size = outgoing.cut()?;
        self.streams.unsent -= unsent;
        self.streams.schedule.leave(&mut outgoing.place);
        self.control.extend(outgoing.take_fin(id));
        Some(size)
    }

    /// Resets a stream's sending half: nothing more is sent or retransmitted.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        if let Some(outgoing) = self.forget_outgoing(id) {
            self.control.push_back(Frame::Reset { stream: id, code, size: outgoing.sent() });
        }
    }

    /// Asks the peer to stop sending on a stream, and discards its bytes.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        if let Some(incoming) = self.streams.incoming.get_mut(&id)
            && !incoming.is_discarding()
        {
            self.streams.pieces -= incoming.pieces();
            let untaken = incoming.discard();
            self.streams.pieces += incoming.pieces();
            if incoming.is_spent() {
                self.forget_incoming(id);
            }
            let limit = self.receive_flow.on_consumed(untaken);
            self.control.extend(limit.map(Frame::MaxData));
            self.control.push_back(Frame::Stop { stream: id, code });
        }
    }

    /// The next bytes for the application: in order for ordered streams, in order of arrival for
    /// objects.
    pub fn poll_delivery(&mut self) -> Option<(StreamId, Delivery)> {
        while let Some(&id) = self.streams.readable.front() {
            if let Some(incoming) = self.streams.incoming.get_mut(&id) {
                if let Some(delivery) = incoming.poll() {
                    self.streams.pieces -= 1;
                    return Some((id, delivery));
                }
                incoming.set_turn(Turn::None);
                if incoming.poll_end() {
                    let broken_off = incoming.broken_off();
                    self.forget_incoming(id);
                    self.events.push_back(match broken_off {
                        Some(code) => Event::Reset(id, code),
                        None => Event::Ended(id),
                    });
                }
            }
            self.streams.readable.pop_front();
        }
        None
    }

    /// The window of a stream as announced in the transport parameters. Later limits are announced
    /// for each stream. A sender that assumed more than the announced limit would wait for ever.
    pub(super) fn first_window(&self) -> Window {
        let [all, stream] = self.config.first_windows();
        let growth = if stream < all { Growth::Earned } else { Growth::WithConnection };
        Window::new(stream, growth)
    }

    /// Records that the application has read `bytes` of a stream, so that the peer gets credit for
    /// as many.
    pub fn consumed(&mut self, id: StreamId, bytes: u64) {
        let limit = self.receive_flow.on_consumed(bytes);
        self.control.extend(limit.map(Frame::MaxData));
        let most = self.stream_window_max();
        let clock = (self.timing.now, self.receive_flow.rtt());
        if let Some(incoming) = self.streams.incoming.get_mut(&id)
            && let Some(limit) = incoming.on_consumed(clock, bytes, most)
        {
            self.control.push_back(Frame::MaxStreamData { stream: id, limit });
        }
    }

    /// The connection's receive window.
    pub fn receive_window(&self) -> DataSize {
        DataSize::from_bytes(self.receive_flow.window())
    }

    /// The time since the last packet of the peer.
    pub fn silence(&self, now: Instant) -> Duration {
        now - self.timing.last_received
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Limits the payload rate; retransmissions are not counted.
    pub const fn set_payload_rate(&mut self, rate: Option<Rate>) {
        self.pacers.payload.set_rate(rate);
    }

    /// What a later connection can use of the measurements of this path.
    pub fn hint(&self) -> Option<PathHint> {
        self.recovery.controller.hint()
    }

    /// Sets the calendar time of `Instant::ZERO` in nanoseconds; see
    /// [`hikyaku_cc::Controller::set_calendar`].
    pub const fn set_calendar(&mut self, at_zero: u64) {
        self.recovery.controller.set_calendar(at_zero);
    }

    /// Sets the number of connections that send by the same thread; see [`hikyaku_cc::Pacer::set_sharers`] and
    /// [`hikyaku_cc::Controller::set_sharers`].
    pub const fn set_sharers(&mut self, sharers: NonZeroU32) {
        self.pacers.path.set_sharers(sharers);
        self.pacers.wire.set_sharers(sharers);
        self.pacers.payload.set_sharers(sharers);
        self.recovery.controller.set_sharers(sharers);
    }

    /// This end's connection id, which the peer puts into its packets.
    pub const fn local_id(&self) -> ConnectionId {
        self.local_id
    }

    /// The destination id of the client's first packets.
    pub fn initial_destination(&self) -> Option<ConnectionId> {
        self.handshake.as_ref().map(crate::handshake::Handshake::initial_destination)
    }

    /// The peer's validated address.
    pub const fn remote(&self) -> SocketAddr {
        self.peer.proven()
    }

    /// Which end this is.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Whether the handshake is in progress.
    pub fn is_handshaking(&self) -> bool {
        self.state == State::Handshaking
    }

    /// Sets the token of the client's first packets, which the listener has been told to expect.
    pub fn set_token(&mut self, token: Vec<u8>) {
        if let Some(handshake) = &mut self.handshake {
            handshake.set_token(token);
        }
    }

    /// Records that the listener has validated the client's address by a token.
    pub const fn set_validated(&mut self) {
        if let Some(handshake) = &mut self.handshake {
            handshake.set_validated();
        }
    }
}
