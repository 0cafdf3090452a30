//! Control messages: JSON after a length prefix of four bytes.
//!
//! The client sends [`Message::Hello`] on the first connection and [`Message::Join`] on every
//! further one. The server answers with [`Message::Welcome`] once all connections have arrived. The
//! receiving end's clock starts when it allows the sender to begin: for an upload when the server
//! sends its welcome, for a download when the client sends [`Message::Start`]. Then the receiver
//! sends byte counts and the sender sends the state of the path, until the receiver ends the test
//! and both exchange [`Message::End`].
//!
//! In a test with competing flows the server sends [`Message::Meet`] before its welcome. The
//! receiving end sends [`Message::Compete`], and one part later [`Message::Start`], at which its
//! clock starts, in both directions.

use crate::compete::{CompetitorCount, Meet, Standing};
use crate::plan::Plan;
use crate::sample::PathReport;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// Version of this protocol. A server refuses clients with a later one.
pub(crate) const VERSION: u32 = 2;
/// The first version. Tests without competitors use it, because older servers know no other.
pub(crate) const FIRST_VERSION: u32 = 1;
/// Longest message, in bytes, without its prefix.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Length of the prefix that holds the length of a message, in bytes.
pub(crate) const LENGTH_PREFIX_BYTES: usize = 4;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message {
    Hello(Box<Hello>),
    Join(Join),
    Welcome(Box<Welcome>),
    Refused {
        #[serde(deserialize_with = "plain")]
        reason: String,
        /// Absent in the messages of older servers.
        #[serde(default)]
        lasts: RefusalKind,
    },
    /// The TCP port and token for competing TCP flows.
    Meet(Meet),
    /// The competing flows may begin.
    Compete,
    Competitors(CompetitorCount),
    Start,
    Count(CountReport),
    Path(PathReport),
    /// The user at the sending end interrupted the test.
    Stop,
    End(Box<EndReport>),
}

/// Whether the client may try the same test again after a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalKind {
    /// The server will refuse the same test again.
    #[default]
    Always,
    /// The server may accept the test later.
    ForNow,
}

/// The client asks for a test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    #[serde(deserialize_with = "plain")]
    pub(crate) program: String,
    /// Identifies the test; the other connections present it in [`Join`].
    pub(crate) token: String,
    pub(crate) plan: Plan,
    /// Congestion control policy of the client, for the case that it sends.
    #[serde(deserialize_with = "plain")]
    pub(crate) policy: String,
    /// Largest rate that the client sends on the wire, headers included, in bits per second.
    pub(crate) wire_target: Option<u64>,
    /// Set for one of the two tests of a `--bidir` run; both have the same name. Older servers
    /// ignore it and run both tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pair: Option<String>,
}

/// The first message on every connection of a test but the first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Join {
    pub(crate) token: String,
    pub(crate) index: u32,
}

/// The server accepts the test and describes itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    #[serde(deserialize_with = "plain")]
    pub(crate) program: String,
    #[serde(deserialize_with = "plain")]
    pub(crate) system: String,
    pub(crate) granted_recv_buffer: u64,
    pub(crate) granted_send_buffer: u64,
    /// Congestion control policy of the server, for the case that it sends.
    #[serde(deserialize_with = "plain")]
    pub(crate) policy: String,
    #[serde(deserialize_with = "plain_lines")]
    pub(crate) warnings: Vec<String>,
}

/// Bytes that arrived in one interval, reported by the receiver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CountReport {
    /// Start of the interval in seconds since the receiver's time zero.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) share: Share,
    pub(crate) streams: Vec<StreamCount>,
}

/// Whether an interval counts towards the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Share {
    Counted,
    Omitted,
}

/// The part of one stream in an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StreamCount {
    /// Bytes delivered to the receiving application.
    pub(crate) bytes: u64,
    /// Size of the receive window in bytes.
    pub(crate) window: u64,
    /// Bytes that occupy the window: not read yet, or waiting for a gap before them to be filled.
    pub(crate) unread: u64,
}

/// Figures of one end, exchanged at the end of a test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct EndReport {
    pub(crate) ending: Ending,
    /// Duration of the measurement at this end.
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) max_rss_bytes: u64,
    pub(crate) host_drops: u64,
    /// The busiest thread, and the fraction of the time that it was running or runnable.
    pub(crate) busiest: Option<(Plain, f64)>,
    pub(crate) received: Option<Received>,
    pub(crate) sent: Option<PathReport>,
    /// Goodput of each flow in each part. Only from the receiving end of a test with competitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<Standing>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// The test ran to its planned end.
    Complete,
    /// A user interrupted the test.
    Interrupted,
    /// The connection or the other end was lost.
    Broken,
}

/// Totals of the receiver.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Received {
    /// From the receiver's time zero.
    pub(crate) whole: Span,
    /// After the omitted time.
    pub(crate) counted: Span,
    /// Bytes of each stream after the omitted time.
    pub(crate) streams: Vec<u64>,
}

/// Bytes in a span of time; start and end in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) bytes: u64,
}

/// A text from the peer without control characters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Plain(#[serde(deserialize_with = "plain")] pub(crate) String);

/// The bytes are not a valid message.
#[derive(Debug, Error)]
pub(crate) enum BadMessage {
    #[error("a message cannot have {0} bytes")]
    Size(usize),
    #[error("not a message: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Hello {
    /// The protocol version that a test of this plan needs.
    pub(crate) const fn version(plan: &Plan) -> u32 {
        if plan.compete.is_some() { VERSION } else { FIRST_VERSION }
    }
}

impl Message {
    /// The message with its length prefix.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH_PREFIX_BYTES];
        serde_json::to_writer(&mut bytes, self)
            .expect("its keys are strings and it goes to memory");
        let length = (bytes.len() - LENGTH_PREFIX_BYTES) as u32;
        bytes[..LENGTH_PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    /// Message length in bytes, from the prefix. Refuses zero and more than the maximum.
    pub(crate) fn length(prefix: [u8; LENGTH_PREFIX_BYTES]) -> Result<usize, BadMessage> {
        let length = u32::from_be_bytes(prefix) as usize;
        if length == 0 || length > MESSAGE_BYTES_MAX {
            return Err(BadMessage::Size(length));
        }
        Ok(length)
    }

    /// Parses a message without its prefix.
    // fuzz: lines
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadMessage> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// Whether these bytes are a valid message. Public only for the fuzz target.
pub fn is_message(bytes: &[u8]) -> bool {
    Message::decode(bytes).is_ok()
}

impl Span {
    pub(crate) fn seconds(&self) -> f64 {
        (self.end - self.start).max(0.0)
    }

    pub(crate) fn bits_per_second(&self) -> f64 {
        bits_per_second(self.bytes, self.seconds())
    }
}

/// `bytes` in `seconds` as a rate; zero if no time has passed.
pub(crate) fn bits_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// Replaces control characters in a text from the peer, so that it cannot move the cursor of a
/// terminal.
fn plain<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(without_control(&String::deserialize(from)?))
}

fn plain_lines<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let lines = Vec::<String>::deserialize(from)?;
    Ok(lines.iter().map(|line| without_control(line)).collect())
}

fn without_control(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
