//! Samples of the paths' state at the sender: counters since the start of the connection, and
//! current values. The difference of two samples describes an interval.

use crate::message::bits_per_second;
use hikyaku_cc::Phase as CcPhase;
use hikyaku_net::{Connection, Stats};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

#[cfg(test)]
mod tests;

/// All connections of a test at one time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PathReport {
    /// Seconds since the sender began.
    pub(crate) seconds: f64,
    pub(crate) streams: Vec<PathSample>,
}

/// One connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PathSample {
    pub(crate) sent_packets: u64,
    /// UDP payload plus IP and UDP headers.
    pub(crate) wire_bytes: u64,
    /// Payload, each byte once.
    pub(crate) payload_bytes: u64,
    pub(crate) resent_bytes: u64,
    pub(crate) lost_packets: u64,
    pub(crate) spurious_losses: u64,
    pub(crate) outages: u64,
    pub(crate) in_flight: u64,
    /// The congestion window in bytes.
    pub(crate) window: u64,
    pub(crate) rtt_ms: f64,
    pub(crate) base_rtt_ms: f64,
    pub(crate) queue_ms: f64,
    pub(crate) ambient_loss_percent: f64,
    pub(crate) phase: Phase,
}

/// Phase of the sender's congestion control.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    #[default]
    Startup,
    Drain,
    Cruise,
    Compete,
}

/// Change between two reports, of one stream or of all streams together.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct PathDelta {
    /// Time between the two reports by the sender's clock, in seconds.
    pub(crate) seconds: f64,
    /// Counters are differences; all other values are those of the later report.
    pub(crate) sample: PathSample,
}

impl PathReport {
    /// Takes a sample of every connection.
    pub(crate) async fn take(connections: &[Connection], seconds: f64) -> Self {
        let mut streams = Vec::with_capacity(connections.len());
        for connection in connections {
            let stats = connection.stats().await;
            let overhead = header_bytes(connection.remote_addr());
            streams.push(stats.map(|stats| PathSample::of(&stats, overhead)).unwrap_or_default());
        }
        Self { seconds, streams }
    }

    /// Change of each stream since `before`.
    pub(crate) fn since(&self, before: &Self) -> Vec<PathDelta> {
        let nothing = PathSample::default();
        let seconds = (self.seconds - before.seconds).max(0.0);
        let delta = |(index, later): (usize, &PathSample)| PathDelta {
            seconds,
            sample: later.minus(before.streams.get(index).unwrap_or(&nothing)),
        };
        self.streams.iter().enumerate().map(delta).collect()
    }
}

impl PathSample {
    pub(crate) fn of(stats: &Stats, overhead: u64) -> Self {
        let path = &stats.path;
        let phase = match path.phase {
            CcPhase::Startup => Phase::Startup,
            CcPhase::Drain => Phase::Drain,
            CcPhase::Cruise => Phase::Cruise,
            CcPhase::Compete => Phase::Compete,
        };
        Self {
            sent_packets: stats.sent.packets,
            wire_bytes: stats.sent.bytes + stats.sent.packets * overhead,
            payload_bytes: stats.sent_payload.bytes(),
            resent_bytes: stats.resent.bytes(),
            lost_packets: stats.lost_packets,
            spurious_losses: stats.spurious_losses,
            outages: stats.outages,
            in_flight: stats.in_flight.bytes(),
            window: path.window,
            rtt_ms: path.srtt.as_secs_f64() * 1e3,
            base_rtt_ms: path.base_rtt.as_secs_f64() * 1e3,
            queue_ms: path.queue.as_secs_f64() * 1e3,
            ambient_loss_percent: path.ambient_loss.get() * 100.0,
            phase,
        }
    }

    fn minus(&self, before: &Self) -> Self {
        Self {
            sent_packets: self.sent_packets.saturating_sub(before.sent_packets),
            wire_bytes: self.wire_bytes.saturating_sub(before.wire_bytes),
            payload_bytes: self.payload_bytes.saturating_sub(before.payload_bytes),
            resent_bytes: self.resent_bytes.saturating_sub(before.resent_bytes),
            lost_packets: self.lost_packets.saturating_sub(before.lost_packets),
            spurious_losses: self.spurious_losses.saturating_sub(before.spurious_losses),
            outages: self.outages.saturating_sub(before.outages),
            ..self.clone()
        }
    }
}

impl PathDelta {
    /// All streams together: counters are summed, delays and loss rates are averaged, the base
    /// round-trip time is the minimum, and the phase is the earliest.
    pub(crate) fn sum(streams: &[Self]) -> Option<Self> {
        let first = streams.first()?;
        let count = streams.len() as f64;
        let add = |of: fn(&PathSample) -> u64| {
            streams.iter().fold(0u64, |sum, d| sum.saturating_add(of(&d.sample)))
        };
        let mean =
            |of: fn(&PathSample) -> f64| streams.iter().map(|d| of(&d.sample)).sum::<f64>() / count;
        let least = streams.iter().map(|d| d.sample.base_rtt_ms).fold(f64::INFINITY, f64::min);
        let phase = streams.iter().map(|d| d.sample.phase).min().unwrap_or_default();
        let sample = PathSample {
            sent_packets: add(|s| s.sent_packets),
            wire_bytes: add(|s| s.wire_bytes),
            payload_bytes: add(|s| s.payload_bytes),
            resent_bytes: add(|s| s.resent_bytes),
            lost_packets: add(|s| s.lost_packets),
            spurious_losses: add(|s| s.spurious_losses),
            outages: add(|s| s.outages),
            in_flight: add(|s| s.in_flight),
            window: add(|s| s.window),
            rtt_ms: mean(|s| s.rtt_ms),
            base_rtt_ms: least,
            queue_ms: mean(|s| s.queue_ms),
            ambient_loss_percent: mean(|s| s.ambient_loss_percent),
            phase,
        };
        Some(Self { seconds: first.seconds, sample })
    }

    /// This change followed by `next`.
    pub(crate) fn and(&self, next: &Self) -> Self {
        let (a, b) = (&self.sample, &next.sample);
        let sample = PathSample {
            sent_packets: a.sent_packets.saturating_add(b.sent_packets),
            wire_bytes: a.wire_bytes.saturating_add(b.wire_bytes),
            payload_bytes: a.payload_bytes.saturating_add(b.payload_bytes),
            resent_bytes: a.resent_bytes.saturating_add(b.resent_bytes),
            lost_packets: a.lost_packets.saturating_add(b.lost_packets),
            spurious_losses: a.spurious_losses.saturating_add(b.spurious_losses),
            outages: a.outages.saturating_add(b.outages),
            ..b.clone()
        };
        Self { seconds: self.seconds + next.seconds, sample }
    }

    pub(crate) fn wire_bits_per_second(&self) -> f64 {
        bits_per_second(self.sample.wire_bytes, self.seconds)
    }

    /// Packets declared lost, per hundred sent.
    pub(crate) fn lost_percent(&self) -> f64 {
        percent(self.sample.lost_packets, self.sample.sent_packets)
    }

    /// Payload bytes retransmitted, per hundred payload bytes.
    pub(crate) fn resent_percent(&self) -> f64 {
        percent(self.sample.resent_bytes, self.sample.payload_bytes)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Size of the IP and UDP headers of a packet to `peer`, in bytes.
fn header_bytes(peer: SocketAddr) -> u64 {
    match peer.ip().to_canonical() {
        IpAddr::V4(_) => 28,
        IpAddr::V6(_) => 48,
    }
}
