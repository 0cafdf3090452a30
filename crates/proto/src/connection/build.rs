//! Packets: data batches of equal segments, and control packets.

use super::Connection;
use crate::recovery::{Again, Draft};
use crate::sent::{Content, Sent};
use alloc::vec::Vec;
use hikyaku_units::Instant;
use hikyaku_wire::{
    DATA_OVERHEAD, Frame, PacketKind, SHORT_HEADER_LEN, ShortHeader, StreamId, TAG_LEN, Trailer,
};

/// The largest UDP payload that one send call takes.
const MAX_BATCH: usize = 65_507;
/// Segments in one batch: what every kernel with segmentation offload takes.
const MAX_SEGMENTS: usize = 64;
/// Sender's news for the receiver four times a round trip.
const FLOORS_PER_RTT: u32 = 4;

impl Connection {
    pub(super) fn has_data_to_send(&self) -> bool {
        self.recovery_has_data() || self.next_new().is_some()
    }

    pub(super) fn recovery_has_data(&self) -> bool {
        self.recovery.has_again()
    }

    /// Builds data packets of at most `budget` bytes in all; gives the segment size.
    pub(super) fn build_data(
        &mut self,
        now: Instant,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let segment = usize::from(self.mtu.current());
        let room = budget.min(MAX_BATCH).min(segment * MAX_SEGMENTS);
        let mut draft: Option<Draft> = None;
        while out.len() + segment <= room.max(segment) {
            let Some(part) = self.next_part(now) else { break };
            let before = out.len();
            let last = !self.has_data_to_send();
            let Some(pn) = self.build_data_packet(&part, last, out) else { continue };
            let size = out.len() - before;
            draft = Some(self.note(now, draft, pn, &part, size));
            if size < segment {
                break;
            }
        }
        self.log(draft);
        (!out.is_empty()).then_some(segment.min(out.len()))
    }

    /// Adds a packet to the record under way, or begins a new one.
    fn note(
        &mut self,
        now: Instant,
        draft: Option<Draft>,
        pn: u64,
        part: &Again,
        size: usize,
    ) -> Draft {
        let (size, len) = (size as u32, part.len as u32);
        match draft {
            Some(mut draft) if draft.continues(pn, part) => {
                draft.sent.count += 1;
                draft.sent.tail = size;
                draft.bytes += u64::from(size);
                if let Content::Data { len: total, .. } = &mut draft.sent.content {
                    *total += len;
                }
                draft
            }
            other => {
                self.log(other);
                let content = Content::Data {
                    stream: part.stream,
                    offset: part.offset,
                    len,
                    chunk: len,
                    generation: part.generation,
                };
                Draft { sent: Sent::new(pn, 1, now, size, content), bytes: u64::from(size) }
            }
        }
    }

    fn log(&mut self, draft: Option<Draft>) {
        if let Some(draft) = draft {
            self.recovery.on_sent(draft.sent, draft.bytes);
        }
    }

    /// The next piece to send: what is lost before what is new.
    fn next_part(&mut self, now: Instant) -> Option<Again> {
        if let Some(part) = self.next_again() {
            return Some(part);
        }
        if !self.pacers.payload.is_due(now) {
            return None;
        }
        let (id, offset, available) = self.next_new()?;
        let len = available.min(self.chunk() as u64);
        let outgoing = self.streams.outgoing.get_mut(&id)?;
        outgoing.advance(offset + len);
        self.streams.cursor = id;
        self.send_flow.on_sent(len);
        self.tally.sent_payload += len;
        self.pacers.payload.on_sent(now, len);
        if let Some(size) = outgoing.take_fin() {
            self.control.push_back(Frame::Fin { stream: id, size });
        }
        Some(Again { stream: id, offset, len, generation: 0 })
    }

    /// The next lost piece that is still missing.
    fn next_again(&mut self) -> Option<Again> {
        let chunk = self.chunk() as u64;
        loop {
            let again = self.recovery.again().pop_front()?;
            let Some(outgoing) = self.streams.outgoing.get(&again.stream) else { continue };
            let first = outgoing.missing(again.offset, again.len).next();
            let Some((from, to)) = first else { continue };
            let part = Again { offset: from, len: (to - from).min(chunk), ..again };
            let rest = again.offset + again.len - (from + part.len);
            if rest > 0 {
                let rest = Again { offset: from + part.len, len: rest, ..again };
                self.recovery.again().push_front(rest);
            }
            return Some(part);
        }
    }

    /// The next stream with new data: id, offset, bytes that flow control allows.
    fn next_new(&self) -> Option<(StreamId, u64, u64)> {
        let available = self.send_flow.available();
        if available == 0 {
            return None;
        }
        let cursor = self.streams.cursor;
        let after = self
            .streams
            .outgoing
            .range((core::ops::Bound::Excluded(cursor), core::ops::Bound::Unbounded));
        let upto = self.streams.outgoing.range(..=cursor);
        after.chain(upto).find_map(|(id, outgoing)| {
            let (offset, len) = outgoing.sendable()?;
            Some((*id, offset, len.min(available)))
        })
    }

    fn build_data_packet(&mut self, part: &Again, last: bool, out: &mut Vec<u8>) -> Option<u64> {
        let transport = self.transport.as_mut()?;
        let outgoing = self.streams.outgoing.get(&part.stream)?;
        let pn = self.recovery.take_packet_number();
        let header = ShortHeader {
            kind: PacketKind::Data,
            phase: transport.keys.phase(),
            ack_now: last,
            packet_number: pn,
            destination: transport.remote_id,
        };
        let at = out.len();
        let len = part.len as usize;
        out.resize(at + len + DATA_OVERHEAD, 0);
        let packet = &mut out[at..];
        packet[..SHORT_HEADER_LEN].copy_from_slice(&header.encode());
        let payload = SHORT_HEADER_LEN..SHORT_HEADER_LEN + len;
        if !outgoing.copy(part.offset, &mut packet[payload.clone()]) {
            out.truncate(at);
            return None;
        }
        let trailer = Trailer { stream: part.stream.0, offset: part.offset }.encode();
        packet[payload.end..payload.end + trailer.len()].copy_from_slice(&trailer);
        transport.keys.seal(pn, packet);
        Some(pn)
    }

    /// Builds one control packet if anything is due; gives its length.
    pub(super) fn build_control(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<usize> {
        if let Some(transport) = &mut self.transport {
            transport.keys.maybe_update(now);
        }
        self.queue_fins();
        if self.receipts.due().is_some_and(|at| at <= now) {
            let ack = Frame::Ack(self.receipts.ack(now));
            self.widen_windows(now);
            return self.build_frames(now, &[ack], Vec::new(), 0, out);
        }
        if let Some(size) = self.mtu.poll(now) {
            return self.build_probe(now, size, out);
        }
        let mut frames = self.due_frames(now);
        if frames.is_empty() && self.control.is_empty() {
            return None;
        }
        let mut reliable = Vec::new();
        let mut estimate = 0;
        while let Some(frame) = self.control.pop_front() {
            estimate += match &frame {
                Frame::Close { reason, .. } => 16 + reason.len(),
                _ => 28,
            };
            frames.push(frame.clone());
            reliable.push(frame);
            if estimate > 1000 {
                break;
            }
        }
        self.build_frames(now, &frames, reliable, 0, out)
    }

    /// FINs whose last byte left earlier (an empty stream, or `finish` called late).
    fn queue_fins(&mut self) {
        for (&stream, outgoing) in &mut self.streams.outgoing {
            if let Some(size) = outgoing.take_fin() {
                self.control.push_back(Frame::Fin { stream, size });
            }
        }
    }

    /// Frames that time asks for: the sender's floor, a question, a keep-alive.
    fn due_frames(&mut self, now: Instant) -> Vec<Frame> {
        let mut frames = Vec::new();
        let active = self.recovery.in_flight() > 0;
        if active && self.timing.next_floor <= now {
            self.timing.next_floor = now + (self.recovery.srtt() / FLOORS_PER_RTT).max(MIN_FLOOR);
            frames.push(Frame::Floor {
                floor: self.recovery.floor(),
                rtt_micros: self.recovery.srtt().as_micros() as u64,
            });
        }
        let asked = self.ask_at().is_some_and(|at| at <= now);
        let keep_alive = now - self.timing.last_sent >= self.config.keep_alive;
        if asked || keep_alive {
            frames.push(Frame::Ping);
            if asked {
                self.recovery.on_asked(now);
            }
        }
        frames
    }

    fn widen_windows(&mut self, now: Instant) {
        let span = self.receipts.span().max(1) as f64;
        let loss = 1.0 - self.receipts.packets() as f64 / span;
        let limit = self.receive_flow.measure(now, self.receipts.bytes(), loss);
        self.control.extend(limit.map(Frame::MaxData));
        let window = self.receive_flow.window();
        for (&stream, incoming) in &mut self.streams.incoming {
            let limit = incoming.widen(window);
            self.control.extend(limit.map(|limit| Frame::MaxStreamData { stream, limit }));
        }
    }

    fn build_probe(&mut self, now: Instant, size: u16, out: &mut Vec<u8>) -> Option<usize> {
        let len = self.seal_frames(&[Frame::Ping], usize::from(size), out)?;
        let pn = self.recovery.next_packet_number() - 1;
        let sent = Sent::new(pn, 1, now, len as u32, Content::Probe(size));
        self.recovery.on_sent(sent, len as u64);
        Some(len)
    }

    fn build_frames(
        &mut self,
        now: Instant,
        frames: &[Frame],
        reliable: Vec<Frame>,
        size: usize,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let eliciting = frames.iter().any(Frame::is_ack_eliciting);
        let len = self.seal_frames(frames, size, out)?;
        let pn = self.recovery.next_packet_number() - 1;
        if eliciting {
            let sent = Sent::new(pn, 1, now, len as u32, Content::Control(reliable));
            self.recovery.on_sent(sent, len as u64);
        } else {
            self.recovery.on_sent_untracked(len as u64);
        }
        Some(len)
    }

    fn seal_frames(&mut self, frames: &[Frame], size: usize, out: &mut Vec<u8>) -> Option<usize> {
        let transport = self.transport.as_mut()?;
        let pn = self.recovery.take_packet_number();
        let header = ShortHeader {
            kind: PacketKind::Control,
            phase: transport.keys.phase(),
            ack_now: frames.contains(&Frame::Ping),
            packet_number: pn,
            destination: transport.remote_id,
        };
        out.clear();
        out.extend_from_slice(&header.encode());
        frames.iter().for_each(|frame| frame.encode(out));
        let padding = size.saturating_sub(out.len() + TAG_LEN);
        out.resize(out.len() + padding + TAG_LEN, 0);
        transport.keys.seal(pn, out);
        Some(out.len())
    }

    pub(super) fn build_close(
        &mut self,
        code: u64,
        reason: Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        self.seal_frames(&[Frame::Close { code, reason }], 0, out)
    }
}

const MIN_FLOOR: core::time::Duration = core::time::Duration::from_millis(2);
