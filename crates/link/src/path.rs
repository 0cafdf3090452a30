//! Both directions of a path, with queues that may be given relative to it.

use crate::spec::LinkSpec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use hikyaku_units::{DataSize, ParseUnitError};

/// One way or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// A path between a client and a server. The default is perfect both ways.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// From the client to the server; its `queue` is overridden by `queue_up`.
    pub up: LinkSpec,
    /// From the server to the client; its `queue` is overridden by `queue_down`.
    pub down: LinkSpec,
    /// The queue of the way up.
    pub queue_up: QueueRule,
    /// The queue of the way down.
    pub queue_down: QueueRule,
}

impl PathSpec {
    /// The delay there and back, jitter not counted.
    pub fn rtt(&self) -> Duration {
        self.up.delay + self.down.delay
    }

    /// The spec of one direction, with its queue in bytes.
    pub fn link(&self, direction: Direction) -> LinkSpec {
        let (link, rule) = match direction {
            Direction::Up => (&self.up, self.queue_up),
            Direction::Down => (&self.down, self.queue_down),
        };
        LinkSpec { queue: rule.bytes(link, self.rtt()), ..link.clone() }
    }
}

/// How large a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum QueueRule {
    /// A quarter of the path's bandwidth-delay product, at least 64 KiB and at most 5 MB: the
    /// buffer of a common router port.
    #[default]
    Common,
    /// A multiple of the path's bandwidth-delay product.
    Bdp(f64),
    /// This much.
    Bytes(DataSize),
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
            Self::Unlimited => None,
        }
    }
}

impl FromStr for QueueRule {
    type Err = ParseUnitError;
    /// `5MB`, `0.25bdp`, `unlimited` or `common`.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        match text {
            "unlimited" => return Ok(Self::Unlimited),
            "common" => return Ok(Self::Common),
            _ => {}
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
            Self::Bytes(size) => write!(f, "{}B", size.bytes()),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}
