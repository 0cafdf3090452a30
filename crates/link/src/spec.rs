//! The specification of a link, which users choose and the model implements.

use crate::background::BackgroundSpec;
use crate::codel::CodelSpec;
use crate::policer::PoliceSpec;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Probability, Rate};

/// One direction of a link. The default has no delay, no limit and no impairment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// The rate of the bottleneck, framing included; `None` is infinitely fast.
    pub rate: Option<Rate>,
    /// The propagation delay, from the last bit's departure to the delivery.
    pub delay: Duration,
    /// The queue limit in bytes, including the packet being sent; `None` is unlimited. An empty
    /// queue accepts a packet of any size.
    pub queue: Option<DataSize>,
    /// The queue limit in packets, counted in the same way. Both limits apply.
    pub queue_packets: Option<u32>,
    /// The loss after the bottleneck.
    pub loss: LossModel,
    /// The largest extra delay. It varies between zero and this value without reordering.
    pub jitter: Duration,
    /// The reordering of packets.
    pub reorder: Reorder,
    /// The share of packets that are delivered twice.
    pub duplicate: Probability,
    /// The share of packets that are delivered with a corrupted bit.
    pub corrupt: Probability,
    /// The largest packet in bytes of IP. Larger ones are dropped without an ICMP error.
    pub mtu: Option<u32>,
    /// Times in which the link loses all packets.
    pub outages: Vec<Outage>,
    /// The queue above which departing packets are marked with congestion experienced, in bytes.
    pub ecn: Option<DataSize>,
    /// The active queue management; `None` is a drop-tail queue.
    pub aqm: Option<CodelSpec>,
    /// The policer in front of the queue.
    pub police: Option<PoliceSpec>,
    /// The cross traffic that enters the queue behind the policer. It needs a rate.
    pub background: Option<BackgroundSpec>,
}

/// The loss of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossModel {
    /// No loss.
    #[default]
    None,
    /// Each packet independently with the same probability (Bernoulli).
    Bernoulli(Probability),
    /// Bursts of consecutive packets (Gilbert model).
    Bursts {
        /// The long-run share of packets lost.
        loss: Probability,
        /// The mean burst length in packets, at least 1.
        mean_burst: f64,
    },
    /// Exactly every n-th packet.
    Periodic(u64),
}

/// Reordering: some packets are delayed so that later ones overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// The share of packets delayed.
    pub probability: Probability,
    /// Their extra delay.
    pub extra: Duration,
}

/// A time in which all packets that leave the bottleneck are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Its start.
    pub from: Instant,
    /// Its length.
    pub lasts: Duration,
}

impl Outage {
    /// Whether `at` is within the outage.
    pub fn covers(&self, at: Instant) -> bool {
        at >= self.from && at < self.from + self.lasts
    }
}
