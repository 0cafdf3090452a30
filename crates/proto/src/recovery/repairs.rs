//! Retransmissions: when lost stream data is sent again, and in how many copies.

use crate::sent::Outcome;
use alloc::collections::VecDeque;
use core::time::Duration;
use hikyaku_cc::{Settled, Volume};
use hikyaku_units::Instant;
use hikyaku_wire::StreamId;

/// A range of stream data to retransmit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Again {
    pub(crate) stream: StreamId,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// How many times it has been sent before.
    pub(crate) generation: u8,
}

/// Properties of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathState {
    pub(crate) srtt: Duration,
    pub(crate) ambient_loss: f64,
    pub(crate) window: u64,
}

/// Ranges to retransmit, in the order in which they are sent.
#[derive(Default)]
pub(crate) struct Repairs {
    again: VecDeque<Again>,
    /// Further copies, and when they are to be sent.
    copies: VecDeque<(Instant, Again)>,
    /// Whether the sender is at the tail: there is no new data to send, or flow control blocks it.
    tail: bool,
    /// When the first packet was sent.
    began: Option<Instant>,
    /// Packets received and lost among the last few hundred.
    recent: Settled,
}

// spec: loss-4
/// Maximum copies of a range that was lost more than once.
const COPIES_MAX: u32 = 3;
/// Maximum copies at the tail. There, lost ranges are sent in as many copies as make it likely that
/// all have arrived after one more round trip.
const TAIL_COPIES_MAX: u32 = 8;
/// The copies at the tail may take one part in this many of the congestion window, so that they are
/// sent in a part of that round trip.
const TAIL_WINDOW_PARTS: u64 = 4;
/// The accepted probability that a range is still missing after that round trip.
const TAIL_MISSING_PROBABILITY: f64 = 0.01;
/// The first round trips of a connection, in which a lost range is sent twice if the path loses
/// less than [`LOSSY_RATE`].
const EARLY_ROUND_TRIPS: u32 = 12;
pub(crate) const LOSSY_RATE: f64 = 0.02;
/// At most one packet in this many may be lost for that. The losses of an overflowing queue are too
/// many to be sent twice.
const PACKETS_PER_SPARSE_LOSS: u64 = 20;
const RECENT_PACKETS_MAX: u64 = 512;
/// Copies of a range are sent this part of a round trip apart, so that a short burst of losses does
/// not hit all of them.
const COPY_SPACINGS_PER_ROUND_TRIP: u32 = 16;
/// With this many ranges waiting, no more copies are made. Otherwise a receiver that reports all
/// copies of a range as lost would cause three further copies of each.
const MOST_WAITING: usize = 1 << 16;
const COPY_SPACING_MIN: Duration = Duration::from_micros(250);

impl Repairs {
    pub(crate) fn on_sent(&mut self, at: Instant) {
        self.began.get_or_insert(at);
    }

    /// The number of copies in which to send the ranges lost by this outcome.
    pub(crate) fn copies(&mut self, now: Instant, outcome: &Outcome, path: PathState) -> u32 {
        self.recent.arrived += outcome.settled.arrived;
        self.recent.lost += outcome.settled.lost;
        if self.recent.arrived + self.recent.lost > RECENT_PACKETS_MAX {
            self.recent.arrived /= 2;
            self.recent.lost /= 2;
        }
        self.tail_copies(outcome.lost, path).max(self.early_copies(now, path))
    }

    /// The number of copies at the tail, where the link is otherwise idle and each further
    /// retransmission costs a round trip.
    fn tail_copies(&self, lost: Volume, path: PathState) -> u32 {
        if !self.tail || lost.packets == 0 {
            return 1;
        }
        let loss = path.ambient_loss.clamp(0.01, 0.5);
        let room = path.window / TAIL_WINDOW_PARTS;
        let (mut copies, mut missing) = (1, loss * lost.packets as f64);
        while missing > TAIL_MISSING_PROBABILITY
            && copies < TAIL_COPIES_MAX
            && u64::from(copies + 1) * lost.bytes <= room
        {
            copies += 1;
            missing *= loss;
        }
        copies
    }

    /// The number of copies at the start of a connection. There a second retransmission is a large
    /// part of the total time that the application waits. Later it only costs memory.
    fn early_copies(&self, now: Instant, path: PathState) -> u32 {
        let early = self.began.is_some_and(|began| now - began < path.srtt * EARLY_ROUND_TRIPS);
        let sparse = self.recent.lost * PACKETS_PER_SPARSE_LOSS
            < self.recent.arrived + PACKETS_PER_SPARSE_LOSS;
        if early && sparse && path.ambient_loss < LOSSY_RATE { 2 } else { 1 }
    }

    /// Queues a range for retransmission. The first retransmission is sent in `copies`. Later ones
    /// are sent in at least two or three copies, because a gap that stays open blocks a whole
    /// receive window.
    pub(crate) fn push(&mut self, now: Instant, again: Again, copies: u32, srtt: Duration) {
        let copies = copies.max(u32::from(again.generation).min(COPIES_MAX));
        let copies = if self.len() < MOST_WAITING { copies } else { 1 };
        let spacing = (srtt / COPY_SPACINGS_PER_ROUND_TRIP).max(COPY_SPACING_MIN);
        for copy in 1..copies {
            self.copies.push_back((now + spacing * copy, again));
        }
        if let Some(last) = self.again.back_mut()
            && last.stream == again.stream
            && last.generation == again.generation
            && last.offset + last.len == again.offset
        {
            last.len += again.len;
            return;
        }
        self.again.push_back(again);
    }

    /// Queues for sending the copies that are due. Copies are not strictly in order of their time,
    /// so one may be late by a few spacings.
    pub(crate) fn on_time(&mut self, now: Instant) {
        while self.copies.front().is_some_and(|(at, _)| *at <= now) {
            self.again.extend(self.copies.pop_front().map(|(_, again)| again));
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.copies.front().map(|(at, _)| *at)
    }

    /// Sets whether the sender is at the tail, without new data that it may send.
    pub(crate) const fn set_tail(&mut self, tail: bool) {
        self.tail = tail;
    }

    /// The number of waiting ranges, copies included.
    pub(crate) fn len(&self) -> usize {
        self.again.len() + self.copies.len()
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.again.is_empty()
    }

    pub(crate) fn due(&mut self) -> &mut VecDeque<Again> {
        &mut self.again
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.again.is_empty() && self.copies.is_empty()
    }
}

#[cfg(test)]
mod tests;
