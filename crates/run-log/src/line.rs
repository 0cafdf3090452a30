//! The lines of a log. `docs/reports.md` describes them.
//!
//! Fields and types of lines may be added. None is removed or changed without a new number of the version. A reader ignores
//! what it does not know.

use serde::{Deserialize, Serialize};

/// The version that a log names in its first line.
pub(crate) const VERSION: u32 = 1;

/// A line of a log: a JSON object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// The first line.
    Run(Begin),
    /// A machine that takes part.
    Machine(Machine),
    /// The state of a machine.
    Load(Load),
    /// The state of the transfer between the first machine and another one.
    Flow(Flow),
    /// A file begins or ends.
    File(FileLine),
    /// A point of a curve of measured rate against target rate.
    Point(Point),
    /// The last line. It is missing if the program was killed.
    End(End),
    /// A line of a newer program.
    #[serde(other)]
    Other,
}

/// The subject of a log.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Begin {
    /// The version of the format.
    pub version: u32,
    /// The command: `cp`, `perf` or `serve`.
    pub command: String,
    /// A description of the run, for people.
    pub title: String,
    /// The version of the program.
    pub program: String,
    /// When it began: RFC 3339, UTC.
    pub began: String,
    /// The begin in seconds since 1970. All times `t` of the log count from it.
    pub began_unix: f64,
}

/// The number of a machine in its log. 0 is the machine that writes the log.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct MachineId(pub u32);

/// A machine that takes part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its number.
    pub m: MachineId,
    /// Its name.
    pub name: String,
    /// The role of the machine.
    pub role: Role,
}

/// The role of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It runs the command.
    Client,
    /// It is the other end.
    Server,
}

/// The state of a machine. Values that it cannot determine are missing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    /// Seconds since the begin of the log.
    #[serde(default)]
    pub t: f64,
    /// The machine.
    #[serde(default)]
    pub m: MachineId,
    /// Processes that run or wait to run, the mean of a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u32>,
    /// Processor time of the machine since the last sample, in percent of that of all its processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// Processor time of the program since the last sample, in percent of that of one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_cpu_percent: Option<f64>,
    /// Memory in use, without what the kernel can take back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used_bytes: Option<u64>,
    /// All memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    /// Resident memory of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_memory_bytes: Option<u64>,
    /// Free space of the file system of the transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_free_bytes: Option<u64>,
    /// Its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_total_bytes: Option<u64>,
    /// The time in which its device had requests, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_busy_percent: Option<f64>,
    /// Bytes that the program has had read from disks since its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_read_bytes: Option<u64>,
    /// Bytes that it has had written to disks since its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes: Option<u64>,
}

/// The state of the transfer with a machine. Counters begin with the connection; what is not known is missing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    /// Seconds since the begin of the log.
    pub t: f64,
    /// The other machine.
    pub m: MachineId,
    /// Payload that this machine has sent to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Payload that this machine has received of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Packets that the sender has sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_packets: Option<u64>,
    /// Packets that it has declared lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// Payload that it has sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resent_bytes: Option<u64>,
    /// The smoothed round-trip time, by the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// The part of it that is spent in queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<f64>,
    /// The rate that the sender's rate control allows, in bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_bytes_per_second: Option<u64>,
    /// The limit of the rate, if the sender reports it: starting, link, source, target or limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
}

/// A file begins or ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FileLine {
    /// Seconds since the begin of the log.
    pub t: f64,
    /// Which of both.
    pub stage: FileStage,
    /// Its path. Bytes that are no UTF-8 are replaced.
    pub path: String,
    /// Its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The machine that it comes from or goes to first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub m: Option<MachineId>,
}

/// An event of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStage {
    /// Its first bytes are asked for or sent.
    Begin,
    /// It has its name.
    End,
    /// It failed.
    Failed,
}

/// A point of a sweep of target rates.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// The rate that the sender was to send.
    pub target_bits_per_second: f64,
    /// The rate that arrived.
    pub received_bits_per_second: f64,
    /// Packets declared lost, in percent.
    pub lost_percent: f64,
    /// The smoothed round-trip time at the end.
    pub rtt_ms: f64,
    /// The mean delay in queues.
    pub queue_ms: f64,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct End {
    /// Seconds since the begin of the log.
    pub t: f64,
    /// The exit code of the command.
    pub exit_code: u8,
    /// Files that were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Bytes that were transferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Begins and ends of files that were not written, because there were too many.
    #[serde(default)]
    pub untold_files: u64,
}

/// A time as the lines have it: milliseconds, with two digits behind the point.
pub fn millis(seconds: f64) -> f64 {
    (seconds * 1e5).round() / 1e2
}
