//! Received packets: decrypted in their buffer, with stream data passed on without a copy.

use super::{Connection, Datagrams, Event, State};
use crate::address::Order;
use crate::config::Side;
use crate::error::{CloseReason, Violation};
use crate::receive::{Freshness, Urgency};
use crate::run::{Run, Shape, Slab};
use crate::streams::{Backlog, Incoming, Outgoing, Turn};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::Instant;
use hikyaku_wire::{
    Ack, Frame, PacketKind, Reader, SHORT_HEADER_LEN, ShortHeader, StreamId, StreamKind,
    TRAILER_LEN, Trailer, expand_packet_number, is_long,
};

/// Memory that is reused between batches.
#[derive(Default)]
pub(super) struct Scratch {
    runs: Vec<Found>,
}

/// A run of stream data in the batch being handled.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) stream: StreamId,
    pub(super) offset: u64,
    pub(super) shape: Shape,
}

impl Found {
    /// Whether the two runs have bytes in common.
    pub(super) const fn overlaps(&self, other: &Self) -> bool {
        self.stream.0 == other.stream.0
            && self.offset < other.offset + other.shape.len as u64
            && other.offset < self.offset + self.shape.len as u64
    }
}

/// Eighths of a receive buffer that must hold new payload. The payload of a buffer below that is
/// copied, so that the buffer can be reused.
const KEEP_EIGHTHS_MIN: usize = 4;
/// The same when much data waits to be read. The value is higher, because otherwise the buffers
/// could take twice the memory of the receive window.
const KEEP_EIGHTHS_MIN_CROWDED: usize = 7;

impl Connection {
    /// Handles datagrams addressed to this connection. Returns the buffer if it contains no payload
    /// that is still needed.
    // fuzz: connection
    pub fn handle_datagrams(&mut self, now: Instant, mut batch: Datagrams) -> Option<Vec<u8>> {
        self.timing.now = now;
        let (len, stride) = (batch.len.min(batch.bytes.len()), batch.stride.max(1));
        let mut at = 0;
        let mut fresh = 0;
        let mut eliciting = 0;
        let mut urgency = Urgency::Later;
        let (mut opened, mut order) = (0, Order::Overtaken);
        let mut handshake_bytes = 0;
        let received = batch.received.min(now);
        let (source, local) = (batch.source, batch.local);
        // Datagrams after the peer's CLOSE are ignored.
        while at < len && self.state != State::Closed {
            let end = (at + stride).min(len);
            let packet = &mut batch.bytes[at..end];
            if is_long(packet) {
                handshake_bytes += self.handle_long(now, packet);
            } else if self.state == State::Handshaking {
                self.keep_early(source, received, packet);
            } else if let Some(accepted) = self.handle_short(now, received, packet, at) {
                fresh += 1;
                eliciting += u64::from(accepted.eliciting);
                urgency = urgency.max(accepted.urgency);
                opened += (end - at) as u64;
                order = order.max(accepted.order);
            }
            at = end;
        }
        if handshake_bytes > 0 {
            self.note_handshake_source(source, handshake_bytes);
        }
        if fresh > 0 {
            self.note_address((source, local), opened, order);
            self.recovery.on_packet_received(now - self.timing.last_received);
            self.timing.last_received = now;
            self.receipts.sample(now);
            if batch.congestion_experienced {
                self.receipts.on_ce(fresh);
            }
            for _ in 0..eliciting {
                self.receipts.on_eliciting(now, urgency);
            }
            if urgency == Urgency::Full {
                self.receipts.on_probe(now);
            }
            self.close_again();
        }
        let rest = self.keep_runs(batch);
        self.handle_early(now);
        self.check_budget();
        rest
    }

    fn keep_runs(&mut self, batch: Datagrams) -> Option<Vec<u8>> {
        let mut runs = core::mem::take(&mut self.scratch.runs);
        let payload: usize = runs.iter().map(|found| found.shape.len).sum();
        if payload == 0 {
            return Some(batch.bytes);
        }
        let crowded = self.receive_flow.is_crowded();
        let least = if crowded { KEEP_EIGHTHS_MIN_CROWDED } else { KEEP_EIGHTHS_MIN };
        let sparse = self.fresh(&runs) < batch.bytes.len() / 8 * least;
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

    /// Decrypts one short-header packet that begins at `at` of the batch. Returns `None` if it
    /// changed nothing.
    fn handle_short(
        &mut self,
        now: Instant,
        received: Instant,
        packet: &mut [u8],
        at: usize,
    ) -> Option<Accepted> {
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
            // Only a server that has the client's last flight has these keys, so the handshake is
            // complete.
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
                    PacketKind::Control => Urgency::Full,
                };
                let order = if newest { Order::Newest } else { Order::Overtaken };
                let accepted = Accepted { eliciting, urgency, order };
                if header.kind == PacketKind::Control {
                    let body = body.to_vec();
                    self.apply_control(now, &body);
                }
                Some(accepted)
            }
            Err(violation) => {
                self.fail(&violation);
                None
            }
        }
    }

    /// Records the payload of a data packet. If it continues the last run, it becomes a part of it.
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

    /// Decodes a whole control packet before any frame of it is applied. Returns whether it is
    /// ack-eliciting.
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
                self.open_if_new(stream)?;
                if let Some(outgoing) = self.streams.outgoing.get_mut(&stream) {
                    outgoing.set_limit(limit);
                    if outgoing.sendable().is_some() {
                        let (place, clock) = (&mut outgoing.place, (now, self.recovery.srtt()));
                        self.streams.schedule.enter(stream, place, Backlog::Old, clock);
                    }
                }
            }
            Frame::MaxStreams { kind, count } => {
                let allowed = &mut self.streams.peer_allows[kind_index(kind)];
                *allowed = count.max(*allowed);
            }
            Frame::Fin { stream, size } => return self.on_fin(stream, size, None),
            // spec: stream-3
            Frame::ResetAt { stream, code, size } => return self.on_fin(stream, size, Some(code)),
            Frame::Reset { stream, code, size } => return self.on_reset(stream, code, size),
            Frame::Stop { stream, code } => {
                self.open_if_new(stream)?;
                // RESET states how many bytes were sent, so that both ends agree on the
                // flow-control credit.
                if let Some(outgoing) = self.forget_outgoing(stream) {
                    self.events.push_back(Event::Stopped(stream, code));
                    let size = outgoing.sent();
                    self.control.push_back(Frame::Reset { stream, code, size });
                }
            }
            Frame::PathChallenge(token) => {
                // Only the response to the newest challenge is kept, so challenges cannot
                // accumulate memory here.
                self.control.retain(|frame| !matches!(frame, Frame::PathResponse(_)));
                self.control.push_back(Frame::PathResponse(token));
            }
            Frame::Close { code, reason } => {
                // An end that has closed the connection has already informed its application.
                if self.state == State::Established {
                    self.events.push_back(Event::Closed(CloseReason::of_peer(code, &reason)));
                }
                self.state = State::Closed;
            }
        }
        Ok(())
    }

    /// Handles the final size of a stream, and the code if the peer ends it abnormally there.
    fn on_fin(&mut self, id: StreamId, size: u64, code: Option<u64>) -> Result<(), Violation> {
        let Some(incoming) = self.incoming(id)? else { return Ok(()) };
        if incoming.is_ended() {
            return Ok(());
        }
        match code {
            Some(code) => incoming.on_reset_at(size, code)?,
            None => incoming.on_fin(size)?,
        }
        if incoming.is_spent() {
            self.forget_incoming(id);
        }
        self.make_readable(id);
        Ok(())
    }

    fn on_reset(&mut self, id: StreamId, code: u64, size: u64) -> Result<(), Violation> {
        let Some(incoming) = self.incoming(id)? else { return Ok(()) };
        let (grown, untaken) = incoming.on_reset(size)?;
        let wanted = !incoming.is_discarding();
        self.forget_incoming(id);
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
        Ok(())
    }

    fn on_stream_data(&mut self, id: StreamId, offset: u64, run: Run) -> Result<(), Violation> {
        let Some(incoming) = self.incoming(id)? else { return Ok(()) };
        let before = incoming.pieces();
        let grown = incoming.on_data(offset, run)?;
        let pieces = incoming.pieces();
        let (discarding, spent) = (incoming.is_discarding(), incoming.is_spent());
        self.streams.pieces = self.streams.pieces + pieces - before;
        if self.streams.pieces > self.most_pieces() {
            return Err(Violation::flow_control("streams in too many pieces"));
        }
        self.receive_flow.on_received(grown)?;
        if discarding {
            if spent {
                self.forget_incoming(id);
            }
            let limit = self.receive_flow.on_consumed(grown);
            self.control.extend(limit.map(Frame::MaxData));
            return Ok(());
        }
        self.tally.received_payload += grown;
        self.make_readable(id);
        self.list_reader(id);
        Ok(())
    }

    /// Queues a stream for the application.
    fn make_readable(&mut self, id: StreamId) {
        if let Some(incoming) = self.streams.incoming.get_mut(&id)
            && incoming.set_turn(Turn::Waits) == Turn::None
        {
            self.streams.readable.push_back(id);
        }
    }

    /// The receiving half of `id`, which is opened if the peer may open it now. `None` if it has
    /// ended.
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

    /// Handles a frame about a stream that may arrive before the stream's first byte. A
    /// bidirectional stream is opened by whatever arrives first.
    fn open_if_new(&mut self, id: StreamId) -> Result<(), Violation> {
        let by_peer = id.by_server() == (self.side == Side::Client);
        if by_peer && id.kind() == StreamKind::Ordered {
            self.incoming(id)?;
        }
        Ok(())
    }

    // spec: stream-1
    /// Opening a stream also opens all streams of its kind with lower numbers (RFC 9000, section
    /// 2.1).
    fn open_by_peer(&mut self, id: StreamId) -> Result<(), Violation> {
        let slot = kind_index(id.kind());
        // The announced limit is the number of ended streams plus `max_streams`, so at most
        // `max_streams` are open at a time.
        if id.index() >= self.streams.peer_limits[slot] {
            return Err(Violation::flow_control("more streams than allowed"));
        }
        for index in self.streams.peer_opened[slot]..=id.index() {
            let id = StreamId::new(index, id.kind(), id.by_server());
            self.streams.incoming.insert(id, Incoming::new(id, self.first_window()));
            if id.kind() == StreamKind::Ordered {
                let limit = self.transport.as_ref().map_or(0, |t| t.peer.max_stream_data);
                self.streams.outgoing.insert(id, Outgoing::new(limit));
            }
            self.events.push_back(Event::Opened(id));
        }
        self.streams.peer_opened[slot] = id.index() + 1;
        Ok(())
    }

    /// Sets the total number of datagrams that the receiving host dropped because a socket buffer
    /// was full.
    pub fn set_host_drops(&mut self, drops: u64) {
        self.tally.host_drops = drops;
        self.receipts.set_host_drops(drops);
    }

    /// Records that the socket refused a datagram of `size` bytes as larger than the path MTU.
    pub fn handle_too_big(&mut self, now: Instant, size: usize) {
        self.mtu.on_too_big(now, u16::try_from(size).unwrap_or(u16::MAX));
    }

    /// Payload bytes of a full-size data packet.
    pub(super) const fn chunk(&self) -> usize {
        self.mtu.current() as usize - hikyaku_wire::DATA_OVERHEAD
    }
}

/// What follows from an accepted packet.
struct Accepted {
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
