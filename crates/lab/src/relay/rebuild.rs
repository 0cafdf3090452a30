//! Builds the packet that carries a run of segments of a super-packet.

use super::arena::{Arena, Slice};
use super::cut::Piece;
use super::packet::{self, Ip, Layout, Transport};
use hikyaku_link::Ecn;
use hikyaku_tun::{Cwr, Gso, Header};
use std::ops::Range;

/// A packet in the arena, with its offload header. `head` holds all headers and possibly the
/// payload; `body`, if it is not empty, holds the whole payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) head: Slice,
    pub(crate) body: Slice,
}

/// Where corruption changes a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corruption {
    /// On the wire: the receiver's checksum detects it.
    #[default]
    Wire,
    /// In the sender, before the checksum is computed: only a check of the contents detects it.
    /// This applies to UDP payload; other traffic is corrupted on the wire.
    PastChecksum,
}

// TCP flags in the low byte, and CWR.
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Length of the offload header and the longest IP and TCP headers.
const HEAD_BYTES_MAX: usize = Header::LEN + 60 + 60;

impl Packet {
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    pub(crate) fn release(self, arena: &mut Arena) {
        arena.release(self.head);
        arena.release(self.body);
    }

    /// A second reference to the same bytes.
    pub(crate) fn share(self, arena: &mut Arena) -> Self {
        Self {
            head: arena.part(self.head, 0..self.head.len()),
            body: arena.part(self.body, 0..self.body.len()),
        }
    }

    /// The packet that carries `piece` of this one, whose layout is `layout`. `None` if the arena
    /// is full.
    pub(crate) fn piece(self, arena: &mut Arena, layout: &Layout, piece: &Piece) -> Option<Self> {
        let all = piece.segments == (0..layout.segments());
        let head = arena.get(self.head);
        let ce = piece.ce && packet::ecn(&head[Header::LEN..], layout.ip) == Ecn::Capable;
        if all && !ce {
            return Some(self.share(arena));
        }
        let headers = Header::LEN + layout.payload_at;
        let mut made = [0; HEAD_BYTES_MAX];
        let made = &mut made[..headers];
        made.copy_from_slice(&head[..headers]);
        write_headers(made, layout, &piece.segments, ce);
        let payload = payload_of(layout, &piece.segments);
        let body = if self.body.is_empty() {
            arena.part(self.head, headers + payload.start..headers + payload.end)
        } else {
            arena.part(self.body, payload)
        };
        match arena.put(made) {
            Some(head) => Some(Self { head, body }),
            None => {
                arena.release(body);
                None
            }
        }
    }

    /// This packet, which has to be a single wire segment, with the bit selected by `choice`
    /// flipped.
    pub(crate) fn corrupted(
        self,
        arena: &mut Arena,
        corruption: Corruption,
        choice: u32,
    ) -> Option<Self> {
        let mut bytes = Vec::with_capacity(self.len());
        bytes.extend_from_slice(arena.get(self.head));
        bytes.extend_from_slice(arena.get(self.body));
        if let Some(layout) = Layout::parse(&bytes, bytes.len()) {
            corrupt(&mut bytes, &layout, corruption, choice);
        }
        arena.put(&bytes).map(|head| Self { head, body: Slice::EMPTY })
    }
}

/// The range of the payload that belongs to `segments`.
fn payload_of(layout: &Layout, segments: &Range<usize>) -> Range<usize> {
    let whole = layout.len - layout.payload_at;
    let step = layout.step();
    segments.start * step..(segments.end * step).min(whole)
}

/// Rewrites the headers of a super-packet for a run of its segments.
fn write_headers(made: &mut [u8], layout: &Layout, segments: &Range<usize>, ce: bool) {
    let (first, last) = (segments.start == 0, segments.end == layout.segments());
    let payload = payload_of(layout, segments);
    let len = layout.payload_at + payload.len();
    let mut offload = layout.offload;
    if segments.len() == 1 {
        offload = Header { gso: Gso::None, gso_size: 0, header_len: 0, ..offload };
    } else if !first {
        offload.gso = match offload.gso {
            Gso::Tcp4(_) => Gso::Tcp4(Cwr::Clear),
            Gso::Tcp6(_) => Gso::Tcp6(Cwr::Clear),
            other => other,
        };
    }
    made[..Header::LEN].copy_from_slice(&offload.to_bytes());
    let packet = &mut made[Header::LEN..];
    if ce {
        packet::mark_ce(packet, layout.ip);
    }
    if layout.ip == Ip::V4 {
        let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(segments.start as u16);
        packet[4..6].copy_from_slice(&id.to_be_bytes());
    }
    if layout.transport == Transport::Tcp {
        let tcp = &mut packet[layout.transport_at..];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let sequence = sequence.wrapping_add(payload.start as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        tcp[13] &= if last { 0xff } else { !FIN_PSH };
        tcp[13] &= if first { 0xff } else { !CWR };
    }
    packet::set_lengths(packet, layout, len);
    if offload.checksum.is_some() {
        packet::set_partial_checksum(packet, layout, len);
    }
}

/// Flips one bit of a whole segment, so that the receiver's checksum does or does not detect it.
fn corrupt(bytes: &mut [u8], layout: &Layout, corruption: Corruption, choice: u32) {
    let has_payload = layout.payload_at < layout.len;
    let past =
        corruption == Corruption::PastChecksum && layout.transport == Transport::Udp && has_payload;
    let pending = layout.offload.checksum.is_some();
    let (offload, packet) = bytes.split_at_mut(Header::LEN);
    offload.fill(0);
    if past {
        flip(&mut packet[layout.payload_at..], choice);
        packet::set_partial_checksum(packet, layout, layout.len);
        packet::complete_checksum(packet, layout);
        return;
    }
    if pending {
        packet::complete_checksum(packet, layout);
    }
    flip(&mut packet[layout.transport_at..], choice);
}

fn flip(bytes: &mut [u8], choice: u32) {
    let bit = (u64::from(choice) * (bytes.len() as u64 * 8)) >> 32;
    if let Some(byte) = bytes.get_mut(bit as usize / 8) {
        *byte ^= 1 << (bit % 8);
    }
}
