//! What is counted.

use serde::Serialize;

/// Files and bytes since the start. The other end counts some of them and may tell anything, so sums saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Files found so far.
    pub total_files: u64,
    /// Bytes in them.
    pub total_bytes: u64,
    /// All has been found, so that the totals are final.
    pub is_counted: bool,
    /// Files that are done.
    pub files: u64,
    /// Bytes that are done.
    pub bytes: u64,
    /// Of these, bytes that were not sent: they were there already, or are holes.
    pub kept_bytes: u64,
}

/// What is known of the network path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathFigures {
    /// Packets sent since the start.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Payload bytes retransmitted.
    pub resent_bytes: u64,
    /// Payload bytes of a full packet; 0 if it is not known.
    pub packet_bytes: u16,
    /// Smoothed round-trip time in seconds.
    pub rtt: f64,
    /// Queueing delay in seconds.
    pub queue: f64,
    /// What limits the rate.
    pub limited_by: LimitedBy,
}

/// What limits the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// Not known yet: the transport is still measuring the path.
    #[default]
    Starting,
    /// The network path.
    Link,
    /// Reading at the sender.
    Source,
    /// Writing at the receiver.
    Target,
    /// The limit that the user set.
    Limit,
}

impl Counts {
    /// Adds the counts of another piece of the same work.
    pub const fn add(&mut self, other: &Self) {
        self.total_files = self.total_files.saturating_add(other.total_files);
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.is_counted = other.is_counted;
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.kept_bytes = self.kept_bytes.saturating_add(other.kept_bytes);
    }

    /// Bytes that were sent.
    pub const fn sent(&self) -> u64 {
        self.bytes.saturating_sub(self.kept_bytes)
    }
}

impl PathFigures {
    /// Packets declared lost in percent of those sent; `None` before the first packet.
    pub fn lost_percent(&self) -> Option<f64> {
        let sent = (self.sent_packets > 0).then_some(self.sent_packets as f64)?;
        Some(100.0 * self.lost_packets as f64 / sent)
    }
}

impl LimitedBy {
    /// In words, after a line of progress.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Link => "limited by the link",
            Self::Source => "limited by the source",
            Self::Target => "limited by the target",
            Self::Limit => "limited by --rate",
        }
    }
}
