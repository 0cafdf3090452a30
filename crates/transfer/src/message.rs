//! What the two ends of a copy say to each other, beside the data.
//!
//! A message is a frame: its length in four bytes, least first, and the message as `postcard` writes
//! it. Every length and count is checked before anything is made of it.

use crate::geometry::SegmentIndex;
use crate::tree::{FileHash, SegmentHash};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest frame: a path of 4,096 bytes with 2^14 hashes has room in it.
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
}

/// What an entry is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum EntryKind {
    /// A file of so many bytes, whose data come on a stream.
    File {
        /// Bytes.
        size: u64,
        /// Parts that are holes, as (offset, length): nothing is sent for them.
        holes: Vec<(u64, u64)>,
    },
    /// A directory.
    Dir,
    /// A symbolic link that says this.
    Link(Vec<u8>),
}

/// From the end that has the files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FromSender {
    /// Something to be made.
    Entry(Entry),
    /// How segments of a file were when they were read.
    Segments {
        /// The file.
        id: EntryId,
        /// The first of them.
        first: SegmentIndex,
        /// Its hash and the following ones'.
        hashes: Vec<SegmentHash>,
    },
    /// A file has been read to its end, and whether it was the same file all the time.
    Read {
        /// The file.
        id: EntryId,
        /// False if somebody wrote to it meanwhile: what has come of it is void.
        unchanged: bool,
    },
    /// It could not be read.
    Unreadable {
        /// The file.
        id: EntryId,
        /// Why, for a person.
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
        /// Where, relative to the target.
        path: Vec<u8>,
        /// Its size.
        size: u64,
        /// When the source was last written then.
        modified: (i64, u32),
        /// Proven segments: the first, and the hashes of it and of those that follow.
        runs: Vec<(SegmentIndex, Vec<SegmentHash>)>,
    },
    /// That is all: send.
    Ready,
    /// Segments that did not arrive as they were read.
    Again {
        /// The file.
        id: EntryId,
        /// The first of them.
        first: SegmentIndex,
        /// How many.
        count: u32,
    },
    /// It is there, whole, under its name and, unless that was not wanted, on the disk.
    Done {
        /// The entry.
        id: EntryId,
        /// Of a file without holes.
        hash: Option<FileHash>,
    },
    /// It is as it was, because nothing needed to be done.
    Skipped {
        /// The entry.
        id: EntryId,
    },
    /// It could not be made.
    Failed {
        /// The entry.
        id: EntryId,
        /// Why, for a person.
        why: String,
    },
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

/// A message as a frame; `None` if it is too long for one.
pub fn encode<T: Serialize>(message: &T) -> Option<Vec<u8>> {
    let body = postcard::to_allocvec(message).ok()?;
    if body.len() > MAX_FRAME {
        return None;
    }
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&body);
    Some(frame)
}

/// The message at the begin of `bytes` and how many bytes it took; `None` if it is not all there.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(T, usize)>, MessageError> {
    let Some((length, rest)) = bytes.split_first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_FRAME {
        return Err(MessageError::TooLong(length));
    }
    let Some((body, _)) = rest.split_at_checked(length) else { return Ok(None) };
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(Some((message, PREFIX + length))),
        _ => Err(MessageError::Malformed),
    }
}

#[cfg(test)]
mod tests;
