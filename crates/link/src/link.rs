//! One direction of a link: the outcome for each packet.

use crate::background::Background;
use crate::bottleneck::{Bottleneck, Entry, Retiming};
use crate::codel::Ecn;
use crate::counters::Counters;
use crate::dice::{Die, Losses};
use crate::jitter::Jitter;
use crate::policer::Policer;
use crate::spec::LinkSpec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// One direction of a link.
///
/// The caller offers packets in order of time; the outcome of each is returned at once. Equal
/// specifications, seeds and offers give equal outcomes.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    policer: Policer,
    bottleneck: Bottleneck,
    losses: Losses,
    corrupt: Die,
    duplicate: Die,
    reorder: Die,
    jitter: Jitter,
    background: Background,
    last: Last,
    counters: Counters,
}

/// The last packet that was delivered in order. No later one may arrive before it.
#[derive(Debug, Default)]
struct Last {
    departs: Instant,
    at: Instant,
}

/// The outcome for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not delivered.
    Dropped(DropCause),
    /// It is delivered.
    Deliver(Delivery),
}

/// Why a packet is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The loss model chose it.
    Loss,
    /// The queue was full.
    Overflow,
    /// The active queue management chose it.
    Aqm,
    /// It exceeded the policer's rate.
    Policer,
    /// It exceeded the MTU.
    TooBig,
    /// It left during an outage.
    Outage,
}

/// The delivery of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its last bit leaves the bottleneck.
    pub departs: Instant,
    /// When it arrives.
    pub at: Instant,
    /// When a duplicate arrives; `None` without one.
    pub duplicate_at: Option<Instant>,
    /// Present if the packet is corrupted: a uniform random number, which the caller scales to the
    /// packet's length to select the bit to flip.
    pub corrupt: Option<u32>,
    /// Whether it keeps its order.
    pub order: Order,
    /// Whether it is marked with congestion experienced. The active queue management marks only
    /// ECN-capable packets; with the threshold of [`LinkSpec::ecn`] the caller must check that the
    /// packet is ECN-capable.
    pub marked_ce: bool,
}

/// Whether a packet keeps its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It arrives after all packets offered before it that keep their order.
    Kept,
    /// It is delayed further, and later packets may overtake it.
    HeldBack,
}

impl Link {
    /// An idle link at [`Instant::ZERO`].
    pub fn new(spec: LinkSpec, seed: u64) -> Self {
        Self {
            policer: Policer::new(spec.police),
            bottleneck: Bottleneck::new(&spec),
            losses: Losses::new(spec.loss, seed, 1),
            corrupt: Die::new(spec.corrupt, seed, 2),
            duplicate: Die::new(spec.duplicate, seed, 3),
            reorder: Die::new(spec.reorder.probability, seed, 4),
            jitter: Jitter::new(spec.jitter, seed),
            background: Background::new(&spec, seed),
            last: Last::default(),
            counters: Counters::default(),
            spec,
        }
    }

    /// The current specification.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Changes the specification at `now`.
    ///
    /// Packets in the bottleneck leave at the new rate. The outcomes returned for them are out of
    /// date, and the caller updates them with the returned [`Retiming`]. A new delay applies to
    /// packets offered later, which still do not overtake earlier ones. The random sources
    /// continue.
    pub fn set_spec(&mut self, now: Instant, spec: LinkSpec) -> Retiming {
        self.advance(now);
        self.policer.set(now, spec.police);
        let retiming = self.bottleneck.change(now, &spec);
        let moved = retiming.departs(self.last.departs);
        self.last = Last { at: moved + (self.last.at - self.last.departs), departs: moved };
        if spec.loss != self.spec.loss {
            self.losses.set(spec.loss);
        }
        self.corrupt.set(spec.corrupt);
        self.duplicate.set(spec.duplicate);
        self.reorder.set(spec.reorder.probability);
        self.jitter.set(spec.jitter);
        self.background.set(now, &spec);
        self.spec = spec;
        retiming
    }

    /// Offers a packet that is not ECN-capable.
    #[inline]
    pub fn offer(&mut self, now: Instant, ip_len: u32) -> Verdict {
        self.offer_as(now, ip_len, Ecn::Not)
    }

    /// Offers a packet of `ip_len` bytes including the IP header, at `now`. `now` must not be
    /// before that of any earlier packet.
    #[inline]
    pub fn offer_as(&mut self, now: Instant, ip_len: u32, ecn: Ecn) -> Verdict {
        self.counters.segments += 1;
        self.counters.bytes += u64::from(ip_len);
        self.advance(now);
        if self.spec.mtu.is_some_and(|mtu| ip_len > mtu) {
            self.counters.too_big += 1;
            return Verdict::Dropped(DropCause::TooBig);
        }
        if !self.policer.admits(now, ip_len) {
            self.counters.policed += 1;
            return Verdict::Dropped(DropCause::Policer);
        }
        let (departs, is_marked) = match self.bottleneck.enqueue(now, ip_len, ecn) {
            Entry::Sent { departs, is_marked } => (departs, is_marked),
            Entry::AqmDropped => {
                self.counters.aqm_dropped += 1;
                return Verdict::Dropped(DropCause::Aqm);
            }
            Entry::Full => {
                self.counters.overflowed += 1;
                return Verdict::Dropped(DropCause::Overflow);
            }
        };
        let queued = self.bottleneck.queued();
        self.counters.note_queue(queued, departs - now);
        if self.spec.outages.iter().any(|outage| outage.covers(departs)) {
            self.counters.cut += 1;
            return Verdict::Dropped(DropCause::Outage);
        }
        if self.losses.next() {
            self.counters.lost += 1;
            return Verdict::Dropped(DropCause::Loss);
        }
        let threshold = self.spec.ecn.is_some_and(|threshold| queued > threshold.bytes());
        let marked_ce = is_marked || threshold;
        Verdict::Deliver(self.deliver(departs, ip_len, marked_ce))
    }

    /// Offers the cross traffic that is due, and removes the packets that have left by `now`. With
    /// cross traffic, a call after a long pause has much to do; a caller that minds calls this from
    /// time to time.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        while let Some((at, bytes)) = self.background.next_by(now) {
            self.bottleneck.settle(at, &mut self.counters);
            match self.bottleneck.enqueue(at, bytes, Ecn::Not) {
                Entry::Sent { departs, .. } => {
                    self.counters.background += 1;
                    self.counters.note_queue(self.bottleneck.queued(), departs - at);
                }
                Entry::AqmDropped | Entry::Full => self.counters.background_dropped += 1,
            }
        }
        self.bottleneck.settle(now, &mut self.counters);
    }

    /// The bytes in the bottleneck queue at `now`.
    pub fn queue(&mut self, now: Instant) -> DataSize {
        self.advance(now);
        DataSize::from_bytes(self.bottleneck.queued())
    }

    /// The counters at the time of the last offer.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The counters at `now`.
    pub fn counters_at(&mut self, now: Instant) -> &Counters {
        self.advance(now);
        self.counters.until = self.counters.until.max(now);
        &self.counters
    }

    #[inline]
    fn deliver(&mut self, departs: Instant, ip_len: u32, marked_ce: bool) -> Delivery {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(ip_len);
        let mut at = departs + self.spec.delay + self.jitter.at(departs);
        let mut order = Order::Kept;
        if self.reorder.roll() && self.spec.reorder.extra > Duration::ZERO {
            at += self.spec.reorder.extra;
            order = Order::HeldBack;
            self.counters.reordered += 1;
        } else {
            at = at.max(self.last.at);
            self.last = Last { departs, at };
        }
        let duplicate_at = self.duplicate.roll().then_some(at);
        self.counters.duplicated += u64::from(duplicate_at.is_some());
        let corrupt = self.corrupt.roll().then(|| self.corrupt.bits());
        self.counters.corrupted += u64::from(corrupt.is_some());
        self.counters.marked += u64::from(marked_ce);
        Delivery { departs, at, duplicate_at, corrupt, order, marked_ce }
    }
}
