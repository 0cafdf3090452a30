//! Health of the relay: counts everything that makes a measurement invalid.

use super::lateness::Lateness;
use hikyaku_tun::{DeviceStats, Tun};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Counters since the clock was started.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) lateness: Lateness,
    /// Packets that are not addressed to any host of the lab, such as multicast.
    pub(crate) stray: u64,
    /// Packets dropped because the arena was full.
    pub(crate) no_memory: u64,
    /// Packets that a device did not accept.
    pub(crate) refused: u64,
    /// Drops of the devices, and processor time used, before the clock was started.
    devices_before: DeviceDrops,
    cpu_before: Duration,
}

/// Packets that the lab itself lost, not the emulated link. Any of them makes a measurement
/// invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnDrops {
    /// Dropped by a device because a namespace sent faster than the relay read.
    pub(crate) device: u64,
    /// Not accepted by the kernel when the relay wrote them.
    pub(crate) refused: u64,
    /// Dropped because the arena was full.
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
    /// All counters at zero.
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
            // The device counts some of the packets that it refuses, but not all. The larger number
            // is closer to the truth.
            refused: self.refused.max(by_devices),
            memory: self.no_memory,
        }
    }

    /// Processor time that the calling thread, the relay's, has used.
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
