//! What a controller is told at the start, and what it tells for statistics.

use crate::path::PathHint;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use hikyaku_units::{ParseUnitError, Probability, Rate, parse_limit};

/// How a connection shares its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Fills what is free and shares what is not: the law of [`crate`]'s `law` module, and beside TCP
    /// what one more TCP flow would take.
    #[default]
    Fair,
    /// Fills what is free, and gives way to whoever holds a queue.
    Scavenger,
    /// Delivers this rate whatever the loss, up to 30 % of it, and up to 200 ms of queue: beyond that for
    /// three seconds it is halved. For paths that are the user's own.
    Fixed(Rate),
}

/// A text that is no policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoPolicy {
    /// No policy has this name.
    Name,
    /// The rate of `fixed:RATE` is none.
    Rate(ParseUnitError),
}

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => {
                f.write_str("there are 'fair', 'scavenger' and 'fixed:RATE' (fixed:800mbit)")
            }
            Self::Rate(error) => write!(f, "fixed:RATE: {error}"),
        }
    }
}

impl core::error::Error for NoPolicy {}

impl FromStr for Policy {
    type Err = NoPolicy;
    fn from_str(text: &str) -> Result<Self, NoPolicy> {
        match text {
            "fair" => return Ok(Self::Fair),
            "scavenger" => return Ok(Self::Scavenger),
            _ => {}
        }
        let rate = text.strip_prefix("fixed:").ok_or(NoPolicy::Name)?;
        parse_limit(rate).map(Self::Fixed).map_err(NoPolicy::Rate)
    }
}

impl Policy {
    /// The text that is parsed to this policy, for the other end: every version reads its rate alike.
    pub fn text(self) -> String {
        match self {
            Self::Fixed(rate) => format!("fixed:{}bit", rate.bits_per_sec()),
            named => named.to_string(),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fair => f.write_str("fair"),
            Self::Scavenger => f.write_str("scavenger"),
            Self::Fixed(rate) => write!(f, "fixed at {rate}"),
        }
    }
}

/// What a controller needs to know beforehand.
#[derive(Clone, Copy, Debug)]
pub struct ControllerConfig {
    /// How to share.
    pub policy: Policy,
    /// UDP payload bytes of a full packet.
    pub datagram: u64,
    /// What an earlier connection learnt of this path.
    pub hint: Option<PathHint>,
    /// The rate that will not be exceeded anyway; start-up ends when it is proven.
    pub target: Option<Rate>,
}

/// Where a controller is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Finding the capacity.
    Startup,
    /// Holding the target queue.
    Cruise,
    /// One round below the target to see the empty path again.
    Drain,
    /// Others hold the queue: the window is what one more of them would have.
    Compete,
}

/// A controller's state for statistics.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// Where it is.
    pub phase: Phase,
    /// Bytes that may be in flight.
    pub window: u64,
    /// The rate at which packets leave.
    pub pacing_rate: Rate,
    /// Delivery rate of the last round, UDP payload.
    pub delivery_rate: Rate,
    /// Queueing delay of the last round.
    pub queue: Duration,
    /// The path's own loss.
    pub ambient_loss: Probability,
    /// Smallest recent round-trip time.
    pub base_rtt: Duration,
    /// Smoothed round-trip time; before the first sample what the handshake took.
    pub srtt: Duration,
}
