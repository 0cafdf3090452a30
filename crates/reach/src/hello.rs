//! The far side's first lines, and how they are found behind what a chatty shell says before them.
//!
//! The far side speaks first: its greeting says that it runs, and which version it is. Only then does the near side
//! send its start, and the far side answers with its hello. So no secret goes to a start-up file of a shell that
//! reads its input, and what such a file has eaten was no part of the start.

use crate::meet::Invitation;
use crate::speaks::{Agreed, Speaks, Versions};
use crate::tuning::Tuning;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, ErrorKind};
use std::net::IpAddr;

/// What the far side says as soon as it runs. It keeps its form in all versions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of its program, for a person.
    pub version: String,
    /// What it can say.
    #[serde(flatten)]
    pub speaks: Speaks,
}

/// What the near side says then, so that the far side need not be told on its command line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Start {
    /// The version of its program, for a person.
    pub version: String,
    /// What it can say.
    #[serde(flatten)]
    pub speaks: Speaks,
    /// The name of the service that it wants.
    pub service: String,
    /// UDP ports of which the far side takes one.
    pub ports: (u16, u16),
    /// What the user has set of the transport.
    pub tuning: Tuning,
    /// The fingerprint of the key by which the near side is known, whoever dials.
    pub key: String,
    /// Where the near side listens, for a far side that nobody can dial.
    pub door: Option<Invitation>,
}

/// What the far side says of itself. All of it comes through `ssh`, and is as secret and as true as
/// that.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Its own addresses, as it sees them; the best first.
    pub addresses: Vec<IpAddr>,
    /// Where it listens for data.
    pub door: Invitation,
}

/// What the near side sends, when it has heard the far side's hello, to use the channel of ssh for the data as well.
/// Frames of `hikyaku-pipes` follow in both directions.
pub(crate) const SWITCH: &[u8] = b"pipes\n";

/// How the far side's lines begin: nothing that a shell or a banner would say. Its first byte does not come again in
/// it.
const MARK: &[u8] = b"\x01hikyaku-serve ";
/// What is sent before the far side has spoken: a start-up file that reads a line or some gets these.
pub(crate) const NOTHING_YET: &[u8] = b"\n\n\n\n";
/// A message of the day has room in this; who says more says no hello.
const MOST_CHATTER: usize = 8 << 20;
/// So much of the end of what was said is looked at for an error message.
const LAST_WORDS: usize = 1 << 10;
const LONGEST_LINE: usize = 16 << 10;
/// Characters of chatter in an error.
const LONGEST_SHOWN: usize = 300;
/// A far side that is sent nothing but empty lines is sent no start.
const MOST_EMPTY_LINES: usize = 1000;

/// Why there is no hello.
#[derive(Debug, thiserror::Error)]
pub enum NoHello {
    /// The far side ended, or said nothing that begins like one.
    #[error("the far side did not answer{}", said(.0))]
    Nothing(String),
    /// There is no end of what comes before it.
    #[error(
        "a shell on the far side says more than {} MB before it starts hikyaku{}",
        MOST_CHATTER >> 20,
        said(.0)
    )]
    Chatter(String),
    /// A line that begins like one, and is none.
    #[error("the far side's answer makes no sense; is it another version of hikyaku?")]
    Malformed,
    /// It speaks another protocol.
    #[error("the far side has hikyaku {version}, which speaks protocol {protocol}, not {ours}")]
    Version {
        /// Its program's version.
        version: String,
        /// Its protocol.
        protocol: Versions,
        /// That of this program.
        ours: Versions,
    },
    /// It says itself what is wrong.
    #[error("the far side says: {text}")]
    Refused {
        /// What is wrong.
        text: String,
        /// What to do about it: a text that begins with `try: `.
        remedy: Option<String>,
    },
    /// The channel broke.
    #[error("cannot read from ssh")]
    Broken(#[from] io::Error),
}

/// Why there is no start.
#[derive(Debug, thiserror::Error)]
pub enum NoStart {
    /// Standard input ended before anything came: whoever wanted something has gone.
    #[error("standard input has ended before the near side said what it wants")]
    Nothing,
    /// What came is none, or the channel broke.
    #[error("standard input does not begin as it should; {EATEN}")]
    Broken(#[from] io::Error),
    /// The near side speaks another protocol.
    #[error("the near side has hikyaku{version}, which speaks protocol {protocol}, not {ours}")]
    Version {
        /// Its program's version after a space, or nothing if it does not say.
        version: String,
        /// Its protocol.
        protocol: Versions,
        /// That of this program.
        ours: Versions,
    },
}

/// Who may have read what the near side said.
pub(crate) const EATEN: &str =
    "a file that the login shell reads (~/.bashrc, ~/.ssh/rc) may read from it";

fn said(chatter: &str) -> String {
    if chatter.is_empty() { String::new() } else { format!("; it said: {chatter}") }
}

impl Greeting {
    /// That of this program.
    pub fn ours() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), speaks: Speaks::ours() }
    }

    /// The line that says it.
    pub fn line(&self) -> Vec<u8> {
        line(MARK, self)
    }

    /// Reads on until something says it.
    // fuzz: lines
    pub fn read(from: &mut impl BufRead) -> Result<Self, NoHello> {
        Self::read_as(&Speaks::ours(), from).map(|(greeting, _)| greeting)
    }

    /// The same for an end that can say `ours`; with what both can say.
    // fuzz: lines
    pub(crate) fn read_as(
        ours: &Speaks,
        from: &mut impl BufRead,
    ) -> Result<(Self, Agreed), NoHello> {
        let greeting: Self = marked(from)?;
        match ours.agree(&greeting.speaks) {
            Some(agreed) => Ok((greeting, agreed)),
            None => Err(NoHello::Version {
                version: harmless(greeting.version.as_bytes()),
                protocol: greeting.speaks.protocol,
                ours: ours.protocol,
            }),
        }
    }
}

impl Hello {
    /// The line that says it.
    pub fn line(&self) -> Vec<u8> {
        line(MARK, self)
    }

    /// The line by which the far side says why it does not go on, and what its user can do.
    pub fn refusal(why: &str, remedy: Option<&str>) -> Vec<u8> {
        line(MARK, &Refusal { refused: why.to_owned(), remedy: remedy.map(str::to_owned) })
    }

    /// Reads on until something says it.
    // fuzz: lines
    pub fn read(from: &mut impl BufRead) -> Result<Self, NoHello> {
        let answer = marked(from).map_err(|error| match error {
            // Whoever talks between the greeting and this may repeat the start, which has a secret.
            NoHello::Nothing(_) => NoHello::Nothing(String::new()),
            NoHello::Chatter(_) => NoHello::Chatter(String::new()),
            other => other,
        })?;
        match answer {
            Answer::Hello(hello) => Ok(hello),
            Answer::Refusal(Refusal { refused, remedy }) => Err(NoHello::Refused {
                text: hikyaku_fs::sentence(&refused),
                remedy: remedy
                    .map(|remedy| hikyaku_fs::sentence(&remedy))
                    .filter(|remedy| remedy.starts_with("try: ")),
            }),
        }
    }
}

/// What a far side says in place of a hello.
#[derive(Serialize, Deserialize)]
struct Refusal {
    refused: String,
    #[serde(default)]
    remedy: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Hello(Hello),
    Refusal(Refusal),
}

impl Start {
    /// The line that says it.
    pub fn line(&self) -> Vec<u8> {
        line(b"", self)
    }

    /// Reads it; empty lines before it say nothing.
    // fuzz: lines
    pub fn read(from: &mut impl BufRead) -> Result<Self, NoStart> {
        Self::read_as(&Speaks::ours(), from).map(|(start, _)| start)
    }

    /// The same for an end that can say `ours`; with what both can say.
    // fuzz: lines
    pub(crate) fn read_as(
        ours: &Speaks,
        from: &mut impl BufRead,
    ) -> Result<(Self, Agreed), NoStart> {
        for _ in 0..MOST_EMPTY_LINES {
            let line = rest_of_line(from)?;
            if line.is_empty() {
                return Err(NoStart::Nothing);
            }
            if !line.trim_ascii().is_empty() {
                return understood(ours, &line);
            }
        }
        Err(io::Error::from(ErrorKind::InvalidData).into())
    }
}

/// What every version says in its start, whatever else it says.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    version: Option<String>,
    #[serde(flatten)]
    speaks: Speaks,
}

// fuzz: lines
fn understood(ours: &Speaks, line: &[u8]) -> Result<(Start, Agreed), NoStart> {
    let head: Head = serde_json::from_slice(line).map_err(io::Error::from)?;
    match ours.agree(&head.speaks) {
        Some(agreed) => {
            let start = serde_json::from_slice(line).map_err(io::Error::from)?;
            Ok((start, agreed))
        }
        None => Err(NoStart::Version {
            version: head
                .version
                .map_or_else(String::new, |version| format!(" {}", harmless(version.as_bytes()))),
            protocol: head.speaks.protocol,
            ours: ours.protocol,
        }),
    }
}

fn line(mark: &[u8], what: &impl Serialize) -> Vec<u8> {
    // Nothing that is said has a part that cannot be written.
    let body = serde_json::to_vec(what).unwrap_or_default();
    [mark, &body, b"\n"].concat()
}

/// What is said behind the next mark, wherever in a line that stands. What comes before it is for an error message
/// only: its end is mostly the shell's "not found".
// fuzz: lines
fn marked<T: for<'a> Deserialize<'a>>(from: &mut impl BufRead) -> Result<T, NoHello> {
    let (mut seen, mut found, mut tail) = (0, 0, Vec::new());
    while found < MARK.len() {
        let chunk = match from.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            chunk => chunk?,
        };
        if chunk.is_empty() {
            return Err(NoHello::Nothing(last_line(&tail)));
        }
        let mut used = 0_usize;
        for &byte in chunk {
            used += 1;
            found = match byte {
                byte if byte == MARK[found] => found + 1,
                byte => usize::from(byte == MARK[0]),
            };
            if found == MARK.len() {
                break;
            }
        }
        tail.extend_from_slice(&chunk[used.saturating_sub(LAST_WORDS)..used]);
        tail.drain(..tail.len().saturating_sub(LAST_WORDS));
        from.consume(used);
        seen += used;
        if seen > MOST_CHATTER {
            return Err(NoHello::Chatter(last_line(&tail)));
        }
    }
    serde_json::from_slice(&rest_of_line(from)?).map_err(|_| NoHello::Malformed)
}

fn rest_of_line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    io::Read::take(from, LONGEST_LINE as u64).read_until(b'\n', &mut line)?;
    Ok(line)
}

fn last_line(tail: &[u8]) -> String {
    let mut lines = tail.rsplit(|byte| b"\r\n".contains(byte)).map(<[u8]>::trim_ascii);
    harmless(lines.find(|line| !line.is_empty()).unwrap_or_default())
}

/// A line of other output, as it may be shown to the user: without its text if it contains a secret.
fn harmless(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    if text.contains("\"secret\"") {
        return "a line with a secret in it".to_owned();
    }
    let text: String = text.chars().take(LONGEST_SHOWN).collect();
    hikyaku_fs::Shown::new(text.as_bytes()).to_string()
}

#[cfg(test)]
mod tests;
