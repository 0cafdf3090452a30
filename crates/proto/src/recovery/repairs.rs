//! What is sent again: when, and in how many copies.

use crate::sent::Outcome;
use alloc::collections::VecDeque;
use core::time::Duration;
use hikyaku_cc::{Settled, Volume};
use hikyaku_units::Instant;
use hikyaku_wire::StreamId;

/// A range that must be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Again {
    pub(crate) stream: StreamId,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// How often it has been sent before.
    pub(crate) generation: u8,
}

/// What the path is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub(crate) srtt: Duration,
    pub(crate) ambient_loss: f64,
    pub(crate) window: u64,
}

/// Ranges that must be sent again, in the order in which they are.
#[derive(Default)]
pub(crate) struct Repairs {
    again: VecDeque<Again>,
    /// Further copies, and when they are to be sent.
    copies: VecDeque<(Instant, Again)>,
    /// There is nothing new to send, or the receiver has no room for it.
    tail: bool,
    /// When the first packet was sent.
    began: Option<Instant>,
    /// What became of the last few hundred packets.
    lately: Settled,
}

// spec: loss-4
/// A range that was lost again is sent this often at the most.
const MAX_COPIES: u32 = 3;
/// With nothing new to send, lost ranges go in as many copies as make it likely that none of them
/// is missing after one more round trip, but in this many at the most,
const MAX_TAIL_COPIES: u32 = 8;
/// and not more of them than this share of the window: they must be gone in a part of that round
/// trip.
const TAIL_SHARE: u64 = 4;
/// The chance that a range is still missing then.
const TAIL_DOUBT: f64 = 0.01;
/// So many round trips are the start of a connection, if it loses less than [`LOSSY`].
const EARLY_ROUNDS: u32 = 12;
pub(crate) const LOSSY: f64 = 0.02;
/// One lost packet in so many, of at least so many: what overflowed a queue is too much to be sent
/// twice.
const SPARSE: u64 = 20;
const LATELY: u64 = 512;
/// Copies follow each other at this part of a round trip, so that no short gap swallows them all.
const COPY_SPACING: u32 = 16;
const SHORTEST_SPACING: Duration = Duration::from_micros(250);

impl Repairs {
    pub(crate) fn on_sent(&mut self, at: Instant) {
        self.began.get_or_insert(at);
    }

    /// How often to send what is lost by this outcome.
    pub(crate) fn copies(&mut self, now: Instant, outcome: &Outcome, path: Circumstances) -> u32 {
        self.lately.arrived += outcome.settled.arrived;
        self.lately.lost += outcome.settled.lost;
        if self.lately.arrived + self.lately.lost > LATELY {
            self.lately.arrived /= 2;
            self.lately.lost /= 2;
        }
        self.tail_copies(outcome.lost, path).max(self.early_copies(now, path))
    }

    /// How often to send what is lost now, when nothing else wants to be sent: the link is idle
    /// anyway, and each round of repairs costs a round trip.
    fn tail_copies(&self, lost: Volume, path: Circumstances) -> u32 {
        if !self.tail || lost.packets == 0 {
            return 1;
        }
        let loss = path.ambient_loss.clamp(0.01, 0.5);
        let room = path.window / TAIL_SHARE;
        let (mut copies, mut missing) = (1, loss * lost.packets as f64);
        while missing > TAIL_DOUBT
            && copies < MAX_TAIL_COPIES
            && u64::from(copies + 1) * lost.bytes <= room
        {
            copies += 1;
            missing *= loss;
        }
        copies
    }

    /// How often to send what is lost now at the start of a connection. There the wait for a second
    /// repair is a large part of all that an application has waited; later it only takes memory.
    fn early_copies(&self, now: Instant, path: Circumstances) -> u32 {
        let early = self.began.is_some_and(|began| now - began < path.srtt * EARLY_ROUNDS);
        let sparse = self.lately.lost * SPARSE < self.lately.arrived + SPARSE;
        if early && sparse && path.ambient_loss < LOSSY { 2 } else { 1 }
    }

    /// The first repetition goes in `copies`; later ones go in two and three at the least, because
    /// a hole that is open for long holds up a whole window.
    pub(crate) fn push(&mut self, now: Instant, again: Again, copies: u32, srtt: Duration) {
        let copies = copies.max(u32::from(again.generation).min(MAX_COPIES));
        let spacing = (srtt / COPY_SPACING).max(SHORTEST_SPACING);
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

    /// Moves the copies whose time has come to where they are sent from. Those of one judgement are
    /// not in order, but nearly; a copy that waits for another one is late by a few spacings.
    pub(crate) fn on_time(&mut self, now: Instant) {
        while self.copies.front().is_some_and(|(at, _)| *at <= now) {
            self.again.extend(self.copies.pop_front().map(|(_, again)| again));
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.copies.front().map(|(at, _)| *at)
    }

    /// Says whether there is anything new that could be sent.
    pub(crate) const fn set_tail(&mut self, tail: bool) {
        self.tail = tail;
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
