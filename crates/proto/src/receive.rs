//! The receiver's memory of packet numbers: replay protection and the source of every ACK.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_cc::ack_interval;
use hikyaku_units::Instant;
use hikyaku_wire::{Ack, Block, Sample};

// spec: pn-2
/// Fewest packet numbers remembered: 2^17 are 147 ms of reordering at 10 Gbit/s. A word more, of which the
/// newest number has begun a part.
const MIN_BITS: u64 = (1 << 17) + 64;
/// Most: 256 KiB of bitmap.
const MAX_BITS: u64 = 1 << 21;
/// Packets one block covers at most: a bitmap of them fits beside the rest in 1,200 bytes.
const BLOCK_PACKETS: u64 = 3072;
/// How many ACKs in a row repeat what is new.
const REPEATS: usize = 3;
const MAX_SAMPLES: usize = 16;
/// Samples between two ACKs, while packets keep coming.
const SAMPLES_PER_ACK: u32 = 8;
/// An ACK is due at the latest after this many packets.
const MAX_PENDING: u64 = 2048;
/// A question that comes so soon after another is the same one. Keep-alives are further apart.
const SOON: Duration = Duration::from_millis(1500);
/// A question and what goes with it.
const PACKETS_BETWEEN: u64 = 2;
const MOST_COPIES: u32 = 3;
/// ACKs of a thorough answer between two regular ones: of 24,000 packets. One short question of a peer that lets
/// its floor lie asks for a thousand.
const MOST_SLICES: u32 = 16;
/// The first packets are acknowledged at once: early news is worth more than few packets.
const EAGER: u64 = 16;

/// What a packet number is to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Freshness {
    New,
    Duplicate,
    TooOld,
}

/// How soon, and how fully, a packet wants to be acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Urgency {
    /// With the next regular ACK.
    Later,
    /// At once.
    Now,
    /// At once, with everything that the sender does not know yet.
    Thorough,
}

/// What was last asked.
#[derive(Clone, Copy, Debug)]
struct Question {
    at: Instant,
    /// Packets that had come by then.
    packets: u64,
    /// How often it had been asked before, with nothing else between.
    repeats: u32,
}

/// Which packets have arrived, and when that must be said.
#[derive(Clone, Debug)]
pub(crate) struct Receipts {
    words: Vec<u64>,
    /// Of lower numbers it is not known whether they arrived.
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
    recent: [u64; REPEATS],
    rotate: u64,
    /// Packets that a thorough answer still has to cover.
    sweep: u64,
    /// When the first of its ACKs left that count, and how many have since.
    slices_since: Instant,
    slices: u32,
    question: Option<Question>,
    /// How often the next answer is repeated.
    copies: u32,
    ack_interval: Duration,
}

impl Receipts {
    pub(crate) fn new() -> Self {
        Self {
            words: vec![0; (MIN_BITS / 64) as usize],
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
            recent: [0; REPEATS],
            rotate: 0,
            sweep: 0,
            slices_since: Instant::ZERO,
            slices: 0,
            question: None,
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

    /// The number that the next packet is expected to have.
    pub(crate) const fn expected(&self) -> u64 {
        self.end
    }

    /// Whether an (as yet unauthenticated) packet number may be new.
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

    /// Records an authentic packet that [`Receipts::check`] called new.
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
        while end - self.floor.min(end) > self.bits() / 2 && self.bits() < MAX_BITS {
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
        // What has left the window does not come back with a larger one.
        let first = (last + 1).saturating_sub(self.words.len() as u64);
        self.remembered = self.remembered.max(first * 64);
        for word in (last + 1).saturating_sub(self.words.len() as u64)..=last {
            words[word as usize % (self.words.len() * 2)] =
                self.words[word as usize % self.words.len()];
        }
        self.words = words;
    }

    /// Notes the arrival of a batch whose newest packet is the largest one known.
    pub(crate) fn sample(&mut self, now: Instant) {
        // The ACK itself adds the newest.
        let full = self.samples.len() + 1 >= MAX_SAMPLES;
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

    /// A packet that wants an ACK arrived.
    pub(crate) fn on_eliciting(&mut self, now: Instant, urgency: Urgency) {
        self.pending += 1;
        let at =
            if urgency != Urgency::Later || self.pending >= MAX_PENDING || self.packets <= EAGER {
                now
            } else {
                now + self.ack_interval
            };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        // spec: ack-4
        if urgency == Urgency::Thorough && self.sweep == 0 {
            self.sweep = self.end - self.floor;
        }
    }

    pub(crate) const fn on_ce(&mut self, packets: u64) {
        self.ce += packets;
    }

    pub(crate) const fn set_host_drops(&mut self, drops: u64) {
        self.host_drops = drops;
    }

    /// The sender knows the fate of everything below `floor`, and its round-trip time.
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

    /// Builds the ACK. Blocks: what is new since the last three ACKs, then a slice of what is
    /// older and not yet known to the sender, another slice each time.
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
        self.recent[REPEATS - 1] = self.end;
        self.pending = 0;
        // Whoever asks wants to know everything: the answer goes on in further ACKs.
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

    /// When a thorough answer goes on, of which a part leaves now.
    // spec: ack-4
    fn next_slice(&mut self, now: Instant) -> Instant {
        if now - self.slices_since >= self.ack_interval {
            (self.slices_since, self.slices) = (now, 0);
        }
        self.slices += 1;
        if self.slices < MOST_SLICES { now } else { self.slices_since + self.ack_interval }
    }

    /// The peer asks. Who does so again and again, and says nothing else, does not hear the answers: each goes out
    /// more often than the one before.
    // spec: ack-7
    pub(crate) fn on_question(&mut self, now: Instant) {
        let is_again = |before: &Question| {
            now - before.at < SOON && self.packets <= before.packets + PACKETS_BETWEEN
        };
        let before = self.question.filter(is_again);
        let repeats = before.map_or(0, |before| before.repeats + 1);
        self.question = Some(Question { at: now, packets: self.packets, repeats });
        self.copies = repeats.min(MOST_COPIES);
    }

    fn block(&self, first: u64, end: u64) -> Block {
        let mut runs = Vec::new();
        let (mut at, mut arrived) = (first, true);
        while at < end {
            let from = at;
            while at < end && self.has(at) == arrived {
                // A whole word of the same kind is the common case.
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
