//! Packet numbers that the receiver has seen: for replay protection, and to build acknowledgements.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_cc::ack_interval;
use hikyaku_units::Instant;
use hikyaku_wire::{Ack, Block, Sample};

// spec: pn-2
/// Minimum number of packet numbers remembered: 2^17 cover 147 ms of reordering at 10 Gbit/s. The
/// bitmap has one more word, because the word of the newest number is only partly used.
const REMEMBERED_NUMBERS_MIN: u64 = (1 << 17) + 64;
/// Maximum number of packet numbers remembered: a bitmap of 256 KiB.
const REMEMBERED_NUMBERS_MAX: u64 = 1 << 21;
/// Maximum packet numbers that one block covers. A bitmap of them fits, with the rest of the
/// packet, into 1,200 bytes.
const BLOCK_PACKETS: u64 = 3072;
/// The number of consecutive ACKs that report each new packet number, so that the loss of an ACK
/// does no harm.
const ACKS_PER_NUMBER: usize = 3;
const SAMPLES_MAX: usize = 16;
/// Samples between two ACKs while packets keep arriving.
const SAMPLES_PER_ACK: u32 = 8;
/// Packets after which an ACK is sent at the latest.
const PACKETS_PER_ACK_MAX: u64 = 2048;
/// Two probes within this interval are taken as one repeated probe. Keep-alives are further apart.
const REPEATED_PROBE_INTERVAL_MAX: Duration = Duration::from_millis(1500);
/// Packets that may arrive between two probes that are taken as one: the probe and one more.
const REPEATED_PROBE_PACKETS_MAX: u64 = 2;
const ACK_COPIES_MAX: u32 = 3;
/// Parts of a full report that are sent between two regular ACKs. They cover 24,000 packets.
/// Without the limit, a short probe from a peer that never raises its floor would cause a thousand
/// ACKs.
const MOST_SLICES: u32 = 16;
/// The first packets of a connection are acknowledged at once, because early samples are worth the
/// additional ACKs.
const PACKETS_ACKED_AT_ONCE: u64 = 16;

/// How a packet number relates to those received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Freshness {
    New,
    Duplicate,
    TooOld,
}

/// How soon, and how completely, a packet is to be acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Urgency {
    /// With the next regular ACK.
    Later,
    /// At once.
    Now,
    /// At once, with a full report: everything above the sender's floor.
    Full,
}

/// The last probe of the peer.
#[derive(Clone, Copy, Debug)]
struct Probe {
    at: Instant,
    /// Packets that had arrived by then.
    packets: u64,
    /// How often the probe had been repeated, with no other packets in between.
    repeats: u32,
}

/// Which packets have arrived, and when an acknowledgement is due.
#[derive(Clone, Debug)]
pub(crate) struct Receipts {
    words: Vec<u64>,
    /// Packet numbers below this are treated as too old, because the bitmap no longer covers them.
    remembered: u64,
    floor: u64,
    end: u64,
    packets: u64,
    bytes: u64,
    ce: u64,
    pub(crate) duplicates: u64,
    host_drops: u64,
    largest_at: Instant,
    samples: Vec<Sample>,
    last_sample: Option<Instant>,
    pending: u64,
    due: Option<Instant>,
    recent: [u64; ACKS_PER_NUMBER],
    rotate: u64,
    /// Packet numbers that a full report still has to cover.
    sweep: u64,
    /// When the present limit on parts of a full report began, and how many have been sent since.
    slices_since: Instant,
    slices: u32,
    probe: Option<Probe>,
    /// How many further copies of the next ACK are sent.
    copies: u32,
    ack_interval: Duration,
}

impl Receipts {
    pub(crate) fn new() -> Self {
        Self {
            words: vec![0; (REMEMBERED_NUMBERS_MIN / 64) as usize],
            remembered: 0,
            floor: 0,
            end: 0,
            packets: 0,
            bytes: 0,
            ce: 0,
            duplicates: 0,
            host_drops: 0,
            largest_at: Instant::ZERO,
            samples: Vec::new(),
            last_sample: None,
            pending: 0,
            due: None,
            recent: [0; ACKS_PER_NUMBER],
            rotate: 0,
            sweep: 0,
            slices_since: Instant::ZERO,
            slices: 0,
            probe: None,
            copies: 0,
            ack_interval: Duration::from_millis(1),
        }
    }

    fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    fn slot(&self, pn: u64) -> (usize, u64) {
        ((pn / 64) as usize % self.words.len(), 1 << (pn % 64))
    }

    fn has(&self, pn: u64) -> bool {
        let (word, bit) = self.slot(pn);
        self.words[word] & bit != 0
    }

    /// The packet number that the next packet is expected to have.
    pub(crate) const fn expected(&self) -> u64 {
        self.end
    }

    /// Whether a packet number, not yet authenticated, may be new.
    pub(crate) fn check(&self, pn: u64) -> Freshness {
        if pn >= self.end {
            Freshness::New
        } else if pn < self.remembered || pn + self.bits() < self.end + 64 {
            Freshness::TooOld
        } else if self.has(pn) {
            Freshness::Duplicate
        } else {
            Freshness::New
        }
    }

    /// Records an authentic packet whose number [`Receipts::check`] reported as new.
    pub(crate) fn insert(&mut self, now: Instant, pn: u64, bytes: u64) {
        if pn >= self.end {
            self.extend_to(pn + 1);
            self.largest_at = now;
        }
        let (word, bit) = self.slot(pn);
        self.words[word] |= bit;
        self.packets += 1;
        self.bytes += bytes;
    }

    fn extend_to(&mut self, end: u64) {
        while end - self.floor.min(end) > self.bits() / 2 && self.bits() < REMEMBERED_NUMBERS_MAX {
            self.grow();
        }
        // Clears the words that the new numbers fall into.
        let first_word = self.end.div_ceil(64);
        let last_word = (end - 1) / 64;
        let clear = (last_word + 1).saturating_sub(first_word).min(self.words.len() as u64);
        for word in last_word + 1 - clear..=last_word {
            let index = word as usize % self.words.len();
            self.words[index] = 0;
        }
        self.end = end;
    }

    fn grow(&mut self) {
        let mut words = vec![0; self.words.len() * 2];
        let last = self.end / 64;
        // Numbers that have left the window stay unknown after the window grows.
        let first = (last + 1).saturating_sub(self.words.len() as u64);
        self.remembered = self.remembered.max(first * 64);
        for word in (last + 1).saturating_sub(self.words.len() as u64)..=last {
            words[word as usize % (self.words.len() * 2)] =
                self.words[word as usize % self.words.len()];
        }
        self.words = words;
    }

    /// Records a sample for the arrival of a batch that contains the largest packet number.
    pub(crate) fn sample(&mut self, now: Instant) {
        // The ACK itself adds the newest sample.
        let full = self.samples.len() + 1 >= SAMPLES_MAX;
        if full
            || self.last_sample.is_some_and(|at| now - at < self.ack_interval / SAMPLES_PER_ACK)
            || self.end == 0
        {
            return;
        }
        self.last_sample = Some(now);
        self.push_sample();
    }

    // spec: ack-1
    fn push_sample(&mut self) {
        let sample = Sample {
            packet_number: self.end - 1,
            micros: self.largest_at.as_micros(),
            bytes: self.bytes,
        };
        if self.samples.last() != Some(&sample) {
            self.samples.push(sample);
        }
    }

    /// Records the arrival of an ack-eliciting packet.
    pub(crate) fn on_eliciting(&mut self, now: Instant, urgency: Urgency) {
        self.pending += 1;
        let at = if urgency != Urgency::Later
            || self.pending >= PACKETS_PER_ACK_MAX
            || self.packets <= PACKETS_ACKED_AT_ONCE
        {
            now
        } else {
            now + self.ack_interval
        };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        // spec: ack-4
        if urgency == Urgency::Full && self.sweep == 0 {
            self.sweep = self.end - self.floor;
        }
    }

    pub(crate) const fn on_ce(&mut self, packets: u64) {
        self.ce += packets;
    }

    pub(crate) const fn set_host_drops(&mut self, drops: u64) {
        self.host_drops = drops;
    }

    /// Records the sender's floor and its round-trip time. The sender knows the fate of every
    /// packet number below the floor.
    // spec: ack-3
    pub(crate) fn on_floor(&mut self, floor: u64, rtt: Duration) {
        self.floor = self.floor.max(floor.min(self.end));
        self.set_rtt(rtt);
    }

    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.ack_interval = ack_interval(rtt);
    }

    /// When an ACK must be sent.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) const fn packets(&self) -> u64 {
        self.packets
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) const fn span(&self) -> u64 {
        self.end
    }

    /// Builds the ACK. Its blocks are what is new since the third last ACK, then one part of the
    /// older numbers above the sender's floor. Each ACK carries another part.
    // spec: ack-2
    pub(crate) fn ack(&mut self, now: Instant) -> Ack {
        self.push_sample();
        let lowest = self.floor.max((self.end + 64).saturating_sub(self.bits()));
        let recent = self.recent[0].max(lowest).max(self.end.saturating_sub(2 * BLOCK_PACKETS));
        let mut blocks = Vec::new();
        let mut at = recent;
        while at < self.end {
            let end = (at + BLOCK_PACKETS).min(self.end);
            blocks.push(self.block(at, end));
            at = end;
        }
        if lowest < recent {
            let from = if (lowest..recent).contains(&self.rotate) { self.rotate } else { lowest };
            let end = (from + BLOCK_PACKETS / 2).min(recent);
            blocks.push(self.block(from, end));
            self.rotate = if end == recent { lowest } else { end };
            self.sweep = self.sweep.saturating_sub(BLOCK_PACKETS / 2).min(recent - lowest);
        } else {
            self.sweep = 0;
        }
        self.recent.rotate_left(1);
        self.recent[ACKS_PER_NUMBER - 1] = self.end;
        self.pending = 0;
        // A full report continues in further ACKs.
        self.due = match (self.copies, self.sweep) {
            (0, 0) => None,
            (0, _) => Some(self.next_slice(now)),
            _ => Some(now),
        };
        self.copies = self.copies.saturating_sub(1);
        Ack {
            largest: self.end.saturating_sub(1),
            delay_micros: (now - self.largest_at).as_micros() as u64,
            packets: self.packets,
            ce: self.ce,
            host_drops: self.host_drops,
            samples: core::mem::take(&mut self.samples),
            blocks,
        }
    }

    /// When the next part of a full report is sent, if one is sent now.
    // spec: ack-4
    fn next_slice(&mut self, now: Instant) -> Instant {
        if now - self.slices_since >= self.ack_interval {
            (self.slices_since, self.slices) = (now, 0);
        }
        self.slices += 1;
        if self.slices < MOST_SLICES { now } else { self.slices_since + self.ack_interval }
    }

    /// Records a probe of the peer. A peer that repeats a probe and sends nothing else has not
    /// received the ACKs, so each ACK is sent in more copies than the previous one.
    // spec: ack-7
    pub(crate) fn on_probe(&mut self, now: Instant) {
        let is_again = |before: &Probe| {
            now - before.at < REPEATED_PROBE_INTERVAL_MAX
                && self.packets <= before.packets + REPEATED_PROBE_PACKETS_MAX
        };
        let before = self.probe.filter(is_again);
        let repeats = before.map_or(0, |before| before.repeats + 1);
        self.probe = Some(Probe { at: now, packets: self.packets, repeats });
        self.copies = repeats.min(ACK_COPIES_MAX);
    }

    fn block(&self, first: u64, end: u64) -> Block {
        let mut runs = Vec::new();
        let (mut at, mut arrived) = (first, true);
        while at < end {
            let from = at;
            while at < end && self.has(at) == arrived {
                // A whole word of equal bits is the common case.
                let whole = if arrived { u64::MAX } else { 0 };
                if at % 64 == 0 && at + 64 <= end && self.words[self.slot(at).0] == whole {
                    at += 64;
                } else {
                    at += 1;
                }
            }
            runs.push((at - from) as u32);
            arrived = !arrived;
        }
        Block { first, runs }
    }
}

#[cfg(test)]
mod tests;
