//! What the application may ask of a connection.

use super::input::kind_index;
use super::{Connection, Event, State};
use crate::config::Side;
use crate::streams::{Delivery, Incoming, Outgoing};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::SocketAddr;
use hikyaku_cc::PathHint;
use hikyaku_units::{DataSize, Rate};
use hikyaku_wire::{ConnectionId, Frame, StreamId, StreamKind};

impl Connection {
    /// Opens a stream; `None` if the peer allows no more of them yet.
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
            self.streams.incoming.insert(id, Incoming::new(id, self.announced()));
        }
        Some(id)
    }

    /// Appends bytes to a stream. They are kept until they have arrived; the caller asks
    /// [`Connection::unsent`] to know when to stop.
    pub fn write(&mut self, id: StreamId, bytes: Bytes) {
        if let Some(outgoing) = self.streams.outgoing.get_mut(&id) {
            outgoing.write(bytes);
        }
    }

    /// Bytes written to a stream that have not been sent yet; `None` if it is over.
    pub fn unsent(&self, id: StreamId) -> Option<u64> {
        self.streams.outgoing.get(&id).map(Outgoing::unsent)
    }

    /// Ends a stream's sending half.
    pub fn finish(&mut self, id: StreamId) {
        if let Some(outgoing) = self.streams.outgoing.get_mut(&id) {
            outgoing.finish();
        }
    }

    /// Gives up sending on a stream.
    pub fn reset(&mut self, id: StreamId, code: u64) {
        if let Some(outgoing) = self.streams.outgoing.remove(&id) {
            self.control.push_back(Frame::Reset { stream: id, code, size: outgoing.sent() });
        }
    }

    /// Wants no more of a stream.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        if let Some(incoming) = self.streams.incoming.get_mut(&id)
            && !incoming.is_discarding()
        {
            let untaken = incoming.discard();
            if incoming.is_spent() {
                self.forget(id);
            }
            let limit = self.receive_flow.on_consumed(untaken);
            self.control.extend(limit.map(Frame::MaxData));
            self.control.push_back(Frame::Stop { stream: id, code });
        }
    }

    /// The next bytes for the application: for ordered streams in order, for objects as they come.
    pub fn poll_delivery(&mut self) -> Option<(StreamId, Delivery)> {
        while let Some(&id) = self.streams.readable.front() {
            if let Some(incoming) = self.streams.incoming.get_mut(&id) {
                if let Some(delivery) = incoming.poll() {
                    return Some((id, delivery));
                }
                if incoming.poll_end() {
                    self.forget(id);
                    self.events.push_back(Event::Ended(id));
                }
            }
            self.streams.readable.pop_front();
        }
        None
    }

    /// What the peer was told at the begin that it may send of any stream. More is told later, of each
    /// stream: who counted on more than was told would wait for ever.
    pub(super) fn announced(&self) -> u64 {
        self.config.initial_window.min(self.config.receive_window).bytes()
    }

    /// A receiving half is over: read to its end, stopped or reset. The peer may open another.
    pub(super) fn forget(&mut self, id: StreamId) {
        let by_peer = id.by_server() == (self.side == Side::Client);
        if self.streams.incoming.remove(&id).is_none() || !by_peer {
            return;
        }
        let slot = kind_index(id.kind());
        let ended = &mut self.streams.peer_ended[slot];
        *ended = ended.saturating_add(1);
        let limit = ended.saturating_add(self.config.max_streams);
        let step = (self.config.max_streams / 4).max(1);
        if limit >= self.streams.peer_told[slot].saturating_add(step) {
            self.streams.peer_told[slot] = limit;
            self.control.push_back(Frame::MaxStreams { kind: id.kind(), count: limit });
        }
    }

    /// The application took `bytes` of a stream: as many may come after them.
    pub fn consumed(&mut self, id: StreamId, bytes: u64) {
        let limit = self.receive_flow.on_consumed(bytes);
        self.control.extend(limit.map(Frame::MaxData));
        let window = self.receive_flow.window();
        if let Some(incoming) = self.streams.incoming.get_mut(&id)
            && let Some(limit) = incoming.on_consumed(bytes, window)
        {
            self.control.push_back(Frame::MaxStreamData { stream: id, limit });
        }
    }

    /// The bound on memory for received data.
    pub fn receive_window(&self) -> DataSize {
        DataSize::from_bytes(self.receive_flow.window())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Caps payload, retransmissions not counted.
    pub const fn set_payload_rate(&mut self, rate: Option<Rate>) {
        self.pacers.payload.set_rate(rate);
    }

    /// What is worth remembering of this path.
    pub fn hint(&self) -> Option<PathHint> {
        self.recovery.controller.hint()
    }

    /// Nanoseconds of the calendar when time began; see [`hikyaku_cc::Controller::set_calendar`].
    pub const fn set_calendar(&mut self, at_zero: u64) {
        self.recovery.controller.set_calendar(at_zero);
    }

    /// The id that the peer puts into packets for this end.
    pub const fn local_id(&self) -> ConnectionId {
        self.local_id
    }

    /// The id that a client's first packets carried.
    pub fn initial_destination(&self) -> Option<ConnectionId> {
        self.handshake.as_ref().map(crate::handshake::Handshake::initial_destination)
    }

    /// Where the peer is, as far as that is proven.
    pub const fn remote(&self) -> SocketAddr {
        self.peer.proven()
    }

    /// Which end this is.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Whether the handshake is still under way.
    pub fn is_handshaking(&self) -> bool {
        self.state == State::Handshaking
    }

    /// The client's first packets carry this token: the listener was told to expect it.
    pub fn set_token(&mut self, token: Vec<u8>) {
        if let Some(handshake) = &mut self.handshake {
            handshake.set_token(token);
        }
    }

    /// A listener has proof that the client receives at its address.
    pub const fn set_validated(&mut self) {
        if let Some(handshake) = &mut self.handshake {
            handshake.set_validated();
        }
    }
}
