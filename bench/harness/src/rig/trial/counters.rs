//! The link's counters over a run, and what follows from them.

use crate::rig::link::Link;
use anyhow::{Context, Result};
use hikyaku_lab::{DirectionReport, Report};

#[cfg(test)]
mod tests;

/// Readings in the order of time. All sums grow, so what lies between two is interpolated.
pub(crate) struct Counters {
    readings: Vec<Report>,
}

/// What the queue of the way up did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Queue {
    /// The mean wait in the second half.
    pub(crate) mean_ms: f64,
    /// What of the second half's segments the full queue turned away, in percent.
    pub(crate) overflow_percent: f64,
    /// What it turned away before, in bandwidth-delay products.
    pub(crate) startup_bdp: f64,
}

impl Counters {
    /// From at least one reading.
    pub(crate) fn new(readings: Vec<Report>) -> Result<Self> {
        readings.last().context("the counters were never read")?;
        Ok(Self { readings })
    }

    /// The last reading.
    pub(crate) fn end(&self) -> &Report {
        &self.readings[self.readings.len() - 1]
    }

    /// The value of a sum at a time of the lab's clock.
    pub(crate) fn at(&self, seconds: f64, sum: impl Fn(&DirectionReport) -> f64) -> f64 {
        let later = self.readings.iter().position(|reading| reading.seconds >= seconds);
        let Some(later) = later else { return sum(&self.end().up) };
        let after = &self.readings[later];
        let Some(before) = later.checked_sub(1).map(|index| &self.readings[index]) else {
            return sum(&after.up);
        };
        let share = (seconds - before.seconds) / (after.seconds - before.seconds);
        sum(&before.up) + share * (sum(&after.up) - sum(&before.up))
    }

    /// The queue in the second half of a transfer of `seconds` that began at `origin`.
    pub(crate) fn queue(&self, link: &Link, origin: f64, seconds: f64) -> Queue {
        let (half, end) = (origin + seconds / 2.0, origin + seconds);
        let during = |sum: &dyn Fn(&DirectionReport) -> f64| self.at(end, sum) - self.at(half, sum);
        let overflowed = |up: &DirectionReport| up.overflowed as f64;
        let startup = self.at(half, overflowed) * f64::from(link.mtu);
        Queue {
            mean_ms: during(&|up| up.queue_ms_seconds) / (seconds / 2.0),
            overflow_percent: 100.0 * during(&overflowed)
                / during(&|up| up.segments as f64).max(1.0),
            startup_bdp: startup / link.bdp(),
        }
    }
}
