//! The state of a server, as it tells its clients.

use hikyaku_run_log::Load;
use serde::{Deserialize, Serialize};

/// The state of a server and of its connection to the client. What the server cannot tell is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub machine: MachineReport,
    /// The connection, as the server's sending end sees it.
    pub path: Option<PathReport>,
}

/// The state of a machine. It describes the whole machine, so all clients are told the same.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MachineReport {
    /// Thousandths of the mean number of processes that ran or waited to run in the last minute.
    pub load_milli: Option<u64>,
    /// Processors.
    pub processors: Option<u32>,
    /// Processor time of all programs, in thousandths of that of all processors.
    pub cpu_permille: Option<u64>,
    /// Processor time of the server's program, in thousandths of that of one processor.
    pub process_cpu_permille: Option<u64>,
    /// Bytes of memory in use.
    pub memory_used: Option<u64>,
    /// Bytes of memory.
    pub memory_total: Option<u64>,
    /// Resident bytes of the server's program.
    pub process_memory: Option<u64>,
    /// Free bytes of the file system that is served.
    pub disk_free: Option<u64>,
    /// Bytes of the file system that is served.
    pub disk_total: Option<u64>,
    /// The time in which its device had requests, in thousandths.
    pub disk_busy_permille: Option<u64>,
    /// Bytes that the server's program has had read from disks.
    pub disk_read: Option<u64>,
    /// Bytes that the server's program has had written to disks.
    pub disk_written: Option<u64>,
}

/// A connection, as its sending end sees it. Counters begin with the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PathReport {
    /// Bytes of payload sent.
    pub sent_payload: u64,
    /// Packets sent.
    pub sent_packets: Option<u64>,
    /// Packets declared lost.
    pub lost_packets: Option<u64>,
    /// Bytes of payload that were sent again.
    pub resent_bytes: Option<u64>,
    /// The smoothed round-trip time in microseconds.
    pub rtt_micros: u64,
    /// The part of it that is spent in queues, in microseconds.
    pub queue_micros: Option<u64>,
    /// Bytes a second that the rate control allows.
    pub allowed_rate: Option<u64>,
}

impl From<&Load> for MachineReport {
    fn from(load: &Load) -> Self {
        let thousandths = |value: Option<f64>| value.map(|value| (value * 1e3).round() as u64);
        let permille =
            |percent: Option<f64>| percent.map(|percent| (percent * 10.0).round() as u64);
        Self {
            load_milli: thousandths(load.load),
            processors: load.processors,
            cpu_permille: permille(load.cpu_percent),
            process_cpu_permille: permille(load.process_cpu_percent),
            memory_used: load.memory_used_bytes,
            memory_total: load.memory_total_bytes,
            process_memory: load.process_memory_bytes,
            disk_free: load.disk_free_bytes,
            disk_total: load.disk_total_bytes,
            disk_busy_permille: permille(load.disk_busy_percent),
            disk_read: load.disk_read_bytes,
            disk_written: load.disk_written_bytes,
        }
    }
}

impl MachineReport {
    /// The same as a sample of a log. A share of more than all is taken for all.
    pub fn load(&self) -> Load {
        let share =
            |permille: Option<u64>| permille.map(|permille| permille.min(1000) as f64 / 10.0);
        Load {
            load: self.load_milli.map(|milli| milli as f64 / 1e3),
            processors: self.processors,
            cpu_percent: share(self.cpu_permille),
            process_cpu_percent: self.process_cpu_permille.map(|permille| permille as f64 / 10.0),
            memory_used_bytes: self.memory_used,
            memory_total_bytes: self.memory_total,
            process_memory_bytes: self.process_memory,
            disk_free_bytes: self.disk_free,
            disk_total_bytes: self.disk_total,
            disk_busy_percent: share(self.disk_busy_permille),
            disk_read_bytes: self.disk_read,
            disk_written_bytes: self.disk_written,
            ..Load::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_tells_of_its_machine_is_what_it_has_seen() {
        let load = Load {
            load: Some(1.25),
            processors: Some(2),
            cpu_percent: Some(99.9),
            process_cpu_percent: Some(180.5),
            memory_used_bytes: Some(1),
            memory_total_bytes: Some(2),
            process_memory_bytes: Some(3),
            disk_free_bytes: Some(4),
            disk_total_bytes: Some(5),
            disk_busy_percent: Some(0.1),
            disk_read_bytes: Some(6),
            disk_written_bytes: Some(7),
            ..Load::default()
        };
        assert_eq!(MachineReport::from(&load).load(), load);
        let liar = MachineReport { cpu_permille: Some(u64::MAX), ..MachineReport::default() };
        assert_eq!(liar.load().cpu_percent, Some(100.0));
    }
}
