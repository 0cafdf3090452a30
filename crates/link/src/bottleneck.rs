//! The bottleneck: a queue, managed or not, in front of a line of constant rate.

use crate::codel::{Codel, Decision, Ecn, Leaving};
use crate::counters::Counters;
use crate::spec::LinkSpec;
use alloc::collections::VecDeque;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Rate};

/// What Ethernet adds to each segment: preamble 8, header 14, checksum 4, gap 12.
pub const FRAMING: u32 = 38;

/// The queue and the line behind it.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    /// Bits a second; `None` is infinitely fast and never queues.
    rate: Option<u64>,
    limit: u64,
    /// When the last accepted segment will have left.
    free_at: u64,
    /// What the division by the rate has left over, in bit-nanoseconds: without it, rounding to
    /// whole nanoseconds would make a 100 Gbit/s link visibly too fast.
    remainder: u64,
    queued: u64,
    waiting: VecDeque<Waiting>,
    aqm: Option<Codel>,
    /// Up to when the integrals in the counters are complete.
    settled: u64,
}

/// What becomes of a segment that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Its last bit leaves then.
    Sent { departs: Instant, is_marked: bool },
    /// The management of the queue drops it.
    Chosen,
    /// It does not fit.
    Full,
}

#[derive(Debug)]
struct Waiting {
    departs: u64,
    bytes: u32,
}

impl Bottleneck {
    pub(crate) fn new(spec: &LinkSpec) -> Self {
        Self {
            rate: spec.rate.map(bits),
            limit: limit(spec),
            aqm: spec.aqm.map(Codel::new),
            free_at: 0,
            remainder: 0,
            queued: 0,
            waiting: VecDeque::new(),
            settled: 0,
        }
    }

    /// Bytes in the queue, as of the last [`settle`](Self::settle).
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Lets everything leave that has left by `now`, and completes the integrals up to `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant, counters: &mut Counters) {
        let now = now.as_nanos();
        if now <= self.settled {
            return;
        }
        if self.queued > 0 {
            self.integrate_wait(now, counters);
            while let Some(first) = self.waiting.front()
                && first.departs <= now
            {
                counters.queue_integral +=
                    u128::from(self.queued) * u128::from(first.departs - self.settled);
                self.settled = first.departs;
                self.queued -= u64::from(first.bytes);
                self.waiting.pop_front();
            }
            counters.queue_integral += u128::from(self.queued) * u128::from(now - self.settled);
        }
        self.settled = now;
        counters.until = Instant::from_nanos(now);
    }

    /// Takes a segment offered at `now`, to which the queue has been settled.
    #[inline]
    pub(crate) fn enqueue(&mut self, now: Instant, bytes: u32, ecn: Ecn) -> Entry {
        let Some(rate) = self.rate else { return Entry::Sent { departs: now, is_marked: false } };
        if self.queued > 0 && self.queued + u64::from(bytes) > self.limit {
            return Entry::Full;
        }
        if self.free_at <= now.as_nanos() {
            self.free_at = now.as_nanos();
            self.remainder = 0;
        }
        let decision = self.decide(now, bytes, ecn);
        if decision == Decision::Drop {
            // It takes room until it would be sent, but none of the line's time.
            self.queued += u64::from(bytes);
            self.waiting.push_back(Waiting { departs: self.free_at, bytes });
            return Entry::Chosen;
        }
        let bits = (u64::from(bytes) + u64::from(FRAMING)) * 8;
        let work = bits.saturating_mul(1_000_000_000).saturating_add(self.remainder);
        self.free_at = self.free_at.saturating_add(work / rate);
        self.remainder = work % rate;
        self.queued += u64::from(bytes);
        self.waiting.push_back(Waiting { departs: self.free_at, bytes });
        let departs = Instant::from_nanos(self.free_at);
        Entry::Sent { departs, is_marked: decision == Decision::Mark }
    }

    /// What a managed queue does to a segment that is sent when the line is free.
    #[inline]
    fn decide(&mut self, now: Instant, bytes: u32, ecn: Ecn) -> Decision {
        let Some(codel) = &mut self.aqm else { return Decision::Pass };
        let at = Instant::from_nanos(self.free_at);
        codel.decide(&Leaving { at, waited: at - now, ahead: self.queued, bytes, ecn })
    }

    /// Becomes as `spec` says at `now`. What waits keeps its place and leaves at the new rate; what
    /// exceeds a smaller limit stays.
    pub(crate) fn change(&mut self, now: Instant, spec: &LinkSpec) -> Retiming {
        let retiming = Retiming { now: now.as_nanos(), old: self.rate, new: spec.rate.map(bits) };
        for waiting in &mut self.waiting {
            waiting.departs = retiming.nanos(waiting.departs);
        }
        self.free_at = retiming.nanos(self.free_at);
        self.remainder = 0;
        self.rate = retiming.new;
        self.limit = limit(spec);
        if let Some(codel) = &mut self.aqm {
            codel.retime(&retiming);
        }
        if self.aqm.as_ref().map(Codel::spec) != spec.aqm {
            self.aqm = spec.aqm.map(Codel::new);
        }
        retiming
    }

    /// Adds the integral of the waiting time from `settled` to `now`: it shrinks by one second a
    /// second, so the area is a trapezium.
    fn integrate_wait(&self, now: u64, counters: &mut Counters) {
        let before = u128::from(self.free_at.saturating_sub(self.settled));
        let after = u128::from(self.free_at.saturating_sub(now));
        counters.wait_integral += (before * before - after * after) / 2;
    }
}

fn limit(spec: &LinkSpec) -> u64 {
    spec.queue.map_or(u64::MAX, DataSize::bytes)
}

/// A rate of zero would never let go of what waits, and could not be timed anew later. One bit a
/// second is as good as a stop: a small packet takes hours.
fn bits(rate: Rate) -> u64 {
    rate.bits_per_sec().max(1)
}

/// How a change of rate moves what had been promised before it.
#[derive(Clone, Copy, Debug)]
pub struct Retiming {
    now: u64,
    old: Option<u64>,
    new: Option<u64>,
}

impl Retiming {
    /// When a segment leaves the bottleneck that was to leave at `departs`.
    pub fn departs(&self, departs: Instant) -> Instant {
        Instant::from_nanos(self.nanos(departs.as_nanos()))
    }

    /// Whether nothing moves.
    pub fn is_identity(&self) -> bool {
        self.old == self.new
    }

    /// The delivery at `at` of a segment that was to leave at `departs`, moved by as much.
    pub fn delivery(&self, departs: Instant, at: Instant) -> Instant {
        self.departs(departs) + (at - departs)
    }

    fn nanos(&self, departs: u64) -> u64 {
        let Some(ahead) = departs.checked_sub(self.now) else { return departs };
        match (self.old, self.new) {
            (Some(old), Some(new)) if old != new => {
                let ahead = u128::from(ahead) * u128::from(old) / u128::from(new);
                self.now.saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX))
            }
            (Some(_), None) => self.now,
            _ => departs,
        }
    }
}

impl Counters {
    /// Notes the queue and the wait that an accepted segment has made.
    #[inline]
    pub(crate) fn note_queue(&mut self, queued: u64, wait: Duration) {
        self.largest_queue = self.largest_queue.max(DataSize::from_bytes(queued));
        self.largest_wait = self.largest_wait.max(wait);
    }
}
