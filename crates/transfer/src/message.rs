//! The messages between the two ends of a copy.
//!
//! A message is a frame: four bytes of length (little endian), the message as `postcard` encodes
//! it, and for some messages further bytes. Every length and count from the peer is checked against
//! the bytes at hand before anything is allocated for it.

mod long;

pub use long::{Coming, Long, encode_long};

use crate::failure::Failure;
use crate::geometry::SegmentIndex;
use crate::proven::Hole;
use crate::tree::{FileHash, SegmentHash};
use crate::version::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest frame in bytes. It has room for a path of 4,096 bytes with 2^14 hashes, and for the
/// content of a small file.
pub const MAX_FRAME: usize = 1 << 20;
const LENGTH_BYTES: usize = 4;

/// The number of an entry. The sender counts the entries from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct EntryId(pub u64);

/// A file, directory or link that the receiver shall create.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub id: EntryId,
    /// Its path relative to the target. The receiver must check it.
    pub path: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// Its modification time: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// The version of the source when the sender examined it.
    pub version: Version,
    /// Its type.
    pub kind: EntryKind,
    /// Numeric user and group id at the sender; present if the user asked to preserve owners.
    pub owner: Option<(u32, u32)>,
    /// Extended attributes; empty unless the user asked to preserve them.
    pub attributes: Vec<Attribute>,
}

/// An extended attribute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name with the namespace (`user.origin`). The receiver must check it.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// The type of an entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Its size in bytes.
        size: u64,
    },
    /// A directory.
    Dir,
    /// A symbolic link with this target text.
    Link(Vec<u8>),
}

/// The shape of the sources. It decides whether the target's last name is a directory or a new
/// name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Sources {
    /// One file or directory, which may get the target's name.
    One,
    /// Several. The target is a directory that receives them.
    Several,
    /// The content of a directory without the directory itself (`run7/.`).
    Contents,
}

/// Statistics of the sender's transport about the path.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PathFigures {
    /// Packets sent since the start of the copy.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Payload bytes retransmitted.
    pub resent_bytes: u64,
    /// Payload bytes of a full packet, to convert between bytes and packets.
    pub packet: u16,
    /// Smoothed round-trip time in seconds.
    pub rtt: f64,
    /// Queueing delay in seconds.
    pub queue: f64,
    /// The current bottleneck.
    pub limited_by: LimitedBy,
}

impl PathFigures {
    /// Declared-lost packets in percent of the packets sent; `None` before the first packet.
    pub fn lost_percent(&self) -> Option<f64> {
        let sent = (self.sent_packets > 0).then_some(self.sent_packets as f64)?;
        Some(100.0 * self.lost_packets as f64 / sent)
    }
}

/// The bottleneck of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// Not known yet: the transport is still measuring the path.
    #[default]
    Starting,
    /// The network path.
    Link,
    /// The sender: its disk or its processor.
    Source,
    /// The receiver: its disk, its processor or its receive window.
    Target,
    /// The rate limit that the user set.
    Limit,
}

/// Messages from the sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum FromSender {
    /// The first message.
    Begin {
        /// The shape of the sources.
        sources: Sources,
        /// An identifier of the set of sources. It is equal in every attempt at the same copy; the
        /// receiver uses it to find the journal of an earlier attempt.
        of: [u8; 32],
        /// The sources as text, stored in the journal for messages.
        from: String,
    },
    /// The amount to be copied as far as the sender has walked the sources.
    Total {
        /// Files.
        files: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Path statistics since the start of the copy.
    Path(PathFigures),
    /// An entry to be created.
    Entry(Entry),
    /// A file that the receiver already has completely, as the receiver reported.
    Same {
        /// Its size.
        bytes: u64,
    },
    /// A small file with its content. The content follows the message in the frame.
    Small {
        /// The file.
        entry: Entry,
        /// The hash of the content as it was read.
        hash: FileHash,
    },
    /// Announces an object of the transport that carries bytes of a file.
    Data {
        /// The file.
        id: EntryId,
        /// The stream id of the object.
        object: u32,
        /// The byte ranges of the file that the object carries one after the other, as (start,
        /// end).
        ranges: Vec<(u64, u64)>,
    },
    /// The hashes of segments as they were read.
    Segments {
        /// The file.
        id: EntryId,
        /// The first segment.
        first: SegmentIndex,
        /// The hashes of this segment and those that follow it.
        hashes: Vec<SegmentHash>,
    },
    /// Segments within holes of the source, whose bytes are not sent. All such messages of a file
    /// come before any of its data, in ascending order.
    Holes {
        /// The file.
        id: EntryId,
        /// The holes.
        holes: Vec<Hole>,
    },
    /// A file of unknown length, read from a pipe. Its bytes follow in [`FromSender::Piece`]
    /// messages, up to [`FromSender::Last`]. No other such file begins before that.
    Stream(Entry),
    /// The next bytes of such a file. They follow the message in the frame.
    Piece {
        /// The file.
        id: EntryId,
        /// Their count.
        length: u32,
        /// Their hash as they were read.
        hash: FileHash,
    },
    /// The end of such a file.
    Last {
        /// The file.
        id: EntryId,
        /// Its size in bytes.
        size: u64,
        /// The hash of all its bytes.
        hash: FileHash,
    },
    /// The sender has read a file completely, and its version was the same before and after.
    Read {
        /// The file.
        id: EntryId,
    },
    /// A file could not be read, or changed while it was read. The receiver discards what it has of
    /// it.
    Unreadable {
        /// The entry, if it was announced.
        id: Option<EntryId>,
        /// The path and the cause.
        failure: Failure,
    },
    /// The last message.
    End,
}

/// Messages from the receiver.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FromReceiver {
    /// What an earlier attempt left of a file. The sender uses it if the source still has the
    /// version given.
    Has {
        /// Its path relative to the target directory.
        path: Vec<u8>,
        /// The version of the source at that attempt.
        version: Version,
        /// The parts that are present.
        kept: Kept,
    },
    /// The receiver has reported everything it has and is ready for data.
    Ready {
        /// The name that the single source gets at the target, if it differs from its own name.
        renamed: Option<Vec<u8>>,
        /// What kind of target is written to.
        target: TargetKind,
    },
    /// A request to send segments again, because their hashes did not match.
    Again {
        /// The file.
        id: EntryId,
        /// The segments.
        segments: Vec<SegmentIndex>,
    },
    /// Progress since the last message of this kind.
    Progress {
        /// Bytes written.
        bytes: u64,
        /// Files completed.
        files: u64,
    },
    /// Bytes that are not written: the size of an existing file that is skipped by the user's
    /// choice, or of holes. A skipped file counts among the files of the next
    /// [`FromReceiver::Progress`].
    Left {
        /// Their count.
        bytes: u64,
    },
    /// An entry could not be created.
    Failed {
        /// Its path relative to the target directory.
        path: Vec<u8>,
        /// The cause. `None` if the cause is a failure that was reported before, such as that of
        /// its directory.
        failure: Option<Failure>,
    },
    /// A file or directory was created without its mode, its times or an attribute.
    Incomplete {
        /// The path and the cause.
        failure: Failure,
    },
    /// A note for the user that is not a failure.
    Remark {
        /// Its text.
        text: String,
    },
    /// The entry would be created if this were not a dry run.
    Would {
        /// Its path relative to the target directory.
        path: Vec<u8>,
    },
    /// All entries that did not fail are complete under their final names and, without
    /// `--no-fsync`, on the disk.
    Finished,
}

/// The kind of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TargetKind {
    /// Files in a directory. An interrupted copy can be resumed.
    Files,
    /// A FIFO, a device or an open descriptor. Written bytes cannot be taken back.
    Stream,
}

/// What an earlier attempt left of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kept {
    /// The complete file, with its hash if it is known.
    Whole(Option<FileHash>),
    /// Proven segments, as runs of the first index and the hashes from there on.
    Segments(Vec<(SegmentIndex, Vec<SegmentHash>)>),
}

impl FromSender {
    /// How many bytes follow the message in its frame.
    // spec: copy-msg-2
    pub const fn tail(&self) -> u64 {
        match self {
            Self::Small { entry: Entry { kind: EntryKind::File { size }, .. }, .. } => *size,
            Self::Piece { length, .. } => *length as u64,
            _ => 0,
        }
    }
}

/// Why bytes are not a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// The frame's length exceeds [`MAX_FRAME`].
    #[error("a frame of {0} bytes exceeds the limit")]
    TooLong(usize),
    /// The bytes do not decode as a message.
    #[error("a frame that does not decode as a message")]
    Malformed,
}

/// Encodes a message and `tail` as a frame; `None` if the frame would exceed [`MAX_FRAME`].
pub fn encode<T: Serialize>(message: &T, tail: &[u8]) -> Option<Vec<u8>> {
    let mut frame = postcard::to_extend(message, vec![0; LENGTH_BYTES]).ok()?;
    frame.extend_from_slice(tail);
    let length = frame.len() - LENGTH_BYTES;
    if length > MAX_FRAME {
        return None;
    }
    frame[..LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    Some(frame)
}

/// Adds the length prefix to the body of a frame.
pub fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes(), body].concat()
}

/// The body of the first frame in `bytes`; `None` if it is not complete yet. Fails if its length
/// exceeds [`MAX_FRAME`].
// fuzz: messages
// spec: copy-msg-1
pub fn frame(bytes: &[u8]) -> Result<Option<&[u8]>, MessageError> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_FRAME {
        return Err(MessageError::TooLong(length));
    }
    Ok(rest.get(..length))
}

/// The length of the frame with this body, including its prefix.
// fuzz: messages
pub const fn frame_len(body: &[u8]) -> usize {
    LENGTH_BYTES + body.len()
}

/// Decodes the message in a frame's body, and returns it with the bytes that follow it.
// fuzz: messages
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<(T, &[u8]), MessageError> {
    postcard::take_from_bytes(body).map_err(|_| MessageError::Malformed)
}

#[cfg(test)]
mod tests;
