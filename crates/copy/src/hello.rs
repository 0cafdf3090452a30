//! The far side's first line, and how it is found behind what a chatty shell says before it.

use crate::meet::{Invitation, Tuning};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};
use std::net::IpAddr;

/// What the far side says of itself. All of it comes through `ssh`, and is as secret and as true as
/// that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The version of its program, for a person.
    pub version: String,
    /// The version of what the two ends say to each other.
    pub protocol: u32,
    /// Its own addresses, as it sees them; the best first.
    pub addresses: Vec<IpAddr>,
    /// Where it listens for data.
    pub door: Invitation,
}

/// What the near side says first, so that the far side need not be told on its command line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Start {
    /// The version of what the two ends say to each other.
    pub protocol: u32,
    /// UDP ports of which the far side takes one.
    pub ports: (u16, u16),
    /// What the user has set of the transport.
    pub tuning: Tuning,
    /// The fingerprint of the key by which the near side is known, whoever dials.
    pub key: String,
    /// Where the near side listens, for a far side that nobody can dial.
    pub door: Option<Invitation>,
}

impl Start {
    /// The line that says it.
    pub fn line(&self) -> String {
        format!("{}\n", serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads it.
    // fuzz: lines
    pub fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        io::Read::take(from, LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
        serde_json::from_slice(&line).map_err(io::Error::from)
    }
}

/// The protocol that this version speaks.
pub const PROTOCOL: u32 = 2;

/// How the line begins: nothing that a shell or a banner would say.
const MARK: &str = "\u{1}hikyaku-serve ";
/// A message of the day has room in this; who says more says no hello.
const MOST_CHATTER: usize = 1 << 20;
const LONGEST_LINE: usize = 16 << 10;

/// Why there is no hello.
#[derive(Debug, thiserror::Error)]
pub enum NoHello {
    /// The far side ended, or said nothing that begins like one.
    #[error("the far side did not answer{}", said(.0))]
    Nothing(String),
    /// A line that begins like one, and is none.
    #[error("the far side's answer makes no sense; is it another version of hikyaku?")]
    Malformed,
    /// It speaks another protocol.
    #[error("the far side has hikyaku {version}, which speaks protocol {protocol}, not {PROTOCOL}")]
    Version {
        /// Its program's version.
        version: String,
        /// Its protocol.
        protocol: u32,
    },
    /// The channel broke.
    #[error("cannot read from ssh")]
    Broken(#[from] io::Error),
}

fn said(chatter: &str) -> String {
    if chatter.is_empty() { String::new() } else { format!("; it said: {chatter}") }
}

impl Hello {
    /// The line that says it.
    pub fn line(&self) -> String {
        // Nothing in it can fail to be written.
        format!("{MARK}{}\n", serde_json::to_string(self).unwrap_or_default())
    }

    /// Reads lines until one says it. What came before is for the error message only: the last line
    /// is mostly the shell's "not found".
    // fuzz: lines
    pub fn read(from: &mut impl BufRead) -> Result<Self, NoHello> {
        let (mut seen, mut last) = (0, String::new());
        while seen < MOST_CHATTER {
            let mut line = Vec::new();
            let limit = LONGEST_LINE as u64;
            let length = io::Read::take(&mut *from, limit).read_until(b'\n', &mut line)?;
            if length == 0 {
                break;
            }
            seen += length;
            let text = String::from_utf8_lossy(&line);
            if let Some(body) = text.strip_prefix(MARK) {
                return Self::parse(body);
            }
            if !text.trim().is_empty() {
                last = hikyaku_fs::Shown::new(text.trim().as_bytes()).to_string();
            }
        }
        Err(NoHello::Nothing(last))
    }

    // fuzz: lines
    fn parse(body: &str) -> Result<Self, NoHello> {
        /// What every version's hello has.
        #[derive(Deserialize)]
        struct Any {
            version: String,
            protocol: u32,
        }
        let any: Any = serde_json::from_str(body).map_err(|_| NoHello::Malformed)?;
        if any.protocol != PROTOCOL {
            let version = hikyaku_fs::Shown::new(any.version.as_bytes()).to_string();
            return Err(NoHello::Version { version, protocol: any.protocol });
        }
        serde_json::from_str(body).map_err(|_| NoHello::Malformed)
    }
}

#[cfg(test)]
mod tests;
