//! Data packets: batches of equal segments, each filled from one stream as far as possible.

use super::Connection;
use crate::recovery::{Again, Draft, Recovery};
use crate::sent::{Content, Sent};
use crate::streams::Rest;
use alloc::vec::Vec;
use hikyaku_units::Instant;
use hikyaku_wire::{
    DATA_OVERHEAD, PacketKind, SHORT_HEADER_LEN, ShortHeader, StreamId, TRAILER_LEN, Trailer,
};

/// The largest UDP payload of one send call, in bytes.
const BATCH_BYTES_MAX: usize = 65_507;
/// Maximum segments of one batch, which every kernel with segmentation offload accepts.
const BATCH_SEGMENTS_MAX: usize = 64;

/// A batch that was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Built {
    /// Bytes of all packets together.
    pub(super) len: usize,
    /// Bytes of each packet; the last may be shorter.
    pub(super) segment: usize,
}

impl Connection {
    pub(super) fn has_data_to_send(&self) -> bool {
        self.recovery_has_data() || self.next_new().is_some()
    }

    pub(super) fn recovery_has_data(&self) -> bool {
        self.recovery.repairs.has_due()
    }

    /// Builds data packets of at most `budget` bytes in total at the start of `out`. `out` grows
    /// once to the size of a full batch and is not cleared, so bytes of an earlier batch are
    /// overwritten.
    pub(super) fn build_data(
        &mut self,
        now: Instant,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<Built> {
        let segment = usize::from(self.mtu.current());
        let most = budget.min(BATCH_BYTES_MAX).min(segment * BATCH_SEGMENTS_MAX).max(segment);
        let room = most / segment * segment;
        if out.len() < room {
            out.resize(room, 0);
        }
        let mut at = 0;
        let mut draft: Option<Draft> = None;
        // New payload is also limited by the payload rate; `fresh` is what that allows now.
        let payload = &self.pacers.payload;
        let mut fresh =
            if payload.is_due(now) { payload.batch().max(self.chunk() as u64) } else { 0 };
        // Only the last packet of a batch may be shorter than a segment.
        while at < room && at.is_multiple_of(segment) {
            let Some(part) = self.next_part(now, (room - at) / segment, &mut fresh) else { break };
            at += self.build_part(now, &part, &mut out[at..room], &mut draft);
        }
        log(&mut self.recovery, draft);
        (at > 0).then_some(Built { len: at, segment: segment.min(at) })
    }

    /// The next piece to send, of at most `packets` packets. Retransmissions precede new data, of
    /// which `fresh` bytes may be sent now.
    fn next_part(&mut self, now: Instant, packets: usize, fresh: &mut u64) -> Option<Again> {
        let chunk = self.chunk() as u64;
        let most = chunk * packets as u64;
        if let Some(part) = self.next_again(most) {
            return Some(part);
        }
        let whole = *fresh / chunk * chunk;
        if whole == 0 {
            return None;
        }
        let (id, offset, available) = self.next_new()?;
        let outgoing = self.streams.outgoing.get_mut(&id)?;
        let share = self.streams.schedule.share(&outgoing.place).div_ceil(chunk);
        let len = available.min(most).min(whole).min(share.saturating_mul(chunk));
        *fresh -= len;
        outgoing.advance(offset + len);
        let rest = if outgoing.sendable().is_some() { Rest::Some } else { Rest::Nothing };
        self.streams.schedule.on_sent(id, &mut outgoing.place, len, rest);
        self.control.extend(outgoing.take_fin(id));
        if self.streams.served.last() != Some(&id) {
            self.streams.served.push(id);
        }
        self.streams.unsent -= len;
        self.send_flow.on_sent(len);
        self.tally.sent_payload += len;
        self.pacers.payload.on_sent(now, len);
        Some(Again { stream: id, offset, len, generation: 0 })
    }

    /// The next lost piece that is still missing.
    fn next_again(&mut self, most: u64) -> Option<Again> {
        loop {
            let again = self.recovery.repairs.due().pop_front()?;
            let Some(outgoing) = self.streams.outgoing.get(&again.stream) else { continue };
            let first = outgoing.missing(again.offset, again.len).next();
            let Some((from, to)) = first else { continue };
            let part = Again { offset: from, len: (to - from).min(most), ..again };
            let rest = again.offset + again.len - (from + part.len);
            if rest > 0 {
                let rest = Again { offset: from + part.len, len: rest, ..again };
                self.recovery.repairs.due().push_front(rest);
            }
            return Some(part);
        }
    }

    /// The next stream with new data: its id, the offset, and the bytes that flow control allows.
    pub(super) fn next_new(&self) -> Option<(StreamId, u64, u64)> {
        let available = self.send_flow.available();
        if available == 0 {
            return None;
        }
        let id = self.streams.schedule.first()?;
        let (offset, len) = self.streams.outgoing.get(&id)?.sendable()?;
        Some((id, offset, len.min(available)))
    }

    /// Builds the packets of `part` into `out`, which is large enough. Returns their bytes.
    fn build_part(
        &mut self,
        now: Instant,
        part: &Again,
        out: &mut [u8],
        draft: &mut Option<Draft>,
    ) -> usize {
        let last = self.recovery.controller.ends_train(part.len + DATA_OVERHEAD as u64)
            || !self.has_data_to_send();
        let chunk = self.chunk() as u64;
        let Some(transport) = &mut self.transport else { return 0 };
        let Some(outgoing) = self.streams.outgoing.get(&part.stream) else { return 0 };
        let mut reader = outgoing.reader(part.offset);
        let (mut at, mut done) = (0, 0);
        while done < part.len {
            let piece =
                Again { offset: part.offset + done, len: chunk.min(part.len - done), ..*part };
            done += piece.len;
            let size = piece.len as usize + DATA_OVERHEAD;
            let packet = &mut out[at..at + size];
            let payload = SHORT_HEADER_LEN..SHORT_HEADER_LEN + piece.len as usize;
            if !reader.copy(&mut packet[payload.clone()]) {
                break;
            }
            let pn = self.recovery.take_packet_number();
            let header = ShortHeader {
                kind: PacketKind::Data,
                phase: transport.keys.phase(),
                ack_now: done == part.len && last,
                packet_number: pn,
                destination: transport.remote_id,
            };
            packet[..SHORT_HEADER_LEN].copy_from_slice(&header.encode());
            let trailer = Trailer { stream: piece.stream.0, offset: piece.offset }.encode();
            packet[payload.end..payload.end + TRAILER_LEN].copy_from_slice(&trailer);
            transport.keys.seal(pn, packet);
            note(&mut self.recovery, now, draft, (pn, &piece, size as u32));
            at += size;
        }
        at
    }
}

/// Adds a packet to the record being built, or starts a new record.
fn note(
    recovery: &mut Recovery,
    now: Instant,
    draft: &mut Option<Draft>,
    (pn, piece, size): (u64, &Again, u32),
) {
    let len = piece.len as u32;
    if let Some(draft) = draft
        && draft.continues(pn, piece)
    {
        draft.sent.count += 1;
        draft.sent.tail = size;
        draft.bytes += u64::from(size);
        if let Content::Data { len: total, .. } = &mut draft.sent.content {
            *total += len;
        }
        return;
    }
    let content = Content::Data {
        stream: piece.stream,
        offset: piece.offset,
        len,
        chunk: len,
        generation: piece.generation,
    };
    let fresh = Draft { sent: Sent::new(pn, 1, now, size, content), bytes: u64::from(size) };
    log(recovery, draft.replace(fresh));
}

fn log(recovery: &mut Recovery, draft: Option<Draft>) {
    if let Some(draft) = draft {
        recovery.on_sent(draft.sent, draft.bytes);
    }
}
