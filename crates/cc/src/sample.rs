//! The input of a controller.

use core::time::Duration;
use hikyaku_units::Instant;

/// One arrival that the receiver reported with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The packet.
    pub packet_number: u64,
    /// When it was sent, by the sender's clock.
    pub sent: Instant,
    /// When it arrived, in microseconds of the receiver's clock.
    pub received_micros: u64,
    /// Bytes of UDP payload that had arrived by then in all.
    pub delivered: u64,
    /// Bytes of UDP payload that had been sent in all when this packet was, itself included.
    pub offered: u64,
}

/// An amount of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
}

impl Volume {
    /// Adds `bytes` in `packets` packets.
    pub const fn add(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
    }
}

/// Packets whose time for arriving is over. Unlike [`AckEvent::acked`] and [`AckEvent::lost`], of
/// which the latter lag behind, both counts are of the same packets: their ratio is the loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that did not.
    pub lost: u64,
    /// The packet number below which all are counted, now or before.
    pub below: u64,
}

/// The limit on the sender since the last event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The controller itself: its window or its rate.
    Controller,
    /// The user's own cap on the rate.
    Cap,
    /// Something else: no data, or the receiver.
    Other,
}

/// The contents of one acknowledgement.
#[derive(Clone, Debug)]
pub struct AckEvent<'a> {
    /// The time.
    pub now: Instant,
    /// Arrivals with their times, oldest first.
    pub arrivals: &'a [Arrival],
    /// A fresh round-trip sample, without the receiver's delay.
    pub rtt: Option<Duration>,
    /// Packets that newly count as arrived.
    pub acked: Volume,
    /// Packets that newly count as lost.
    pub lost: Volume,
    /// Packets that are newly old enough to be judged at all, arrived and lost ones.
    pub settled: Settled,
    /// Of the packets acknowledged, how many carried a congestion mark (newly).
    pub marked: u64,
    /// The largest packet number known to have arrived.
    pub largest: u64,
    /// The packet number that the next packet will have.
    pub next_packet_number: u64,
    /// Bytes in flight after this event.
    pub in_flight: u64,
    /// The limit on the sender.
    pub limit: Limit,
}
