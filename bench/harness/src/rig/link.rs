//! A link to measure on, and what the best transport could carry over it.

use anyhow::{Result, anyhow};
use hikyaku_lab::{HostProfile, LabSpec};
use hikyaku_link::{Direction, PathSpec, Setting};
use hikyaku_units::Instant;

#[cfg(test)]
mod tests;

/// A link between the two ends of a lab; loss is for each direction, as a share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// Bits a second.
    pub(crate) rate: f64,
    /// Milliseconds there and back.
    pub(crate) rtt_ms: f64,
    /// The share of segments lost each way.
    pub(crate) loss: f64,
    /// Bytes of an IP packet.
    pub(crate) mtu: u32,
}

impl Link {
    /// One gigabit a second and ordinary packets.
    pub(crate) const fn gigabit(rtt_ms: f64, loss: f64) -> Self {
        Self { rate: 1e9, rtt_ms, loss, mtu: 1500 }
    }

    /// Payload in bits a second that counts as full use of the link: the rate, less what is lost,
    /// less a fixed allowance for headers, whatever ours are.
    pub(crate) fn eff(&self) -> f64 {
        let payload = if self.mtu >= 9000 { 0.988 } else { 0.9285 };
        (1.0 - self.loss) * self.rate * payload
    }

    /// Bytes under way when the link is full.
    pub(crate) fn bdp(&self) -> f64 {
        self.rate / 8.0 * self.rtt_ms / 1e3
    }

    /// The path, with the queue that is usual: a quarter of the bandwidth-delay product, at most
    /// 5 MB.
    pub(crate) fn path(&self) -> Result<PathSpec> {
        let rate = format!("{:.0}bit", self.rate);
        let rtt = format!("{}ms", self.rtt_ms);
        let loss = format!("{}%", self.loss * 100.0);
        let mtu = self.mtu.to_string();
        path(&[("rate", &rate), ("rtt", &rtt), ("loss", &loss), ("mtu", &mtu)])
    }

    /// How long a full queue takes to pass.
    pub(crate) fn full_queue_ms(&self) -> Result<f64> {
        let queue = self.path()?.link(Direction::Up).queue;
        let bytes = queue.ok_or_else(|| anyhow!("the queue has no limit"))?.bytes();
        Ok(bytes as f64 * 8.0 / self.rate * 1e3)
    }

    /// A lab with this link, Debian's TCP settings and chance by `seed`.
    pub(crate) fn lab(&self, seed: u32) -> Result<LabSpec> {
        Ok(LabSpec { path: self.path()?, seed: u64::from(seed), ..LabSpec::default() })
    }

    /// The same with another queue, as the lab's command line takes it.
    pub(crate) fn lab_with_queue(&self, seed: u32, queue: &str) -> Result<LabSpec> {
        let mut spec = self.lab(seed)?;
        for setting in settings(&[("queue", queue)])? {
            setting.apply(&mut spec.path, Instant::ZERO);
        }
        Ok(spec)
    }
}

/// A path by the settings that the lab's command line takes.
pub(crate) fn path(settings: &[(&str, &str)]) -> Result<PathSpec> {
    let mut path = PathSpec::default();
    for setting in self::settings(settings)? {
        setting.apply(&mut path, Instant::ZERO);
    }
    Ok(path)
}

/// Settings as the lab's command line takes them.
pub(crate) fn settings(settings: &[(&str, &str)]) -> Result<Vec<Setting>> {
    let parse = |&(key, value): &(&str, &str)| {
        Setting::parse(key, value).map_err(|error| anyhow!("{key} {value}: {error}"))
    };
    settings.iter().map(parse).collect()
}

/// TCP settings at both ends.
pub(crate) fn host(is_tuned: bool, control: &str) -> HostProfile {
    let congestion_control = Some(control.to_owned());
    if is_tuned {
        HostProfile::Tuned { congestion_control }
    } else {
        HostProfile::Debian { congestion_control }
    }
}
