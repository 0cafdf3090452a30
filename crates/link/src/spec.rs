//! What a link is like: the plain description that users choose and the model obeys.

use crate::codel::CodelSpec;
use crate::policer::PoliceSpec;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Probability, Rate};

/// One direction of a link. The default is a perfect link: no delay, no limit, no harm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// What the bottleneck passes, framing included; `None` is infinitely fast.
    pub rate: Option<Rate>,
    /// From the last bit leaving the bottleneck to the delivery.
    pub delay: Duration,
    /// What the bottleneck holds, the segment being sent included; `None` is unlimited. An empty
    /// bottleneck takes a segment of any size.
    pub queue: Option<DataSize>,
    /// Which segments vanish after the bottleneck.
    pub loss: LossModel,
    /// The largest extra delay. It wanders between zero and this without reordering anything.
    pub jitter: Duration,
    /// Which segments are overtaken.
    pub reorder: Reorder,
    /// How many segments arrive twice.
    pub duplicate: Probability,
    /// How many segments arrive damaged.
    pub corrupt: Probability,
    /// The largest segment in bytes of IP; longer ones vanish without a word.
    pub mtu: Option<u32>,
    /// When the wire is cut.
    pub outages: Vec<Outage>,
    /// Segments that leave more than this in the queue are marked with congestion experienced.
    pub ecn: Option<DataSize>,
    /// How the queue is managed; `None` only by its length.
    pub aqm: Option<CodelSpec>,
    /// What is let through to the queue.
    pub police: Option<PoliceSpec>,
}

/// Which segments are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossModel {
    /// None.
    #[default]
    None,
    /// Each with the same probability, independently.
    Bernoulli(Probability),
    /// Runs of consecutive segments (the Gilbert model).
    Bursts {
        /// The share of all segments that is lost in the long run.
        loss: Probability,
        /// The mean length of a run in segments, at least 1.
        mean_burst: f64,
    },
    /// Every n-th, exactly.
    Periodic(u64),
}

/// Which segments are held back so that later ones overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// The share of segments held back.
    pub probability: Probability,
    /// For how long.
    pub extra: Duration,
}

/// A time in which everything that leaves the bottleneck is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The first instant.
    pub from: Instant,
    /// The length.
    pub lasts: Duration,
}

impl Outage {
    /// Whether the wire is cut at `at`.
    pub fn covers(&self, at: Instant) -> bool {
        at >= self.from && at < self.from + self.lasts
    }
}
