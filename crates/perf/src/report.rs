//! The result of a test, under iperf3's names where it has the same figure. Every output format is
//! made from these types.

mod build;
mod compete;

pub(crate) use build::{end, first_socket, interval, pair_end, pair_start};
#[cfg(test)]
pub(crate) use compete::Role;
pub(crate) use compete::{CompeteEnd, CompetitorInterval, FlowEnd, competitors};

use crate::limit::LimitedBy;
use crate::message::{Ending, Welcome};
use crate::sample::Phase;
use serde::Serialize;

/// How the time between the first packet and the receiver's time zero was determined.
pub(crate) const ESTIMATE: &str = "the client's clock; if the server receives, the server's time \
    zero is taken to be the arrival of its welcome less half the smoothed round-trip time";

/// What is known when a test begins.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Start {
    pub(crate) version: String,
    pub(crate) system_info: String,
    pub(crate) connected: Vec<Connected>,
    /// Seconds since 1970.
    pub(crate) timestamp: Timestamp,
    pub(crate) test_start: TestStart,
    pub(crate) cipher: String,
    pub(crate) policy: String,
    /// UDP payload of a full packet, in bytes.
    pub(crate) mtu_payload: u16,
    pub(crate) granted_recv_buffer: u64,
    pub(crate) granted_send_buffer: u64,
    pub(crate) server: Option<Server>,
    pub(crate) warnings: Vec<String>,
    pub(crate) handshake_seconds: f64,
    pub(crate) since_first_packet: Option<f64>,
    pub(crate) since_first_packet_method: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Timestamp {
    pub(crate) timesecs: u64,
}

/// The addresses of one connection.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Connected {
    pub(crate) socket: u32,
    pub(crate) local_host: String,
    pub(crate) local_port: u16,
    pub(crate) remote_host: String,
    pub(crate) remote_port: u16,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct TestStart {
    pub(crate) protocol: &'static str,
    pub(crate) num_streams: u32,
    pub(crate) blksize: u32,
    pub(crate) omit: f64,
    /// Zero if the test is limited by bytes.
    pub(crate) duration: f64,
    /// Zero if the test is limited by time.
    pub(crate) bytes: u64,
    /// 0 or 1, as in iperf3.
    pub(crate) reverse: u8,
    pub(crate) bidir: u8,
    pub(crate) interval: f64,
    /// Bits per second of each stream; zero if there is no target.
    pub(crate) target_bitrate: u64,
    pub(crate) wire_target_bitrate: u64,
    pub(crate) streams: crate::plan::Kind,
    /// As typed, with the congestion controls in use filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compete: Option<String>,
}

/// The server's description of itself.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Server {
    pub(crate) version: String,
    pub(crate) system_info: String,
    pub(crate) granted_recv_buffer: u64,
    pub(crate) granted_send_buffer: u64,
}

/// One interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct IntervalReport {
    pub(crate) streams: Vec<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum: Option<Line>,
    /// Takes the place of `sum` in the test of a `--bidir` pair whose data come from the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_bidir_reverse: Option<Line>,
}

impl IntervalReport {
    /// The sum of all streams of one test.
    pub(crate) fn total(&self) -> Option<&Line> {
        self.sum.as_ref().or(self.sum_bidir_reverse.as_ref())
    }

    /// Merges this interval with that of the other test of the pair.
    pub(crate) fn beside(mut self, other: Self) -> Self {
        self.streams.extend(other.streams);
        self.sum = self.sum.or(other.sum);
        self.sum_bidir_reverse = self.sum_bidir_reverse.or(other.sum_bidir_reverse);
        self
    }
}

/// One stream, or all streams together, in one interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<u32>,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) seconds: f64,
    /// Payload delivered to the receiving application.
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
    pub(crate) omitted: bool,
    pub(crate) sender: bool,
    #[serde(flatten)]
    pub(crate) path: Option<PathLine>,
}

/// The sender's part of a line. Absent until the receiver has a path report from the sender.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PathLine {
    pub(crate) wire_bits_per_second: f64,
    pub(crate) rtt_ms: f64,
    pub(crate) base_rtt_ms: f64,
    pub(crate) queue_ms: f64,
    pub(crate) ambient_loss_percent: f64,
    pub(crate) lost_percent: f64,
    pub(crate) resent_percent: f64,
    pub(crate) retransmits: u64,
    pub(crate) phase: Phase,
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct End {
    pub(crate) streams: Vec<StreamEnd>,
    /// Payload that the sending transport sent, each byte once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_sent: Option<Sum>,
    /// Payload that the receiving application got after the omitted time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_received: Option<Sum>,
    /// Payload that it got since time zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_received_whole: Option<Sum>,
    pub(crate) cpu: Cpu,
    pub(crate) cpu_utilization_percent: Utilization,
    pub(crate) limited_by: LimitedBy,
    pub(crate) ending: Ending,
    pub(crate) wire_bits_per_second: f64,
    pub(crate) rtt_ms: f64,
    pub(crate) base_rtt_ms: f64,
    pub(crate) queue_ms: f64,
    pub(crate) ambient_loss_percent: f64,
    pub(crate) resent_percent: f64,
    pub(crate) lost_percent: f64,
    pub(crate) lost_packets: u64,
    pub(crate) spurious_losses: u64,
    pub(crate) outages: u64,
    pub(crate) host_drops_local: u64,
    pub(crate) host_drops_remote: Option<u64>,
    pub(crate) max_rss_local_bytes: u64,
    pub(crate) max_rss_remote_bytes: Option<u64>,
    pub(crate) busiest_thread_local: Option<Busiest>,
    pub(crate) busiest_thread_remote: Option<Busiest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compete: Option<CompeteEnd>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct StreamEnd {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sender: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) receiver: Option<Sum>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sum {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<u32>,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retransmits: Option<u64>,
    pub(crate) sender: bool,
}

/// Processor time of the whole processes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cpu {
    pub(crate) local_seconds_per_gb: Option<f64>,
    pub(crate) remote_seconds_per_gb: Option<f64>,
    pub(crate) local_seconds: f64,
    pub(crate) remote_seconds: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Utilization {
    pub(crate) host_total: f64,
    pub(crate) remote_total: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Busiest {
    pub(crate) name: String,
    pub(crate) percent: f64,
}

/// The result of a `--bidir` pair: that of the upload, plus the download's in fields of their own.
#[derive(Serialize)]
pub(crate) struct PairEnd {
    #[serde(flatten)]
    pub(crate) up: Option<End>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_sent_bidir_reverse: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum_received_bidir_reverse: Option<Sum>,
    /// The complete result of the download.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bidir_reverse: Option<End>,
}

/// The whole output of `-J`.
#[derive(Serialize)]
pub(crate) struct Report<'a, E = End> {
    pub(crate) title: &'a str,
    pub(crate) start: Option<&'a Start>,
    pub(crate) intervals: &'a [IntervalReport],
    /// Present only with competing flows.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) competitor_intervals: &'a [CompetitorInterval],
    pub(crate) end: Option<&'a E>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl From<&Welcome> for Server {
    fn from(welcome: &Welcome) -> Self {
        Self {
            version: welcome.program.clone(),
            system_info: welcome.system.clone(),
            granted_recv_buffer: welcome.granted_recv_buffer,
            granted_send_buffer: welcome.granted_send_buffer,
        }
    }
}
