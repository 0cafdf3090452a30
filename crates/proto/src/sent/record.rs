//! One record: a run of packets sent together, and the state of each.

use alloc::vec::Vec;
use hikyaku_cc::Volume;
use hikyaku_units::Instant;
use hikyaku_wire::{Frame, StreamId};

/// Maximum number of packets in one record.
pub(crate) const RECORD_PACKETS_MAX: u32 = 64;

/// What a run of packets carries.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Content {
    /// Consecutive pieces of `chunk` bytes of a stream from `offset`, `len` bytes in total.
    Data { stream: StreamId, offset: u64, len: u32, chunk: u32, generation: u8 },
    /// Frames that are retransmitted if lost.
    Control(Vec<Frame>),
    /// A path-MTU probe with a UDP payload of this many bytes.
    Probe(u16),
}

/// A run of packets that were sent together.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) at: Instant,
    /// Bytes of UDP payload of each packet. The last may be shorter: `tail`.
    pub(crate) size: u32,
    pub(crate) tail: u32,
    pub(crate) content: Content,
    /// Bytes sent before this record.
    pub(super) before: u64,
    pub(super) acked: u64,
    pub(super) covered: u64,
    pub(super) lost: u64,
}

impl Sent {
    pub(crate) const fn new(
        first: u64,
        count: u32,
        at: Instant,
        size: u32,
        content: Content,
    ) -> Self {
        Self {
            first,
            count,
            at,
            size,
            tail: size,
            content,
            before: 0,
            acked: 0,
            covered: 0,
            lost: 0,
        }
    }

    pub(super) const fn all(&self) -> u64 {
        u64::MAX >> (64 - self.count)
    }

    /// The packet number after the last one of the record.
    pub(super) const fn end(&self) -> u64 {
        self.first + self.count as u64
    }

    pub(super) const fn decided(&self) -> bool {
        self.acked | self.lost == self.all()
    }

    /// Packets that are reported missing and not yet declared lost.
    pub(super) const fn missing(&self) -> u64 {
        self.covered & !self.acked & !self.lost
    }

    /// The size of the record's frames in frames. The record itself counts as one.
    pub(super) const fn frames(&self) -> usize {
        match &self.content {
            Content::Control(frames) => 1 + frames.len(),
            Content::Data { .. } | Content::Probe(_) => 0,
        }
    }

    pub(super) fn volume(&self, bits: u64) -> Volume {
        let packets = u64::from(bits.count_ones());
        let last = 1 << (self.count - 1);
        let short = if bits & last != 0 { u64::from(self.size - self.tail) } else { 0 };
        Volume { packets, bytes: packets * u64::from(self.size) - short }
    }
}

/// The fate of consecutive packets of one record.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fate {
    /// This part of a stream was acknowledged.
    Arrived { stream: StreamId, offset: u64, len: u64 },
    /// This part of a stream was lost in its `generation`-th transmission.
    Lost { stream: StreamId, offset: u64, len: u64, generation: u8 },
    /// A packet with the final size of this stream was acknowledged.
    FinArrived(StreamId),
    /// These frames were lost.
    ControlLost(Vec<Frame>),
    /// The path-MTU probe of this size was acknowledged.
    ProbeArrived(u16),
    /// The path-MTU probe of this size was lost.
    ProbeLost(u16),
}

/// The bits of the packets in `from..end`.
pub(super) fn mask(sent: &Sent, from: u64, end: u64) -> u64 {
    let lo = from.saturating_sub(sent.first).min(u64::from(sent.count));
    let hi = end.saturating_sub(sent.first).min(u64::from(sent.count));
    if lo >= hi { 0 } else { (u64::MAX >> (64 - (hi - lo))) << lo }
}

/// The runs of set bits, as (first bit, count).
pub(super) fn runs(mut bits: u64) -> impl Iterator<Item = (u32, u32)> {
    let mut at = 0;
    core::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let skip = bits.trailing_zeros();
        let shifted = bits >> skip;
        let len = (!shifted).trailing_zeros();
        let run = (at + skip, len);
        bits = if len == 64 { 0 } else { shifted >> len };
        at = run.0 + len;
        Some(run)
    })
}

fn span(offset: u64, len: u32, chunk: u32, run: (u32, u32)) -> (u64, u64) {
    let from = (run.0 * chunk).min(len);
    let to = (run.0 + run.1).saturating_mul(chunk).min(len);
    (offset + u64::from(from), u64::from(to - from))
}

pub(super) fn arrived_fates(sent: &Sent, bits: u64, fates: &mut Vec<Fate>) {
    match &sent.content {
        &Content::Data { stream, offset, len, chunk, .. } => {
            fates.extend(runs(bits).map(|run| {
                let (offset, len) = span(offset, len, chunk, run);
                Fate::Arrived { stream, offset, len }
            }));
        }
        Content::Control(frames) => fates.extend(frames.iter().filter_map(|frame| match frame {
            Frame::Fin { stream, .. } | Frame::ResetAt { stream, .. } => {
                Some(Fate::FinArrived(*stream))
            }
            _ => None,
        })),
        Content::Probe(size) => fates.push(Fate::ProbeArrived(*size)),
    }
}

pub(super) fn lost_fates(sent: &Sent, bits: u64, fates: &mut Vec<Fate>) {
    match &sent.content {
        &Content::Data { stream, offset, len, chunk, generation } => {
            fates.extend(runs(bits).map(|run| {
                let (offset, len) = span(offset, len, chunk, run);
                Fate::Lost { stream, offset, len, generation }
            }));
        }
        Content::Control(frames) => fates.push(Fate::ControlLost(frames.clone())),
        Content::Probe(size) => fates.push(Fate::ProbeLost(*size)),
    }
}
