//! How well the relay does: what makes a measurement worthless is counted here.

use super::lateness::Lateness;
use hikyaku_tun::{DeviceStats, Tun};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Sums since the clock was started.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) lateness: Lateness,
    /// Packets for nobody in the lab, such as multicast.
    pub(crate) stray: u64,
    /// Packets for which there was no memory.
    pub(crate) no_memory: u64,
    /// Packets that a device did not take.
    pub(crate) refused: u64,
    /// What the devices had dropped, and the processor time used, before.
    devices_before: DeviceDrops,
    cpu_before: Duration,
}

/// Packets that were lost though no link lost them. Any makes a measurement worthless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnDrops {
    /// A namespace sent faster than the relay read.
    pub(crate) device: u64,
    /// The kernel did not take what the relay wrote.
    pub(crate) refused: u64,
    /// The relay had no memory left.
    pub(crate) memory: u64,
}

impl OwnDrops {
    pub(crate) fn total(&self) -> u64 {
        self.device + self.refused + self.memory
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct DeviceDrops {
    from_namespaces: u64,
    to_namespaces: u64,
}

impl Health {
    /// All sums at zero.
    pub(crate) fn new(ports: &[Tun]) -> Self {
        Self {
            lateness: Lateness::default(),
            stray: 0,
            no_memory: 0,
            refused: 0,
            devices_before: DeviceDrops::of(ports),
            cpu_before: cpu_time(),
        }
    }

    pub(crate) fn own_drops(&self, ports: &[Tun]) -> OwnDrops {
        let (now, before) = (DeviceDrops::of(ports), self.devices_before);
        let by_devices = now.to_namespaces.saturating_sub(before.to_namespaces);
        OwnDrops {
            device: now.from_namespaces.saturating_sub(before.from_namespaces),
            // The device counts some of what it refuses, and not all: the larger number is nearer.
            refused: self.refused.max(by_devices),
            memory: self.no_memory,
        }
    }

    /// The processor time that the calling thread, the relay's, has used.
    pub(crate) fn cpu(&self) -> Duration {
        cpu_time().saturating_sub(self.cpu_before)
    }
}

impl DeviceDrops {
    fn of(ports: &[Tun]) -> Self {
        let stats = ports.iter().map(|port| port.stats().unwrap_or_default());
        stats.fold(Self::default(), |sum: Self, stats: DeviceStats| Self {
            from_namespaces: sum.from_namespaces + stats.tx_dropped,
            to_namespaces: sum.to_namespaces + stats.rx_dropped,
        })
    }
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
