//! The plan of a test: what it sends, how long and in which way. The client makes it; the server
//! checks it before it follows it.

use crate::compete::{Compete, Kind as CompetitorKind, MAX_COMPETITORS};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use thiserror::Error;

/// Everything that both ends need to know about a test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) direction: Direction,
    pub(crate) limit: Limit,
    /// Number of connections, each with one data stream.
    pub(crate) streams: u32,
    /// Seconds between two interval reports.
    pub(crate) interval: f64,
    /// Seconds at the start that are left out of the result.
    pub(crate) omit: f64,
    /// Largest payload rate of each stream, in bits per second.
    pub(crate) target: Option<u64>,
    pub(crate) kind: Kind,
    pub(crate) handling: Handling,
    /// Size of one write, in bytes.
    pub(crate) length: u32,
    pub(crate) stall: Option<Stall>,
    /// The competing flows. With them, `limit` and `omit` apply to each part of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compete: Option<Compete>,
}

/// Whether the result of a test includes the time in which its rate grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StartUp {
    /// As far as `Plan::omit` says.
    Counted,
    /// Left out, as long as it may take on this path.
    LeftOut,
}

impl StartUp {
    /// Round trips in which a rate grows to that of the path: ten doublings, what they overshoot, and losses meanwhile.
    const ROUND_TRIPS: f64 = 20.0;
    /// Bounds of the time left out, in seconds: of a near path, and of a handshake that had to be repeated.
    const SECONDS: [f64; 2] = [0.5, 12.0];

    /// The plan with this start-up, on a path whose handshake took so long: about one round trip. A test of a number of
    /// bytes has no time to leave out.
    pub(crate) fn of(self, mut plan: Plan, handshake: Duration) -> Plan {
        if self == Self::LeftOut && matches!(plan.limit, Limit::Seconds(_)) {
            let [least, most] = Self::SECONDS;
            plan.omit = (Self::ROUND_TRIPS * handshake.as_secs_f64()).clamp(least, most);
        }
        plan
    }
}

/// Which end sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The client sends.
    Upload,
    /// The server sends.
    Download,
}

impl Direction {
    /// The opposite direction, that of the other test of a `--bidir` pair.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Upload => Self::Download,
            Self::Download => Self::Upload,
        }
    }
}

/// When the test ends.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// After this many seconds, the omitted time not included.
    Seconds(f64),
    /// After this many bytes, over all streams together.
    Bytes(u64),
}

/// Which transport primitive carries the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Streams that deliver bytes in order
    Ordered,
    /// Objects whose bytes are delivered with their offset, in any order
    Object,
}

/// How the application passes data to and from the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Handling {
    /// Passes whole buffers without a copy.
    ZeroCopy,
    /// Copies, as `write()` and `read()` do.
    Copy,
}

/// A pause of the receiving application.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Stall {
    /// Length of the pause in seconds.
    pub(crate) seconds: f64,
    /// Start of the pause, in seconds from the start of the test.
    pub(crate) at: f64,
}

/// A value of the plan is outside its range.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{what} must be from {least} to {most}, not {value}")]
pub(crate) struct BadPlan {
    what: &'static str,
    least: f64,
    most: f64,
    value: f64,
}

/// iperf3's limit.
pub(crate) const MAX_STREAMS: u32 = 128;
/// One day, in seconds.
pub(crate) const MAX_SECONDS: f64 = 86_400.0;
/// One hour, in seconds. Shorter than the limit for other tests, because competing flows load a
/// path that others use.
const MAX_PART_SECONDS: f64 = 3600.0;
/// At least this fraction of each part counts; `omit` cannot be longer than the rest.
const JUDGED_FRACTION_MIN: f64 = 0.2;

impl Plan {
    /// Checks every value. The plan may come from an untrusted peer.
    pub(crate) fn check(&self) -> Result<(), BadPlan> {
        let (seconds, bytes) = match self.limit {
            Limit::Seconds(seconds) => (seconds, 1),
            // With competitors a test cannot be limited by bytes: only a duration can be the same
            // for all flows. Zero seconds fails the check below.
            Limit::Bytes(bytes) if self.compete.is_some() => (0.0, bytes),
            Limit::Bytes(bytes) => (1.0, bytes),
        };
        let (most_seconds, most_omitted, competitors) = match &self.compete {
            Some(compete) => {
                (MAX_PART_SECONDS, seconds * (1.0 - JUDGED_FRACTION_MIN), compete.all())
            }
            None => (MAX_SECONDS, MAX_OMITTED_SECONDS, 1),
        };
        let stall = self.stall.unwrap_or(Stall { seconds: 0.0, at: 0.0 });
        let target = self.target.unwrap_or(8000);
        for (what, least, value, most) in [
            ("the number of streams (-P)", 1.0, f64::from(self.streams), f64::from(MAX_STREAMS)),
            ("the time (-t)", 0.1, seconds, most_seconds),
            ("the number of bytes (-n)", 1.0, bytes as f64, 1e18),
            ("the interval (-i)", 0.1, self.interval, MAX_SECONDS),
            ("the omitted time (-O)", 0.0, self.omit, most_omitted),
            (
                "the number of competitors (--compete)",
                1.0,
                f64::from(competitors),
                f64::from(MAX_COMPETITORS),
            ),
            ("the target rate (-b) in bits per second", 8000.0, target as f64, 1e12),
            ("the write size in bytes (-l)", 1.0, f64::from(self.length), MAX_WRITE_BYTES),
            ("the length of the pause (--stall)", 0.0, stall.seconds, MAX_SECONDS),
            ("the start of the pause (--stall)", 0.0, stall.at, MAX_SECONDS),
        ] {
            if !(least..=most).contains(&value) {
                return Err(BadPlan { what, least, most, value });
            }
        }
        Ok(())
    }

    /// Seconds until the receiver stops counting, or `None` if the test is limited by bytes.
    pub(crate) fn total_seconds(&self) -> Option<f64> {
        match self.limit {
            // The measured flows run in two of the three parts: together with the competitors, and
            // alone.
            Limit::Seconds(part) if self.compete.is_some() => Some(2.0 * part),
            Limit::Seconds(seconds) => Some(self.omit + seconds),
            Limit::Bytes(_) => None,
        }
    }

    /// Number of hikyaku connections: the measured ones plus competing hikyaku flows.
    pub(crate) fn connections(&self) -> u32 {
        let competitors =
            self.compete.as_ref().map(|compete| compete.count(CompetitorKind::Hikyaku));
        self.streams.saturating_add(competitors.unwrap_or(0))
    }

    /// Bytes that stream `index` has to carry, or `None` if the test is limited by time.
    pub(crate) fn quota(&self, index: usize) -> Option<u64> {
        let Limit::Bytes(bytes) = self.limit else { return None };
        let streams = u64::from(self.streams);
        Some(bytes / streams + u64::from((index as u64) < bytes % streams))
    }
}

const MAX_OMITTED_SECONDS: f64 = 3600.0;
const MAX_WRITE_BYTES: f64 = (1 << 20) as f64;

impl Default for Plan {
    fn default() -> Self {
        Self {
            direction: Direction::Upload,
            limit: Limit::Seconds(10.0),
            streams: 1,
            interval: 1.0,
            omit: 0.0,
            target: None,
            kind: Kind::Ordered,
            handling: Handling::ZeroCopy,
            length: 256 << 10,
            stall: None,
            compete: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(compete: &str) -> Plan {
        Plan { compete: Some(compete.parse().unwrap()), ..Plan::default() }
    }

    #[test]
    fn the_measured_flows_run_for_two_parts() {
        let plan = Plan { omit: 2.0, ..beside("tcp:4:cubic,hikyaku:2") };
        assert_eq!(plan.check(), Ok(()));
        assert_eq!((plan.total_seconds(), plan.connections()), (Some(20.0), 3));
    }

    #[test]
    fn plans_outside_the_ranges_are_refused() {
        assert_eq!(Plan::default().check(), Ok(()));
        for plan in [
            Plan { streams: 0, ..Plan::default() },
            Plan { streams: MAX_STREAMS + 1, ..Plan::default() },
            Plan { limit: Limit::Seconds(f64::NAN), ..Plan::default() },
            Plan { limit: Limit::Bytes(0), ..Plan::default() },
            Plan { interval: 0.0, ..Plan::default() },
            Plan { omit: -1.0, ..Plan::default() },
            Plan { length: 2 << 20, ..Plan::default() },
            Plan { target: Some(1), ..Plan::default() },
            Plan { stall: Some(Stall { seconds: 1e9, at: 0.0 }), ..Plan::default() },
            Plan { compete: Some(Compete::default()), ..Plan::default() },
            Plan { limit: Limit::Bytes(1), ..beside("tcp:1") },
            Plan { limit: Limit::Seconds(3601.0), ..beside("tcp:1") },
            Plan { omit: 8.1, ..beside("tcp:1") },
            beside("tcp:65"),
            beside("tcp:60,hikyaku:5"),
            beside("tcp:4294967295,tcp:4294967295,hikyaku:4294967295"),
        ] {
            assert!(plan.check().is_err(), "{plan:?}");
        }
    }

    #[test]
    fn quotas_add_up() {
        let plan = Plan { limit: Limit::Bytes(10), streams: 4, ..Plan::default() };
        let quotas: Vec<_> = (0..4).filter_map(|index| plan.quota(index)).collect();
        assert_eq!(quotas, [3, 3, 2, 2]);
    }
}
