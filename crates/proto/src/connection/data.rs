//! Data packets: batches of equal segments, each filled from one stream as far as it goes.

use super::Connection;
use crate::recovery::{Again, Draft, Recovery};
use crate::sent::{Content, Sent};
use alloc::vec::Vec;
use hikyaku_units::Instant;
use hikyaku_wire::{
    DATA_OVERHEAD, Frame, PacketKind, SHORT_HEADER_LEN, ShortHeader, StreamId, TRAILER_LEN, Trailer,
};

/// The largest UDP payload that one send call takes.
const MAX_BATCH: usize = 65_507;
/// Segments in one batch: what every kernel with segmentation offload takes.
const MAX_SEGMENTS: usize = 64;

/// A batch that was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Built {
    /// Bytes in all.
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

    /// Builds data packets of at most `budget` bytes in all at the begin of `out`, which grows to
    /// a full batch once and is not cleared: what an earlier batch left there is overwritten.
    pub(super) fn build_data(
        &mut self,
        now: Instant,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> Option<Built> {
        let segment = usize::from(self.mtu.current());
        let most = budget.min(MAX_BATCH).min(segment * MAX_SEGMENTS).max(segment);
        let room = most / segment * segment;
        if out.len() < room {
            out.resize(room, 0);
        }
        let mut at = 0;
        let mut draft: Option<Draft> = None;
        // New payload under its own cap: as much as that lets go at once.
        let payload = &self.pacers.payload;
        let mut fresh =
            if payload.is_due(now) { payload.batch().max(self.chunk() as u64) } else { 0 };
        // Only the last packet may be shorter.
        while at < room && at.is_multiple_of(segment) {
            let Some(part) = self.next_part(now, (room - at) / segment, &mut fresh) else { break };
            at += self.build_part(now, &part, &mut out[at..room], &mut draft);
        }
        log(&mut self.recovery, draft);
        (at > 0).then_some(Built { len: at, segment: segment.min(at) })
    }

    /// The next piece to send, of at most `packets` packets: what is lost before what is new, of
    /// which `fresh` bytes may go now.
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
        let len = available.min(most).min(whole);
        *fresh -= len;
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

    /// The next stream with new data: id, offset, bytes that flow control allows.
    pub(super) fn next_new(&self) -> Option<(StreamId, u64, u64)> {
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

    /// Builds the packets of `part` into `out`, which has room for them; gives their bytes.
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

/// Adds a packet to the record under way, or begins a new one.
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
