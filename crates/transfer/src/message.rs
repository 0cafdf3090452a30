//! What the two ends of a copy say to each other, beside the data.
//!
//! A message is a frame: its length in four bytes, least first, the message as `postcard` writes it,
//! and for some messages bytes that follow it. Every length and count is checked before anything is
//! made of it.

use crate::geometry::SegmentIndex;
use crate::proven::Hole;
use crate::tree::{FileHash, SegmentHash};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest frame: a path of 4,096 bytes with 2^14 hashes, or the bytes of a small file, have room
/// in it.
pub const MAX_FRAME: usize = 1 << 20;
const PREFIX: usize = 4;

/// A number that the sender gives to what it sends, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EntryId(pub u64);

/// Something to be made at the target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub id: EntryId,
    /// Where, relative to the target; to be checked by whoever reads it.
    pub path: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// When it was last written: seconds since 1970, nanoseconds.
    pub modified: (i64, u32),
    /// What.
    pub kind: EntryKind,
    /// Extended attributes, where they are kept.
    pub attributes: Vec<Attribute>,
}

/// An extended attribute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name with its namespace (`user.origin`); to be checked by whoever reads it.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// What an entry is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EntryKind {
    /// A file of so many bytes.
    File {
        /// Bytes.
        size: u64,
    },
    /// A directory.
    Dir,
    /// A symbolic link that says this.
    Link(Vec<u8>),
}

/// What is copied, as far as it decides what a target's name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Sources {
    /// One file or directory: it may get the target's name.
    One,
    /// Several: the target is a directory that they go into.
    Several,
    /// What is in a directory, without the directory itself (`run7/.`).
    Contents,
}

/// What the sending end's transport knows of the path.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PathFigures {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets judged lost.
    pub lost_packets: u64,
    /// Payload sent again, in bytes.
    pub resent_bytes: u64,
    /// Bytes of payload in a full packet: what makes packets of those.
    pub packet: u16,
    /// Smoothed round trip in seconds.
    pub rtt: f64,
    /// Queueing delay in seconds.
    pub queue: f64,
    /// What holds the copy back.
    pub limited_by: LimitedBy,
}

impl PathFigures {
    /// The share of all packets that was judged lost, if any were sent.
    pub fn lost_percent(&self) -> Option<f64> {
        let sent = (self.sent_packets > 0).then_some(self.sent_packets as f64)?;
        Some(100.0 * self.lost_packets as f64 / sent)
    }
}

/// What holds a copy back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The sender does not know the path yet.
    #[default]
    Starting,
    /// The path carries no more.
    Link,
    /// The sending end has no more: its disk, or its processor.
    Source,
    /// The receiving end takes no more: its disk, its processor, its window.
    Target,
    /// The user wants no more.
    Limit,
}

/// From the end that has the files.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FromSender {
    /// The first message.
    Begin {
        /// What will come.
        sources: Sources,
        /// The same for the same sources: what an earlier attempt left is found by it.
        of: [u8; 32],
    },
    /// How much there is to be copied, as far as it is known.
    Total {
        /// Files.
        files: u64,
        /// Bytes.
        bytes: u64,
    },
    /// How the path is, since the begin.
    Path(PathFigures),
    /// Something to be made.
    Entry(Entry),
    /// A file that the receiver has already, as it said.
    Same {
        /// Its size.
        bytes: u64,
    },
    /// A small file; its bytes follow the message in the frame.
    Small {
        /// What it is.
        entry: Entry,
        /// How it was when it was read.
        hash: FileHash,
    },
    /// Bytes of a file come as an object of the transport.
    Data {
        /// The file.
        id: EntryId,
        /// The object's number.
        object: u32,
        /// Which bytes of the file it carries, one range after the other, as (from, to).
        ranges: Vec<(u64, u64)>,
    },
    /// How segments of a file were when they were read.
    Segments {
        /// The file.
        id: EntryId,
        /// The first of them.
        first: SegmentIndex,
        /// Its hash and the following ones'.
        hashes: Vec<SegmentHash>,
    },
    /// Segments of a file that nobody has ever written: nothing of them is sent. They follow each
    /// other, in this message and the next ones, and are told before any data of the file.
    Holes {
        /// The file.
        id: EntryId,
        /// Which.
        holes: Vec<Hole>,
    },
    /// A file has been read to its end, and was the same file all the time.
    Read {
        /// The file.
        id: EntryId,
    },
    /// Something could not be read, or somebody wrote to it meanwhile: what has come of it is void.
    Unreadable {
        /// The entry, if it had begun.
        id: Option<EntryId>,
        /// Which and why, for a person.
        why: String,
    },
    /// There is nothing more.
    End,
}

/// From the end that writes them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FromReceiver {
    /// What an earlier attempt has left of a file, if the source is still as it was then.
    Has {
        /// Where, relative to the target's directory.
        path: Vec<u8>,
        /// Its size.
        size: u64,
        /// When the source was last written then.
        modified: (i64, u32),
        /// What there is of it.
        kept: Kept,
    },
    /// That is all: send.
    Ready {
        /// What the one source is called at the target, if that is the target's own name.
        renamed: Option<Vec<u8>>,
    },
    /// Segments that did not arrive as they were read.
    Again {
        /// The file.
        id: EntryId,
        /// Which.
        segments: Vec<SegmentIndex>,
    },
    /// So many bytes have been written since the last message of this kind.
    Progress {
        /// Bytes.
        bytes: u64,
        /// Files that have their names now.
        files: u64,
    },
    /// A file that is there is left alone, as was asked for: so many bytes need not be written. It is
    /// counted among the files of the next [`FromReceiver::Progress`].
    Left {
        /// Bytes.
        bytes: u64,
    },
    /// Something could not be made.
    Failed {
        /// Where it would have been, relative to the target's directory.
        path: Vec<u8>,
        /// Which and why, for a person.
        why: String,
    },
    /// Something would be made, were this not a rehearsal.
    Would {
        /// Where, relative to the target's directory.
        path: Vec<u8>,
    },
    /// All that was sent is there, whole, under its name and, unless that was not wanted, on the
    /// disk; but for what has failed.
    Finished,
}

/// What an earlier attempt has left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kept {
    /// All of it; with this hash, if it is known.
    Whole(Option<FileHash>),
    /// Proven segments: the first, and the hashes of it and of those that follow.
    Segments(Vec<(SegmentIndex, Vec<SegmentHash>)>),
}

impl FromSender {
    /// How many bytes follow the message in its frame.
    pub const fn tail(&self) -> u64 {
        match self {
            Self::Small { entry: Entry { kind: EntryKind::File { size }, .. }, .. } => *size,
            _ => 0,
        }
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// A frame longer than any message.
    #[error("a frame of {0} bytes, more than a message may have")]
    TooLong(usize),
    /// Bytes that no version of ours writes.
    #[error("a frame that is no message")]
    Malformed,
}

/// A message as a frame with `tail` behind it; `None` if it is too long for one.
pub fn encode<T: Serialize>(message: &T, tail: &[u8]) -> Option<Vec<u8>> {
    let mut frame = postcard::to_extend(message, vec![0; PREFIX]).ok()?;
    frame.extend_from_slice(tail);
    let length = frame.len() - PREFIX;
    if length > MAX_FRAME {
        return None;
    }
    frame[..PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
    Some(frame)
}

/// A frame with this body, which was one before.
pub fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes(), body].concat()
}

/// The frame at the begin of `bytes`, without its length; `None` if it is not all there.
// fuzz: messages
pub fn frame(bytes: &[u8]) -> Result<Option<&[u8]>, MessageError> {
    let Some((length, rest)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_FRAME {
        return Err(MessageError::TooLong(length));
    }
    Ok(rest.get(..length))
}

/// Bytes that a frame with this body takes.
// fuzz: messages
pub const fn frame_len(body: &[u8]) -> usize {
    PREFIX + body.len()
}

/// The message in a frame, and what follows it there.
// fuzz: messages
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<(T, &[u8]), MessageError> {
    postcard::take_from_bytes(body).map_err(|_| MessageError::Malformed)
}

#[cfg(test)]
mod tests;
