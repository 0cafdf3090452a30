//! What the two ends say to each other, as JSON with its length before it.
//!
//! The client opens the first connection with [`Message::Hello`] and every other one with
//! [`Message::Join`]. The server answers [`Message::Welcome`] when all are there. The receiving
//! end's clock begins when it lets the sender begin: the server's with the welcome of an upload,
//! the client's with [`Message::Start`] of a download. Then counts go one way and the state of the
//! path the other, until the receiver has had enough and both exchange [`Message::End`].
//!
//! With competitors the server says [`Message::Meet`] before its welcome, and the receiving end's clock
//! begins with [`Message::Start`] in both directions, a part after [`Message::Compete`].

use crate::compete::{CompetitorCount, Meet, Standing};
use crate::plan::Plan;
use crate::sample::PathReport;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// The version of this talk. A server does not measure with a client of a later one.
pub(crate) const VERSION: u32 = 2;
/// The first version, which all tests without competitors speak: older servers know nothing else.
pub(crate) const FIRST_VERSION: u32 = 1;
/// The longest message.
pub(crate) const MAX_MESSAGE: usize = 64 << 10;
/// Bytes of the length before a message.
pub(crate) const PREFIX: usize = 4;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message {
    Hello(Box<Hello>),
    Join(Join),
    Welcome(Box<Welcome>),
    Refused {
        #[serde(deserialize_with = "plain")]
        reason: String,
    },
    /// Where competitors of TCP connect to.
    Meet(Meet),
    /// The competitors may begin.
    Compete,
    Competitors(CompetitorCount),
    Start,
    Count(CountReport),
    Path(PathReport),
    /// The user at the sending end has had enough.
    Stop,
    End(Box<EndReport>),
}

/// The client wants a test.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    #[serde(deserialize_with = "plain")]
    pub(crate) program: String,
    /// Names the test for the connections that join.
    pub(crate) token: String,
    pub(crate) plan: Plan,
    /// How the client shares the path, if it sends.
    #[serde(deserialize_with = "plain")]
    pub(crate) policy: String,
    /// The most that it sends, headers counted.
    pub(crate) wire_target: Option<u64>,
}

/// A further connection of a test.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Join {
    pub(crate) token: String,
    pub(crate) index: u32,
}

/// What the server is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    #[serde(deserialize_with = "plain")]
    pub(crate) program: String,
    #[serde(deserialize_with = "plain")]
    pub(crate) system: String,
    pub(crate) granted_recv_buffer: u64,
    pub(crate) granted_send_buffer: u64,
    /// How the server shares the path, if it sends.
    #[serde(deserialize_with = "plain")]
    pub(crate) policy: String,
    #[serde(deserialize_with = "plain_lines")]
    pub(crate) warnings: Vec<String>,
}

/// What arrived in an interval, from the receiver.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CountReport {
    /// Seconds since the receiver's time zero.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) share: Share,
    pub(crate) streams: Vec<StreamCount>,
}

/// Whether an interval is part of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Share {
    Counted,
    Omitted,
}

/// One stream's part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StreamCount {
    /// Bytes given to the receiving application.
    pub(crate) bytes: u64,
    /// The receive window.
    pub(crate) window: u64,
    /// Bytes that are in the window: waiting for the application or for a hole before them.
    pub(crate) unread: u64,
}

/// How a test ended at one end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct EndReport {
    pub(crate) ending: Ending,
    /// Seconds that this end was measuring.
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) max_rss_bytes: u64,
    pub(crate) host_drops: u64,
    /// The thread that wanted the processor most, and for which share of the time.
    pub(crate) busiest: Option<(Plain, f64)>,
    pub(crate) received: Option<Received>,
    pub(crate) sent: Option<PathReport>,
    /// What each flow got, if there were competitors and this end received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<Standing>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// As planned.
    Complete,
    /// A user had enough.
    Interrupted,
    /// The other end is gone.
    Broken,
}

/// What the receiver got in all.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Received {
    /// From its time zero.
    pub(crate) whole: Span,
    /// After the omitted time.
    pub(crate) counted: Span,
    /// The same by streams.
    pub(crate) streams: Vec<u64>,
}

/// Bytes in a time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) bytes: u64,
}

/// A name from the other end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Plain(#[serde(deserialize_with = "plain")] pub(crate) String);

/// Bytes are not a message.
#[derive(Debug, Error)]
pub(crate) enum BadMessage {
    #[error("a message of {0} bytes")]
    Size(usize),
    #[error("not a message: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Hello {
    /// The version that a test of this plan needs.
    pub(crate) const fn version(plan: &Plan) -> u32 {
        if plan.compete.is_some() { VERSION } else { FIRST_VERSION }
    }
}

impl Message {
    /// The message with its length before it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; PREFIX];
        serde_json::to_writer(&mut bytes, self)
            .expect("its keys are strings and it goes to memory");
        let length = (bytes.len() - PREFIX) as u32;
        bytes[..PREFIX].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    /// The length that a prefix announces.
    pub(crate) fn length(prefix: [u8; PREFIX]) -> Result<usize, BadMessage> {
        let length = u32::from_be_bytes(prefix) as usize;
        if length == 0 || length > MAX_MESSAGE {
            return Err(BadMessage::Size(length));
        }
        Ok(length)
    }

    /// The message in these bytes.
    // fuzz: lines
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, BadMessage> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// Whether a peer may say this: for the fuzzer, which has no other way in.
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

/// The rate of `bytes` in so much time; zero if there was none.
pub(crate) fn bits_per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// A text that may go to a terminal: what a stranger wrote cannot move its cursor.
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
