//! Packets in flight: one record for a run of packets, with three bits for each packet.
//!
//! A record covers up to 64 packets with consecutive packet numbers that were sent together. They
//! carry consecutive pieces of one stream, or the record is one control packet. At 10 Gbit/s and a
//! round-trip time of 200 ms the log has a few thousand records.
//!
//! The receiver decides what its acknowledgements report, and when. So the cost of an
//! acknowledgement must not depend on the length of the log. Records that can no longer change are
//! not visited, and records with missing packets have an index of their own.

mod record;

pub(crate) use record::{Content, Fate, RECORD_PACKETS_MAX, Sent};

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_cc::{Arrival, Settled, Volume};
use hikyaku_units::Instant;
use hikyaku_wire::Ack;
use record::{arrived_fates, lost_fates, mask};

/// The combined result of one ACK.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) acked: Volume,
    pub(crate) lost: Volume,
    pub(crate) settled: Settled,
    /// Packets declared lost that arrived after all.
    pub(crate) spurious: u64,
    pub(crate) arrivals: Vec<Arrival>,
    /// The sending time of the newest packet known to have arrived.
    pub(crate) newest_sent: Option<Instant>,
    pub(crate) fates: Vec<Fate>,
    /// The largest acknowledged packet number.
    pub(crate) largest: u64,
    /// The ACK acknowledges a packet number that was never sent.
    pub(crate) forged: bool,
}

/// Records of packets whose fate is unknown, and for a limited time of packets declared lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    /// By the first packet number of each record.
    log: BTreeMap<u64, Sent>,
    /// Records with packets that have not been acknowledged, lost ones included.
    open: BTreeSet<u64>,
    /// Records with packets that are reported missing and not yet declared lost.
    suspect: BTreeSet<u64>,
    in_flight: u64,
    sent_bytes: u64,
    /// Packet numbers skipped on purpose. A receiver that acknowledges one of them is lying.
    skipped: VecDeque<u64>,
    /// The packet number after the last record.
    end: u64,
    /// Packets below this number have been counted as settled.
    settled_to: u64,
    /// The size of the frames that have not been acknowledged, in frames.
    frames: usize,
    /// The fate of all packets below this number is known.
    decided_to: u64,
    /// The packet number at which `forget_behind` resumes its scan. It has left undecided records below; from there on
    /// only `forget` removes records, from the front of the log.
    passed_to: u64,
    /// How many times a record was visited.
    visits: u64,
}

impl SentLog {
    pub(crate) fn push(&mut self, mut sent: Sent) {
        sent.before = self.sent_bytes;
        self.sent_bytes += sent.volume(sent.all()).bytes;
        self.in_flight += sent.volume(sent.all()).bytes;
        self.end = sent.end();
        self.frames += sent.frames();
        self.open.insert(sent.first);
        self.log.insert(sent.first, sent);
    }

    /// Skips `pn`: an ACK of it proves that the receiver acknowledges packets it has not received.
    pub(crate) fn skip(&mut self, pn: u64) {
        self.skipped.push_back(pn);
        if self.skipped.len() > 64 {
            self.skipped.pop_front();
        }
    }

    fn is_skipped(&self, from: u64, end: u64) -> bool {
        let next = self.skipped.partition_point(|pn| *pn < from);
        self.skipped.get(next).is_some_and(|pn| *pn < end)
    }

    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The number of records held.
    pub(crate) fn len(&self) -> usize {
        self.log.len()
    }

    /// Frames held until they are acknowledged. Each packet with frames counts as one more.
    pub(crate) const fn frames(&self) -> usize {
        self.frames
    }

    /// How many times a record was visited, in total.
    pub(crate) const fn visits(&self) -> u64 {
        self.visits
    }

    /// The lowest packet number whose fate is unknown.
    pub(crate) fn floor(&self) -> u64 {
        self.first_undecided().map_or(self.end, |sent| sent.first)
    }

    /// The sending time of the oldest packet whose fate is unknown.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.first_undecided().map(|sent| sent.at)
    }

    fn first_undecided(&self) -> Option<&Sent> {
        let open = self.open.range(self.decided_to..);
        open.filter_map(|first| self.log.get(first)).find(|sent| !sent.decided())
    }

    /// Applies an ACK: marks packets as received, and as missing if a block covers them without
    /// acknowledging them.
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
                out.largest = out.largest.max(end - 1);
                out.forged |= self.is_skipped(from, end);
                self.mark_arrived(from, end, out);
            }
            self.mark_covered(block.first, block.end());
        }
        for sample in &ack.samples {
            if let Some(sent) = self.find(sample.packet_number) {
                out.largest = out.largest.max(sample.packet_number);
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

    fn find(&self, pn: u64) -> Option<&Sent> {
        self.log.range(..=pn).next_back().map(|(_, sent)| sent).filter(|sent| pn < sent.end())
    }

    /// The first packet number of the record that contains `pn`, or `pn` if there is none.
    fn open_from(&self, pn: u64) -> u64 {
        self.find(pn).map_or(pn, |sent| sent.first)
    }

    fn mark_arrived(&mut self, from: u64, end: u64, out: &mut Outcome) {
        let mut at = self.open_from(from);
        while let Some(&first) = self.open.range(at..end.max(at)).next() {
            at = first + 1;
            self.visits += 1;
            let Some(sent) = self.log.get_mut(&first) else { continue };
            let bits = mask(sent, from, end) & !sent.acked;
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
            if sent.acked == sent.all() {
                self.frames -= sent.frames();
                self.open.remove(&first);
            }
            if sent.missing() == 0 {
                self.suspect.remove(&first);
            }
        }
    }

    fn mark_covered(&mut self, from: u64, end: u64) {
        let mut at = self.open_from(from);
        while let Some(&first) = self.open.range(at..end.max(at)).next() {
            at = first + 1;
            self.visits += 1;
            let Some(sent) = self.log.get_mut(&first) else { continue };
            sent.covered |= mask(sent, from, end);
            if sent.missing() != 0 {
                self.suspect.insert(first);
            }
        }
    }

    /// Marks as missing all packets sent until `until` that the receiver has not reported on.
    // spec: loss-6
    pub(crate) fn give_up(&mut self, until: Instant) {
        for first in &self.open {
            let Some(sent) = self.log.get_mut(first) else { continue };
            if sent.at > until {
                break;
            }
            sent.covered = sent.all();
            if sent.missing() != 0 {
                self.suspect.insert(*first);
            }
        }
    }

    /// Declares lost all missing packets sent before `before`. Returns the sending time of the
    /// oldest missing packet that is not yet declared lost.
    // spec: loss-1
    pub(crate) fn judge(&mut self, before: Instant, out: &mut Outcome) -> Option<Instant> {
        let mut waiting = None;
        while let Some(&first) = self.suspect.first() {
            self.visits += 1;
            let Some(sent) = self.log.get_mut(&first) else { break };
            if sent.at > before {
                waiting = Some(sent.at);
                break;
            }
            let missing = sent.missing();
            sent.lost |= missing;
            let volume = sent.volume(missing);
            out.lost.add(volume.packets, volume.bytes);
            self.in_flight -= volume.bytes;
            lost_fates(sent, missing, &mut out.fates);
            self.suspect.remove(&first);
        }
        self.settle(before, out);
        // A known fate does not change, so the next search starts here.
        self.decided_to = self.floor();
        waiting
    }

    /// Counts the packets sent before `before` that have not been counted yet.
    fn settle(&mut self, before: Instant, out: &mut Outcome) {
        for sent in self.log.range(self.settled_to..).map(|(_, sent)| sent) {
            self.visits += 1;
            if sent.at > before {
                break;
            }
            out.settled.arrived += u64::from(sent.acked.count_ones());
            out.settled.lost += u64::from(sent.lost.count_ones());
            self.settled_to = sent.end();
        }
        out.settled.below = self.settled_to;
    }

    /// Removes records with a known fate from the front of the log. Records with lost packets are
    /// kept for `memory`, so that a late acknowledgement is detected as a spurious loss.
    pub(crate) fn forget(&mut self, now: Instant, memory: Duration) {
        while let Some((&first, sent)) = self.log.first_key_value() {
            if !self.is_done(sent, now, memory) {
                break;
            }
            self.remove(first);
        }
    }

    /// Removes the records with a known fate behind unreported packets that were sent before
    /// `before`.
    // spec: loss-6
    pub(crate) fn forget_behind(&mut self, now: Instant, memory: Duration, before: Instant) {
        while let Some((&first, sent)) = self.log.range(self.passed_to..).next() {
            self.visits += 1;
            if self.is_done(sent, now, memory) {
                self.remove(first);
            } else if !sent.decided() && sent.at < before {
                self.passed_to = sent.end();
            } else {
                break;
            }
        }
    }

    fn is_done(&self, sent: &Sent, now: Instant, memory: Duration) -> bool {
        let counted = sent.end() <= self.settled_to;
        sent.decided() && counted && (sent.lost == 0 || now - sent.at >= memory)
    }

    fn remove(&mut self, first: u64) {
        if let Some(sent) = self.log.remove(&first)
            && self.open.remove(&first)
        {
            self.frames -= sent.frames();
        }
    }
}

#[cfg(test)]
mod tests;
