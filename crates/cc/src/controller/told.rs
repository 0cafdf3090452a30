//! Figures of the path from the controller.

use super::{Controller, Mode};
use crate::path::PathHint;
use crate::settings::{Phase, Snapshot};
use core::time::Duration;
use hikyaku_units::{Probability, Rate};

impl Controller {
    /// The path's own loss.
    pub fn ambient_loss(&self) -> f64 {
        self.loss.ambient()
    }

    /// Smoothed round-trip time; before the first sample what the handshake took.
    pub fn srtt(&self) -> Duration {
        self.path.srtt().unwrap_or_else(|| Duration::from_secs_f64(self.known_rtt))
    }

    /// Smallest round-trip time of the last ten seconds, beside others of five minutes.
    pub fn base_rtt(&self) -> Option<Duration> {
        self.path.base_rtt()
    }

    /// Jitter within a round.
    pub fn jitter(&self) -> Duration {
        Duration::from_secs_f64(self.path.jitter())
    }

    /// The queueing delay of the last round.
    pub fn queue(&self) -> Duration {
        Duration::from_secs_f64(self.queue)
    }

    /// Figures to keep for the next connection, once start-up has found the capacity.
    pub fn hint(&self) -> Option<PathHint> {
        match &self.mode {
            Mode::Startup(_) => None,
            Mode::Cruise => Some(PathHint {
                rate: Rate::from_bytes_per_sec(self.path.rate()?),
                base_rtt: self.path.base_rtt()?,
            }),
        }
    }

    /// The state, for statistics.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: match &self.mode {
                Mode::Startup(_) => Phase::Startup,
                Mode::Cruise if self.probe.is_draining() => Phase::Drain,
                Mode::Cruise if self.compete.is_some() => Phase::Compete,
                Mode::Cruise => Phase::Cruise,
            },
            window: self.window(),
            pacing_rate: self.pacing_rate(),
            delivery_rate: Rate::from_bytes_per_sec(self.path.rate().unwrap_or(0.0)),
            queue: self.queue(),
            ambient_loss: Probability::new(self.loss.ambient()),
            base_rtt: self.path.base_rtt().unwrap_or_default(),
            srtt: self.srtt(),
        }
    }
}
