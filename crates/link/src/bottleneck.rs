//! The bottleneck: a queue, optionally with active queue management, in front of a line of constant
//! rate.

use crate::codel::{Codel, Decision, Ecn, Leaving};
use crate::counters::Counters;
use crate::spec::LinkSpec;
use alloc::collections::VecDeque;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Rate};

/// The bytes that Ethernet adds to each packet: preamble 8, header 14, checksum 4, inter-packet gap
/// 12.
pub const FRAMING: u32 = 38;

/// The queue and the line.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    /// Bits per second; `None` is infinitely fast and never queues.
    rate: Option<u64>,
    /// The limit of the queue in bytes and in packets.
    limit: (u64, usize),
    /// When the last accepted packet will have left, in nanoseconds.
    free_at: u64,
    /// The remainder of the last division by the rate, in bit-nanoseconds. Without it, rounding to
    /// whole nanoseconds would make a 100 Gbit/s link measurably too fast.
    remainder: u64,
    queued: u64,
    waiting: VecDeque<Waiting>,
    aqm: Option<Codel>,
    /// The time up to which the integrals in the counters are complete, in nanoseconds.
    settled: u64,
}

/// The outcome for an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It is sent. Its last bit leaves at `departs`.
    Sent { departs: Instant, is_marked: bool },
    /// The active queue management drops it.
    AqmDropped,
    /// It exceeds the limit of the queue.
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

    /// The bytes in the queue at the time of the last [`settle`](Self::settle).
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Removes all packets that have left by `now`, and completes the integrals up to `now`.
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
                // A packet offered for a time before the last reading of the counters may have left before it.
                let departs = first.departs.max(self.settled);
                counters.queue_integral +=
                    u128::from(self.queued) * u128::from(departs - self.settled);
                self.settled = departs;
                self.queued -= u64::from(first.bytes);
                self.waiting.pop_front();
            }
            counters.queue_integral += u128::from(self.queued) * u128::from(now - self.settled);
        }
        self.settled = now;
        counters.until = Instant::from_nanos(now);
    }

    /// Offers a packet at `now`. The caller has called [`settle`](Self::settle) for `now`.
    #[inline]
    pub(crate) fn enqueue(&mut self, now: Instant, bytes: u32, ecn: Ecn) -> Entry {
        let Some(rate) = self.rate else { return Entry::Sent { departs: now, is_marked: false } };
        let (most_bytes, most_segments) = self.limit;
        let fits =
            self.queued + u64::from(bytes) <= most_bytes && self.waiting.len() < most_segments;
        if self.queued > 0 && !fits {
            return Entry::Full;
        }
        if self.free_at <= now.as_nanos() {
            self.free_at = now.as_nanos();
            self.remainder = 0;
        }
        let decision = self.decide(now, bytes, ecn);
        if decision == Decision::Drop {
            // It occupies the queue until the line would have sent it, but takes none of the line's
            // time.
            self.queued += u64::from(bytes);
            self.waiting.push_back(Waiting { departs: self.free_at, bytes });
            return Entry::AqmDropped;
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

    /// The decision of the active queue management for a packet that is sent when the line is free.
    #[inline]
    fn decide(&mut self, now: Instant, bytes: u32, ecn: Ecn) -> Decision {
        let Some(codel) = &mut self.aqm else { return Decision::Pass };
        let at = Instant::from_nanos(self.free_at);
        codel.decide(&Leaving { at, waited: at - now, ahead: self.queued, bytes, ecn })
    }

    /// Changes to `spec` at `now`. Queued packets keep their order and leave at the new rate. Those
    /// above a smaller limit stay.
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

    /// Adds the integral of the waiting time from `settled` to `now`. The waiting time falls by one
    /// second per second, so the area is a trapezium.
    fn integrate_wait(&self, now: u64, counters: &mut Counters) {
        let before = u128::from(self.free_at.saturating_sub(self.settled));
        let after = u128::from(self.free_at.saturating_sub(now));
        counters.wait_integral += (before * before - after * after) / 2;
    }
}

fn limit(spec: &LinkSpec) -> (u64, usize) {
    let segments = spec.queue_packets.map_or(usize::MAX, |packets| packets as usize);
    (spec.queue.map_or(u64::MAX, DataSize::bytes), segments)
}

/// A rate of zero would never release queued packets, and a later change of the rate could not
/// compute when they leave. One bit per second stands for it: a small packet takes minutes.
fn bits(rate: Rate) -> u64 {
    rate.bits_per_sec().max(1)
}

/// How a change of the rate moves the departures that were computed before it.
#[derive(Clone, Copy, Debug)]
pub struct Retiming {
    now: u64,
    old: Option<u64>,
    new: Option<u64>,
}

impl Retiming {
    /// The new departure of a packet whose departure was `departs`.
    pub fn departs(&self, departs: Instant) -> Instant {
        Instant::from_nanos(self.nanos(departs.as_nanos()))
    }

    /// Whether no departure changes.
    pub fn is_identity(&self) -> bool {
        self.old == self.new
    }

    /// The new delivery of a packet that was to depart at `departs` and be delivered at `at`.
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
    /// Updates the maxima of queue and waiting time for an accepted packet.
    #[inline]
    pub(crate) fn note_queue(&mut self, queued: u64, wait: Duration) {
        self.largest_queue = self.largest_queue.max(DataSize::from_bytes(queued));
        self.largest_wait = self.largest_wait.max(wait);
    }
}
