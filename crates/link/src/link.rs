//! One direction of a link: what happens to each segment.

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
/// Offer segments in order of time; each is answered at once. The same spec, seed and offers give
/// the same answers.
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
    last: Last,
    counters: Counters,
}

/// The last segment delivered in order: nothing after it may arrive before it.
#[derive(Debug, Default)]
struct Last {
    departs: Instant,
    at: Instant,
}

/// What becomes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It never arrives.
    Dropped(DropCause),
    /// It arrives.
    Deliver(Delivery),
}

/// Why a segment never arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The loss model took it.
    Loss,
    /// The queue was full.
    Overflow,
    /// The queue is managed, and chose it.
    Aqm,
    /// It was more than the policer lets through.
    Policer,
    /// It was longer than the MTU.
    TooBig,
    /// The wire was cut.
    Outage,
}

/// How a segment arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its last bit leaves the bottleneck.
    pub departs: Instant,
    /// When it arrives.
    pub at: Instant,
    /// When a second copy arrives.
    pub duplicate_at: Option<Instant>,
    /// It is damaged; the number chooses the bit to flip.
    pub corrupt: Option<u32>,
    /// In order, or overtaken by later ones.
    pub order: Order,
    /// It carries the mark of congestion experienced, if its sender understands that. A managed queue
    /// marks nothing of others.
    pub marked_ce: bool,
}

/// Whether a segment keeps its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It arrives after what was offered before it.
    Kept,
    /// It was held back, and later ones may overtake it.
    HeldBack,
}

impl Link {
    /// A link, idle at [`Instant::ZERO`].
    pub fn new(spec: LinkSpec, seed: u64) -> Self {
        Self {
            policer: Policer::new(spec.police),
            bottleneck: Bottleneck::new(&spec),
            losses: Losses::new(spec.loss, seed, 1),
            corrupt: Die::new(spec.corrupt, seed, 2),
            duplicate: Die::new(spec.duplicate, seed, 3),
            reorder: Die::new(spec.reorder.probability, seed, 4),
            jitter: Jitter::new(spec.jitter, seed),
            last: Last::default(),
            counters: Counters::default(),
            spec,
        }
    }

    /// What the link is like now.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Makes the link different from `now` on.
    ///
    /// What waits in the bottleneck leaves at the new rate: the answers given for it are out of
    /// date, and the returned [`Retiming`] says what they are now. A new delay holds for what is
    /// offered later, which still does not overtake what was offered before. The random sources go
    /// on where they are.
    pub fn set_spec(&mut self, now: Instant, spec: LinkSpec) -> Retiming {
        self.bottleneck.settle(now, &mut self.counters);
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
        self.spec = spec;
        retiming
    }

    /// Offers a segment of a sender that does not understand marks.
    #[inline]
    pub fn offer(&mut self, now: Instant, ip_len: u32) -> Verdict {
        self.offer_as(now, ip_len, Ecn::Not)
    }

    /// Offers a segment of `ip_len` bytes, the IP header included, at `now`, which is not before
    /// that of any earlier call.
    #[inline]
    pub fn offer_as(&mut self, now: Instant, ip_len: u32, ecn: Ecn) -> Verdict {
        self.counters.segments += 1;
        self.counters.bytes += u64::from(ip_len);
        self.bottleneck.settle(now, &mut self.counters);
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
            Entry::Chosen => {
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

    /// The bytes waiting in the bottleneck at `now`.
    pub fn queue(&mut self, now: Instant) -> DataSize {
        self.bottleneck.settle(now, &mut self.counters);
        DataSize::from_bytes(self.bottleneck.queued())
    }

    /// The sums up to the last offer.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The sums up to `now`.
    pub fn counters_at(&mut self, now: Instant) -> &Counters {
        self.bottleneck.settle(now, &mut self.counters);
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
