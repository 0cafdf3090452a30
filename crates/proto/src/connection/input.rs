//! What arrives: packets opened in their buffer, data handed on without a copy.

use super::{Connection, Datagrams, Event, State};
use crate::address::Order;
use crate::config::Side;
use crate::error::{CloseReason, Violation};
use crate::receive::{Freshness, Urgency};
use crate::run::{Run, Shape, Slab};
use crate::streams::{Incoming, Outgoing};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::{
    Ack, Block, Frame, PacketKind, Reader, SHORT_HEADER_LEN, ShortHeader, StreamId, StreamKind,
    TRAILER_LEN, Trailer, expand_packet_number, is_long,
};

/// Reused between batches.
#[derive(Default)]
pub(super) struct Scratch {
    runs: Vec<Found>,
}

/// A run of payload found in the batch under way.
#[derive(Clone, Copy)]
struct Found {
    stream: StreamId,
    offset: u64,
    shape: Shape,
}

/// A buffer less full than half is not worth keeping: its payload is copied out.
const KEEP_EIGHTHS: usize = 4;
/// Where much waits to be consumed it must be fuller, or memory would hold twice the window.
const KEEP_EIGHTHS_CROWDED: usize = 7;

impl Connection {
    /// Takes datagrams addressed to this connection. Gives the buffer back if no payload in it is
    /// still needed.
    // fuzz: connection
    pub fn handle_datagrams(&mut self, now: Instant, mut batch: Datagrams) -> Option<Vec<u8>> {
        let (len, stride) = (batch.len.min(batch.bytes.len()), batch.stride.max(1));
        let mut at = 0;
        let mut fresh = 0;
        let mut eliciting = 0;
        let mut urgency = Urgency::Later;
        let (mut opened, mut order) = (0, Order::Overtaken);
        let mut introduced = 0;
        let received = batch.received.min(now);
        let (source, local) = (batch.source, batch.local);
        // Nothing that comes after the last word counts.
        while at < len && self.state != State::Closed {
            let end = (at + stride).min(len);
            let packet = &mut batch.bytes[at..end];
            if is_long(packet) {
                introduced += self.handle_long(now, packet);
            } else if self.state == State::Handshaking {
                self.keep_early(source, received, packet);
            } else if let Some(news) = self.handle_short(now, received, packet, at) {
                fresh += 1;
                eliciting += u64::from(news.eliciting);
                urgency = urgency.max(news.urgency);
                opened += (end - at) as u64;
                order = order.max(news.order);
            }
            at = end;
        }
        if introduced > 0 {
            self.note_introduction(source, introduced);
        }
        if fresh > 0 {
            self.note_address((source, local), opened, order);
            self.recovery.on_heard(now - self.timing.last_received);
            self.timing.last_received = now;
            self.receipts.sample(now);
            if batch.congestion_experienced {
                self.receipts.on_ce(fresh);
            }
            for _ in 0..eliciting {
                self.receipts.on_eliciting(now, urgency);
            }
            if urgency == Urgency::Thorough {
                self.receipts.on_question(now);
            }
            self.close_again();
        }
        let rest = self.keep_runs(batch);
        self.handle_early(now);
        rest
    }

    fn keep_runs(&mut self, batch: Datagrams) -> Option<Vec<u8>> {
        let mut runs = core::mem::take(&mut self.scratch.runs);
        let payload: usize = runs.iter().map(|found| found.shape.len).sum();
        if payload == 0 {
            return Some(batch.bytes);
        }
        let crowded = self.receive_flow.is_crowded();
        let least = if crowded { KEEP_EIGHTHS_CROWDED } else { KEEP_EIGHTHS };
        let sparse = payload < batch.bytes.len() / 8 * least;
        let slab = Arc::new(Slab::new(batch.bytes, batch.home));
        for found in runs.drain(..) {
            let run = Run::new(slab.clone(), found.shape);
            let run = if sparse { Run::copied(run.to_vec()) } else { run };
            if let Err(violation) = self.on_stream_data(found.stream, found.offset, run) {
                self.fail(&violation);
                break;
            }
        }
        self.scratch.runs = runs;
        None
    }

    /// Opens one short packet at `at` of the batch. `None` if it changed nothing.
    fn handle_short(
        &mut self,
        now: Instant,
        received: Instant,
        packet: &mut [u8],
        at: usize,
    ) -> Option<News> {
        let header = ShortHeader::decode(packet).ok()?;
        let transport = self.transport.as_mut()?;
        if header.destination != self.local_id {
            return None;
        }
        let pn = expand_packet_number(header.packet_number, self.receipts.expected())?;
        let newest = pn >= self.receipts.expected();
        match self.receipts.check(pn) {
            Freshness::New => {}
            Freshness::Duplicate | Freshness::TooOld => {
                self.receipts.duplicates += 1;
                return None;
            }
        }
        // spec: auth-1
        let Some(opened) = transport.keys.open(now, &header, pn, packet) else {
            self.tally.undecryptable += 1;
            if transport.keys.is_under_attack() {
                self.fail(&Violation::protocol("too many packets that do not open"));
            }
            return None;
        };
        if self.side == Side::Client {
            // Only a server that has our last flight has these keys.
            self.handshake = None;
        }
        let bytes = packet.len() as u64;
        let body = &packet[SHORT_HEADER_LEN..SHORT_HEADER_LEN + opened];
        let result = match header.kind {
            PacketKind::Data => self.find_payload(body, at + SHORT_HEADER_LEN).map(|()| true),
            PacketKind::Control => Self::read_control(body),
        };
        self.receipts.insert(received, pn, bytes);
        match result {
            Ok(eliciting) => {
                let urgency = match header.kind {
                    _ if !(eliciting && header.ack_now) => Urgency::Later,
                    PacketKind::Data => Urgency::Now,
                    PacketKind::Control => Urgency::Thorough,
                };
                let order = if newest { Order::Newest } else { Order::Overtaken };
                let news = News { eliciting, urgency, order };
                if header.kind == PacketKind::Control {
                    let body = body.to_vec();
                    self.apply_control(now, &body);
                }
                Some(news)
            }
            Err(violation) => {
                self.fail(&violation);
                None
            }
        }
    }

    /// Notes the payload of a data packet, as part of the last run where it continues it.
    fn find_payload(&mut self, body: &[u8], at: usize) -> Result<(), Violation> {
        let (payload, trailer) = Trailer::split(body)?;
        debug_assert_eq!(payload.len() + TRAILER_LEN, body.len());
        let stream = StreamId(trailer.stream);
        let len = payload.len();
        if len == 0 {
            return Ok(());
        }
        if let Some(last) = self.scratch.runs.last_mut()
            && last.stream == stream
            && last.offset + last.shape.len as u64 == trailer.offset
            && last.shape.len % last.shape.chunk == 0
            && len <= last.shape.chunk
        {
            let pieces = last.shape.len / last.shape.chunk;
            if pieces == 1 {
                last.shape.stride = at - last.shape.first;
            }
            if last.shape.first + pieces * last.shape.stride == at {
                last.shape.len += len;
                return Ok(());
            }
        }
        let shape = Shape { first: at, stride: len, chunk: len, skip: 0, len };
        self.scratch.runs.push(Found { stream, offset: trailer.offset, shape });
        Ok(())
    }

    /// Checks a control packet before any of it is applied; says whether it wants an ACK.
    // fuzz: connection
    fn read_control(body: &[u8]) -> Result<bool, Violation> {
        let mut reader = Reader::new(body);
        let mut eliciting = false;
        while let Some(frame) = Frame::decode(&mut reader)? {
            eliciting |= frame.is_ack_eliciting();
        }
        Ok(eliciting)
    }

    fn apply_control(&mut self, now: Instant, body: &[u8]) {
        let mut reader = Reader::new(body);
        while let Ok(Some(frame)) = Frame::decode(&mut reader) {
            if let Err(violation) = self.on_frame(now, frame) {
                self.fail(&violation);
                return;
            }
        }
    }

    fn on_frame(&mut self, now: Instant, frame: Frame) -> Result<(), Violation> {
        match frame {
            Frame::Padding(_) | Frame::Ping => {}
            Frame::PathResponse(token) => self.on_path_response(now, token),
            Frame::Ack(ack) => return self.on_ack(now, &ack),
            Frame::Floor { floor, rtt_micros } => {
                let rtt = Duration::from_micros(rtt_micros.min(60_000_000));
                self.receipts.on_floor(floor, rtt);
                self.receive_flow.set_rtt(rtt);
            }
            Frame::Crypto { .. } => {
                return Err(Violation::protocol("handshake bytes after the handshake"));
            }
            Frame::HandshakeDone => {
                self.handshake = None;
            }
            Frame::MaxData(limit) => self.send_flow.set_limit(limit),
            Frame::MaxStreamData { stream, limit } => {
                self.hear_of(stream)?;
                if let Some(outgoing) = self.streams.outgoing.get_mut(&stream) {
                    outgoing.set_limit(limit);
                }
            }
            Frame::MaxStreams { kind, count } => {
                let allowed = &mut self.streams.peer_allows[kind_index(kind)];
                *allowed = count.max(*allowed);
            }
            Frame::Fin { stream, size } => {
                if self.incoming(stream)?.is_some_and(|incoming| !incoming.is_ended()) {
                    if let Some(incoming) = self.incoming(stream)? {
                        incoming.on_fin(size)?;
                        if incoming.is_spent() {
                            self.forget(stream);
                        }
                    }
                    self.streams.readable.push_back(stream);
                }
            }
            Frame::Reset { stream, code, size } => return self.on_reset(stream, code, size),
            Frame::Stop { stream, code } => {
                self.hear_of(stream)?;
                // The answer says how many bytes were sent, so that the credit adds up.
                if let Some(outgoing) = self.streams.outgoing.remove(&stream) {
                    self.events.push_back(Event::Stopped(stream, code));
                    let size = outgoing.sent();
                    self.control.push_back(Frame::Reset { stream, code, size });
                }
            }
            Frame::PathChallenge(token) => {
                // The last one counts; an answer is no memory of ours.
                self.control.retain(|frame| !matches!(frame, Frame::PathResponse(_)));
                self.control.push_back(Frame::PathResponse(token));
            }
            Frame::Close { code, reason } => {
                // Who has closed has said so to its application.
                if self.state == State::Established {
                    self.events.push_back(Event::Closed(CloseReason::of_peer(code, &reason)));
                }
                self.state = State::Closed;
            }
        }
        Ok(())
    }

    fn on_reset(&mut self, id: StreamId, code: u64, size: u64) -> Result<(), Violation> {
        let Some(incoming) = self.incoming(id)? else { return Ok(()) };
        let (grown, untaken) = incoming.on_reset(size)?;
        let wanted = !incoming.is_discarding();
        self.forget(id);
        self.receive_flow.on_received(grown)?;
        let limit = self.receive_flow.on_consumed(untaken);
        self.control.extend(limit.map(Frame::MaxData));
        if wanted {
            self.events.push_back(Event::Reset(id, code));
        }
        Ok(())
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) -> Result<(), Violation> {
        let chunk = self.chunk() as u32;
        self.recovery.repairs.set_tail(self.next_new().is_none());
        let result = self.recovery.on_ack(now, ack, chunk);
        if result.forged {
            return Err(Violation::protocol("acknowledged a packet that was never sent"));
        }
        if let Some(transport) = &mut self.transport {
            transport.keys.on_acked(ack.largest);
        }
        self.after_recovery(now, result);
        self.find_arrived_fins(ack);
        Ok(())
    }

    /// A stream is delivered when its end is known there as well: were the connection closed before,
    /// the peer could not tell the end from a cut.
    fn find_arrived_fins(&mut self, ack: &Ack) {
        let streams = &mut self.streams;
        if streams.fins.is_empty() {
            return;
        }
        let arrived = |pn: u64| {
            let mut ranges = ack.blocks.iter().flat_map(Block::arrived);
            ranges.any(|(from, end)| (from..end).contains(&pn))
        };
        let fins = core::mem::take(&mut streams.fins);
        for (pn, id) in fins {
            let Some(outgoing) = streams.outgoing.get_mut(&id) else { continue };
            if !arrived(pn) {
                streams.fins.push((pn, id));
                continue;
            }
            outgoing.on_fin_arrived();
            if outgoing.is_delivered() {
                streams.outgoing.remove(&id);
                self.events.push_back(Event::Delivered(id));
            }
        }
    }

    fn on_stream_data(&mut self, id: StreamId, offset: u64, run: Run) -> Result<(), Violation> {
        let Some(incoming) = self.incoming(id)? else { return Ok(()) };
        let grown = incoming.on_data(offset, run)?;
        let (discarding, spent) = (incoming.is_discarding(), incoming.is_spent());
        self.receive_flow.on_received(grown)?;
        if discarding {
            if spent {
                self.forget(id);
            }
            let limit = self.receive_flow.on_consumed(grown);
            self.control.extend(limit.map(Frame::MaxData));
            return Ok(());
        }
        self.tally.received_payload += grown;
        if self.streams.readable.back() != Some(&id) {
            self.streams.readable.push_back(id);
        }
        Ok(())
    }

    /// The receiving half of `id`, opened if the peer may open it now; `None` if it is over.
    fn incoming(&mut self, id: StreamId) -> Result<Option<&mut Incoming>, Violation> {
        let by_peer = id.by_server() == (self.side == Side::Client);
        if !by_peer && id.kind() == StreamKind::Object {
            return Err(Violation::protocol("data on an object that this side sends"));
        }
        if !by_peer && id.index() >= self.streams.next_index[kind_index(id.kind())] {
            return Err(Violation::protocol("data on a stream that was never opened"));
        }
        if by_peer && id.index() >= self.streams.peer_opened[kind_index(id.kind())] {
            self.open_by_peer(id)?;
        }
        Ok(self.streams.incoming.get_mut(&id))
    }

    /// A word about a stream may come before its first byte: both directions of an ordered one begin
    /// with whatever comes first.
    fn hear_of(&mut self, id: StreamId) -> Result<(), Violation> {
        let by_peer = id.by_server() == (self.side == Side::Client);
        if by_peer && id.kind() == StreamKind::Ordered {
            self.incoming(id)?;
        }
        Ok(())
    }

    // spec: stream-1
    /// Opening a stream opens all of its kind with lower numbers (RFC 9000 section 2.1).
    fn open_by_peer(&mut self, id: StreamId) -> Result<(), Violation> {
        let slot = kind_index(id.kind());
        // What it was told is what is over of this kind and `max_streams`: so many are never open.
        if id.index() >= self.streams.peer_told[slot] {
            return Err(Violation::flow_control("more streams than allowed"));
        }
        let window = self.announced();
        for index in self.streams.peer_opened[slot]..=id.index() {
            let id = StreamId::new(index, id.kind(), id.by_server());
            self.streams.incoming.insert(id, Incoming::new(id, window));
            if id.kind() == StreamKind::Ordered {
                let limit = self.transport.as_ref().map_or(0, |t| t.peer.max_stream_data);
                self.streams.outgoing.insert(id, Outgoing::new(limit));
            }
            self.events.push_back(Event::Opened(id));
        }
        self.streams.peer_opened[slot] = id.index() + 1;
        Ok(())
    }

    /// The receiving host dropped this many datagrams in all for want of buffer.
    pub fn set_host_drops(&mut self, drops: u64) {
        self.tally.host_drops = drops;
        self.receipts.set_host_drops(drops);
    }

    /// The socket refused a datagram of `size` bytes as too big for the path.
    pub fn handle_too_big(&mut self, now: Instant, size: usize) {
        self.mtu.on_too_big(now, u16::try_from(size).unwrap_or(u16::MAX));
    }

    /// Payload bytes of a full data packet.
    pub(super) const fn chunk(&self) -> usize {
        self.mtu.current() as usize - hikyaku_wire::DATA_OVERHEAD
    }
}

/// What an accepted packet asks for.
struct News {
    eliciting: bool,
    urgency: Urgency,
    order: Order,
}

pub(super) const fn kind_index(kind: StreamKind) -> usize {
    match kind {
        StreamKind::Ordered => 0,
        StreamKind::Object => 1,
    }
}
