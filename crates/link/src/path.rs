//! Both directions of a path, with queue sizes that may be relative to its bandwidth-delay product.

use crate::spec::LinkSpec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use hikyaku_units::{DataSize, ParseUnitError};

/// A direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// A path between a client and a server. The default has no delay, no limit and no impairment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// From the client to the server. Its `queue` is overridden by `queue_up`.
    pub up: LinkSpec,
    /// From the server to the client; its `queue` is overridden by `queue_down`.
    pub down: LinkSpec,
    /// The queue size from the client to the server.
    pub queue_up: QueueRule,
    /// The queue size from the server to the client.
    pub queue_down: QueueRule,
}

impl PathSpec {
    /// The round-trip delay without jitter and queueing.
    pub fn rtt(&self) -> Duration {
        self.up.delay + self.down.delay
    }

    /// The specification of one direction, with its queue size resolved to bytes or packets.
    pub fn link(&self, direction: Direction) -> LinkSpec {
        let (link, rule) = match direction {
            Direction::Up => (&self.up, self.queue_up),
            Direction::Down => (&self.down, self.queue_down),
        };
        let (queue, queue_packets) = match rule {
            QueueRule::Packets(packets) => (None, Some(packets)),
            _ => (rule.bytes(link, self.rtt()), None),
        };
        LinkSpec { queue, queue_packets, ..link.clone() }
    }
}

/// The size of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum QueueRule {
    /// A quarter of the path's bandwidth-delay product, but at least 64 KiB and at most 5 MB: the
    /// buffer of a common router port.
    #[default]
    Common,
    /// A multiple of the path's bandwidth-delay product.
    Bdp(f64),
    /// A number of bytes.
    Bytes(DataSize),
    /// A number of packets, as in routers that limit descriptors rather than bytes.
    Packets(u32),
    /// No limit.
    Unlimited,
}

impl QueueRule {
    fn bytes(self, link: &LinkSpec, rtt: Duration) -> Option<DataSize> {
        let rate = link.rate?;
        let bdp = |factor: f64| (rate.in_time(rtt).bytes() as f64 * factor) as u64;
        match self {
            Self::Common => Some(DataSize::from_bytes(bdp(0.25).clamp(64 * 1024, 5_000_000))),
            Self::Bdp(factor) => Some(DataSize::from_bytes(bdp(factor))),
            Self::Bytes(size) => Some(size),
            Self::Packets(_) | Self::Unlimited => None,
        }
    }
}

impl FromStr for QueueRule {
    type Err = ParseUnitError;
    /// Parses `5MB`, `500p`, `0.25bdp`, `unlimited` or `common`.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        match text {
            "unlimited" => return Ok(Self::Unlimited),
            "common" => return Ok(Self::Common),
            _ => {}
        }
        if let Some(Ok(packets)) = text.strip_suffix('p').map(|count| count.trim().parse()) {
            return Ok(Self::Packets(packets));
        }
        match text.strip_suffix("bdp").and_then(|factor| factor.trim().parse::<f64>().ok()) {
            Some(factor) if factor.is_finite() && factor >= 0.0 => Ok(Self::Bdp(factor)),
            _ => text.parse().map(Self::Bytes),
        }
    }
}

impl fmt::Display for QueueRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Common => f.write_str("common"),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Bytes(size) => write!(f, "{}B", size.bytes()),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}
