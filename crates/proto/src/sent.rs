//! What is in flight: one record for a run of packets, three bits for each packet.
//!
//! A record covers up to 64 packets with consecutive numbers, sent together, carrying consecutive
//! pieces of one stream (or one control packet). At 10 Gbit/s and 200 ms the whole log is a few
//! thousand records.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_cc::{Arrival, Settled, Volume};
use hikyaku_units::Instant;
use hikyaku_wire::{Ack, Frame, StreamId};

/// Packets in one record, at most.
pub(crate) const MAX_RUN: u32 = 64;

/// What a run of packets carries.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Content {
    /// Consecutive pieces of `chunk` bytes of a stream from `offset`, `len` bytes in all.
    Data { stream: StreamId, offset: u64, len: u32, chunk: u32, generation: u8 },
    /// Frames that must arrive.
    Control(Vec<Frame>),
    /// A path-MTU probe of this many bytes of UDP payload.
    Probe(u16),
}

/// A record.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) at: Instant,
    /// UDP payload bytes of each packet (the last may be shorter: `tail`).
    pub(crate) size: u32,
    pub(crate) tail: u32,
    pub(crate) content: Content,
    /// Bytes sent before this record.
    before: u64,
    acked: u64,
    covered: u64,
    lost: u64,
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

    const fn all(&self) -> u64 {
        u64::MAX >> (64 - self.count)
    }

    const fn decided(&self) -> bool {
        self.acked | self.lost == self.all()
    }

    fn volume(&self, bits: u64) -> Volume {
        let packets = u64::from(bits.count_ones());
        let last = 1 << (self.count - 1);
        let short = if bits & last != 0 { u64::from(self.size - self.tail) } else { 0 };
        Volume { packets, bytes: packets * u64::from(self.size) - short }
    }
}

/// The fate of consecutive packets of one record.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fate {
    /// This part of a stream arrived.
    Arrived { stream: StreamId, offset: u64, len: u64 },
    /// This part of a stream is lost, in its `generation`-th transmission.
    Lost { stream: StreamId, offset: u64, len: u64, generation: u8 },
    /// These frames are lost.
    ControlLost(Vec<Frame>),
    /// The probe of this size arrived.
    ProbeArrived(u16),
    /// The probe of this size is lost.
    ProbeLost(u16),
}

/// The sum of what one ACK changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) acked: Volume,
    pub(crate) lost: Volume,
    pub(crate) settled: Settled,
    /// Packets once judged lost that arrived after all.
    pub(crate) spurious: u64,
    pub(crate) arrivals: Vec<Arrival>,
    /// When the newest packet known to have arrived was sent.
    pub(crate) newest_sent: Option<Instant>,
    pub(crate) fates: Vec<Fate>,
    /// An acknowledged number was never sent.
    pub(crate) forged: bool,
}

/// All records whose fate is not decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    log: VecDeque<Sent>,
    in_flight: u64,
    sent_bytes: u64,
    /// Numbers left out on purpose: only a liar acknowledges them.
    skipped: VecDeque<u64>,
    /// The number after the last record.
    end: u64,
    /// Packets below this number have been counted as settled.
    settled_to: u64,
}

impl SentLog {
    pub(crate) fn push(&mut self, mut sent: Sent) {
        sent.before = self.sent_bytes;
        self.sent_bytes += sent.volume(sent.all()).bytes;
        self.in_flight += sent.volume(sent.all()).bytes;
        self.end = sent.first + u64::from(sent.count);
        self.log.push_back(sent);
    }

    /// Leaves out `pn`: an ACK for it proves that the receiver lies.
    pub(crate) fn skip(&mut self, pn: u64) {
        self.skipped.push_back(pn);
        if self.skipped.len() > 64 {
            self.skipped.pop_front();
        }
    }

    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The lowest packet number whose fate is unknown.
    pub(crate) fn floor(&self) -> u64 {
        self.log.iter().find(|sent| !sent.decided()).map_or(self.end, |sent| sent.first)
    }

    /// Applies coverage: marks what arrived, remembers what is known not to have.
    pub(crate) fn apply(&mut self, ack: &Ack, next_pn: u64, out: &mut Outcome) {
        if ack.largest >= next_pn {
            out.forged = true;
            return;
        }
        for block in &ack.blocks {
            if block.end() > next_pn {
                out.forged = true;
                return;
            }
            for (from, end) in block.arrived() {
                out.forged |= self.skipped.iter().any(|pn| (from..end).contains(pn));
                self.mark_arrived(from, end, out);
            }
            self.mark_covered(block.first, block.end());
        }
        for sample in &ack.samples {
            if let Some(sent) = self.find(sample.packet_number) {
                out.arrivals.push(Arrival {
                    packet_number: sample.packet_number,
                    sent: sent.at,
                    received_micros: sample.micros,
                    delivered: sample.bytes,
                    offered: sent.before
                        + (sample.packet_number + 1 - sent.first) * u64::from(sent.size),
                });
            }
        }
    }

    fn index_of(&self, pn: u64) -> usize {
        self.log.partition_point(|sent| sent.first + u64::from(sent.count) <= pn)
    }

    fn find(&self, pn: u64) -> Option<&Sent> {
        self.log.get(self.index_of(pn)).filter(|sent| sent.first <= pn)
    }

    fn mark_arrived(&mut self, from: u64, end: u64, out: &mut Outcome) {
        let mut index = self.index_of(from);
        while let Some(sent) = self.log.get_mut(index).filter(|sent| sent.first < end) {
            let bits = mask(sent, from, end) & !sent.acked;
            index += 1;
            if bits == 0 {
                continue;
            }
            let late = bits & sent.lost;
            out.spurious += u64::from(late.count_ones());
            sent.lost &= !late;
            sent.acked |= bits;
            sent.covered |= bits;
            let volume = sent.volume(bits);
            out.acked.add(volume.packets, volume.bytes);
            self.in_flight -= sent.volume(bits & !late).bytes;
            out.newest_sent = out.newest_sent.max(Some(sent.at));
            arrived_fates(sent, bits, &mut out.fates);
        }
    }

    fn mark_covered(&mut self, from: u64, end: u64) {
        let mut index = self.index_of(from);
        while let Some(sent) = self.log.get_mut(index).filter(|sent| sent.first < end) {
            sent.covered |= mask(sent, from, end);
            index += 1;
        }
    }

    /// Judges lost what is known to be missing and was sent before `before`. Gives the time of
    /// sending of the oldest packet that is missing but not yet judged.
    // spec: loss-1
    pub(crate) fn judge(&mut self, before: Instant, out: &mut Outcome) -> Option<Instant> {
        let mut waiting = None;
        for sent in &mut self.log {
            let missing = sent.covered & !sent.acked & !sent.lost;
            if missing == 0 {
                continue;
            }
            if sent.at > before {
                waiting = Some(sent.at);
                break;
            }
            sent.lost |= missing;
            let volume = sent.volume(missing);
            out.lost.add(volume.packets, volume.bytes);
            self.in_flight -= volume.bytes;
            lost_fates(sent, missing, &mut out.fates);
        }
        self.settle(before, out);
        waiting
    }

    /// Counts the packets sent before `before` that have not been counted yet.
    fn settle(&mut self, before: Instant, out: &mut Outcome) {
        let mut index = self.index_of(self.settled_to);
        while let Some(sent) = self.log.get(index).filter(|sent| sent.at <= before) {
            out.settled.arrived += u64::from(sent.acked.count_ones());
            out.settled.lost += u64::from(sent.lost.count_ones());
            self.settled_to = sent.first + u64::from(sent.count);
            index += 1;
        }
        out.settled.below = self.settled_to;
    }

    /// Forgets records that are decided. Those with lost packets stay for `memory`, so that a late
    /// arrival is seen for what it is.
    pub(crate) fn forget(&mut self, now: Instant, memory: Duration) {
        while let Some(sent) = self.log.front() {
            let counted = sent.first + u64::from(sent.count) <= self.settled_to;
            if !sent.decided() || !counted || (sent.lost != 0 && now - sent.at < memory) {
                break;
            }
            self.log.pop_front();
        }
    }
}

fn mask(sent: &Sent, from: u64, end: u64) -> u64 {
    let lo = from.saturating_sub(sent.first).min(u64::from(sent.count));
    let hi = end.saturating_sub(sent.first).min(u64::from(sent.count));
    if lo >= hi { 0 } else { (u64::MAX >> (64 - (hi - lo))) << lo }
}

/// The runs of set bits, as (first bit, count).
fn runs(mut bits: u64) -> impl Iterator<Item = (u32, u32)> {
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

fn arrived_fates(sent: &Sent, bits: u64, fates: &mut Vec<Fate>) {
    match &sent.content {
        &Content::Data { stream, offset, len, chunk, .. } => {
            fates.extend(runs(bits).map(|run| {
                let (offset, len) = span(offset, len, chunk, run);
                Fate::Arrived { stream, offset, len }
            }));
        }
        Content::Control(_) => {}
        Content::Probe(size) => fates.push(Fate::ProbeArrived(*size)),
    }
}

fn lost_fates(sent: &Sent, bits: u64, fates: &mut Vec<Fate>) {
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

#[cfg(test)]
mod tests;
