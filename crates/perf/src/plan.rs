//! What a test is to do. The client makes it, the server checks it before it obeys.

use crate::compete::{Compete, Kind as CompetitorKind, MAX_COMPETITORS};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Everything both ends need to know of a test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) direction: Direction,
    pub(crate) limit: Limit,
    /// Connections, each with one stream of data.
    pub(crate) streams: u32,
    /// Seconds between records.
    pub(crate) interval: f64,
    /// Seconds at the beginning that do not count.
    pub(crate) omit: f64,
    /// Most payload of each stream, bits a second.
    pub(crate) target: Option<u64>,
    pub(crate) kind: Kind,
    pub(crate) handling: Handling,
    /// Bytes of one write.
    pub(crate) length: u32,
    pub(crate) stall: Option<Stall>,
    /// What competes. Then the time is that of each part, and so is what is omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compete: Option<Compete>,
}

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    /// The client.
    Upload,
    /// The server.
    Download,
}

/// When it is enough.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    /// After so many seconds, those omitted not counted.
    Seconds(f64),
    /// After so many bytes, in all streams together.
    Bytes(u64),
}

/// What carries the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Bytes in order
    Ordered,
    /// Bytes with their offsets, as they come
    Object,
}

/// What the application does with a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Handling {
    /// Hands over and takes whole buffers.
    ZeroCopy,
    /// Copies, as `write()` and `read()` do.
    Copy,
}

/// A pause of the reader.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Stall {
    /// How long, in seconds.
    pub(crate) seconds: f64,
    /// When, in seconds from the beginning.
    pub(crate) at: f64,
}

/// The plan is not one that this end follows.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{what} must be from {least} to {most}, not {value}")]
pub(crate) struct BadPlan {
    what: &'static str,
    least: f64,
    most: f64,
    value: f64,
}

/// As iperf3.
pub(crate) const MAX_STREAMS: u32 = 128;
/// A day.
const MAX_SECONDS: f64 = 86_400.0;
/// An hour: competitors hold a path that others use.
const MAX_PART: f64 = 3600.0;
/// Of each part so much is left to judge.
const LEAST_JUDGED: f64 = 0.2;

impl Plan {
    /// Whether the figures make sense. They may come from a stranger.
    pub(crate) fn check(&self) -> Result<(), BadPlan> {
        let (seconds, bytes) = match self.limit {
            Limit::Seconds(seconds) => (seconds, 1),
            // Only a time can be the same for all.
            Limit::Bytes(bytes) if self.compete.is_some() => (0.0, bytes),
            Limit::Bytes(bytes) => (1.0, bytes),
        };
        let (most_seconds, most_omitted, competitors) = match &self.compete {
            Some(compete) => (MAX_PART, seconds * (1.0 - LEAST_JUDGED), compete.all()),
            None => (MAX_SECONDS, MAX_OMITTED, 1),
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
            ("the target rate (-b) in bits a second", 8000.0, target as f64, 1e12),
            ("the bytes of a write (-l)", 1.0, f64::from(self.length), MAX_LENGTH),
            ("the length of the stall", 0.0, stall.seconds, MAX_SECONDS),
            ("the time of the stall", 0.0, stall.at, MAX_SECONDS),
        ] {
            if !(least..=most).contains(&value) {
                return Err(BadPlan { what, least, most, value });
            }
        }
        Ok(())
    }

    /// Seconds until the receiver stops counting, if time decides.
    pub(crate) fn total_seconds(&self) -> Option<f64> {
        match self.limit {
            // Beside the competitors, and alone.
            Limit::Seconds(part) if self.compete.is_some() => Some(2.0 * part),
            Limit::Seconds(seconds) => Some(self.omit + seconds),
            Limit::Bytes(_) => None,
        }
    }

    /// Connections in all: the measured, and competitors of our own.
    pub(crate) fn connections(&self) -> u32 {
        let competitors =
            self.compete.as_ref().map(|compete| compete.count(CompetitorKind::Hikyaku));
        self.streams.saturating_add(competitors.unwrap_or(0))
    }

    /// What stream `index` is to carry, if bytes decide.
    pub(crate) fn quota(&self, index: usize) -> Option<u64> {
        let Limit::Bytes(bytes) = self.limit else { return None };
        let streams = u64::from(self.streams);
        Some(bytes / streams + u64::from((index as u64) < bytes % streams))
    }
}

const MAX_OMITTED: f64 = 3600.0;
const MAX_LENGTH: f64 = (1 << 20) as f64;

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
    fn ours_beside_competitors_and_alone_take_two_parts() {
        let plan = Plan { omit: 2.0, ..beside("tcp:4:cubic,hikyaku:2") };
        assert_eq!(plan.check(), Ok(()));
        assert_eq!((plan.total_seconds(), plan.connections()), (Some(20.0), 3));
    }

    #[test]
    fn senseless_plans_are_refused() {
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
