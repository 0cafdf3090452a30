//! The two links that all flows share, and the packets in flight.

use crate::duo::Mark;
use crate::middlebox::Envelope;
use hikyaku_link::{Counters, Ecn, Link, LinkSpec, Verdict};
use hikyaku_units::Instant;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

/// Packets between their sending and their arrival.
pub(crate) struct Wire {
    links: [Link; 2],
    packets: BinaryHeap<Reverse<Packet>>,
    sequence: u64,
}

/// A packet that will arrive.
pub(crate) struct Packet {
    pub(crate) at: Instant,
    sequence: u64,
    pub(crate) flow: usize,
    pub(crate) to: usize,
    pub(crate) cargo: Cargo,
    pub(crate) mark: Mark,
}

/// The content of a packet.
#[derive(Clone, Debug)]
pub(crate) enum Cargo {
    /// A datagram of this project's transport.
    Datagram(Vec<u8>),
    /// A datagram that an attacker delayed or forged.
    Meddled(Vec<u8>),
    /// A segment of a TCP model, or its acknowledgement: the number.
    Segment(u64),
}

impl Cargo {
    /// Datagrams state their ECN codepoint. The models of TCP do not use ECN.
    fn ecn(&self) -> Ecn {
        match self {
            Self::Datagram(bytes) if Envelope::is_capable(bytes) => Ecn::Capable,
            Self::Datagram(_) | Self::Meddled(_) | Self::Segment(_) => Ecn::Not,
        }
    }
}

/// The direction in which a flow sends.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) flow: usize,
    pub(crate) from: usize,
    /// The one-way delay of this flow's path in addition to that of the links.
    pub(crate) extra: Duration,
}

impl Wire {
    pub(crate) fn new(specs: [&LinkSpec; 2], rng: &mut fastrand::Rng) -> Self {
        let links = specs.map(|spec| Link::new(spec.clone(), rng.u64(..)));
        Self { links, packets: BinaryHeap::new(), sequence: 0 }
    }

    /// Sends a packet of `ip_len` bytes, IP header included.
    pub(crate) fn send(&mut self, now: Instant, way: Way, mut cargo: Cargo, ip_len: u32) {
        let ecn = cargo.ecn();
        let verdict = self.links[way.from].offer_as(now, ip_len, ecn);
        let Verdict::Deliver(delivery) = verdict else { return };
        let is_marked = delivery.marked_ce && ecn == Ecn::Capable;
        let mark = if is_marked { Mark::Congestion } else { Mark::None };
        if let Some(noise) = delivery.corrupt {
            // TCP's checksum detects it.
            let Cargo::Datagram(bytes) = &mut cargo else { return };
            let bit = noise as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for at in [Some(delivery.at), delivery.duplicate_at].into_iter().flatten() {
            self.sequence += 1;
            let (at, sequence, cargo) = (at + way.extra, self.sequence, cargo.clone());
            let (flow, to) = (way.flow, 1 - way.from);
            let packet = Packet { at, sequence, flow, to, cargo, mark };
            self.packets.push(Reverse(packet));
        }
    }

    /// Schedules the arrival of a datagram that has passed the links.
    pub(crate) fn hold(&mut self, at: Instant, flow: usize, to: usize, bytes: Vec<u8>) {
        self.sequence += 1;
        let cargo = Cargo::Meddled(bytes);
        self.packets.push(Reverse(Packet {
            at,
            sequence: self.sequence,
            flow,
            to,
            cargo,
            mark: Mark::None,
        }));
    }

    /// When the next packet arrives.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.packets.peek().map(|Reverse(packet)| packet.at)
    }

    /// The next packet that has arrived.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Packet> {
        self.next().filter(|&at| at <= now)?;
        self.packets.pop().map(|Reverse(packet)| packet)
    }

    pub(crate) fn set(&mut self, now: Instant, specs: [LinkSpec; 2]) {
        for (link, spec) in self.links.iter_mut().zip(specs) {
            link.set_spec(now, spec);
        }
    }

    /// The counters of the link from the clients to the servers.
    pub(crate) fn counters(&mut self, now: Instant) -> Counters {
        *self.links[0].counters_at(now)
    }

    /// The number of packets sent.
    pub(crate) const fn sent(&self) -> u64 {
        self.sequence
    }
}

impl Ord for Packet {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Packet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Packet {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Packet {}
