//! One direction of a link, and the packets in flight on it.

use super::rebuild::Packet;
use hikyaku_link::{Link, LinkSpec, Order};
use hikyaku_units::Instant;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A link and its packets in flight.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) link: Link,
    /// In order of arrival: the link delivers in order all packets that it does not hold back for
    /// reordering.
    ordered: VecDeque<Arrival>,
    held_back: BinaryHeap<Reverse<Arrival>>,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) departs: Instant,
    pub(crate) packet: Packet,
    /// The destination port.
    pub(crate) port: u32,
}

impl Line {
    pub(crate) fn new(spec: LinkSpec, seed: u64) -> Self {
        Self { link: Link::new(spec, seed), ordered: VecDeque::new(), held_back: BinaryHeap::new() }
    }

    pub(crate) fn push(&mut self, arrival: Arrival, order: Order) {
        match order {
            Order::Kept => self.ordered.push_back(arrival),
            Order::HeldBack => self.held_back.push(Reverse(arrival)),
        }
    }

    /// When the next packet arrives.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let ordered = self.ordered.front().map(|arrival| arrival.at);
        match (ordered, self.held_back.peek()) {
            (Some(at), Some(Reverse(held))) => Some(at.min(held.at)),
            (None, Some(Reverse(held))) => Some(held.at),
            (ordered, None) => ordered,
        }
    }

    /// Removes the packet that arrives next.
    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        let held_first = match (self.ordered.front(), self.held_back.peek()) {
            (Some(ordered), Some(Reverse(held))) => held.at < ordered.at,
            (ordered, held) => ordered.is_none() && held.is_some(),
        };
        if held_first {
            self.held_back.pop().map(|Reverse(held)| held)
        } else {
            self.ordered.pop_front()
        }
    }

    /// Changes the link's settings, and recomputes the arrival of packets that are still in the
    /// bottleneck's queue.
    pub(crate) fn set_spec(&mut self, now: Instant, spec: LinkSpec) {
        let retiming = self.link.set_spec(now, spec);
        if retiming.is_identity() {
            return;
        }
        let retime = |mut arrival: Arrival| {
            arrival.at = retiming.delivery(arrival.departs, arrival.at);
            arrival.departs = retiming.departs(arrival.departs);
            arrival
        };
        for arrival in &mut self.ordered {
            *arrival = retime(*arrival);
        }
        let held_back = std::mem::take(&mut self.held_back);
        self.held_back = held_back.into_iter().map(|Reverse(held)| Reverse(retime(held))).collect();
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
