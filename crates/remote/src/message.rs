//! What client and server of a store say to each other.
//!
//! A message is a frame as in a copy (`docs/transfer-protocol.md`, section 1): a length, the message as `postcard`
//! encodes it, and for [`Reply::Small`] the content of the file behind it.

use hikyaku_store::{ErrorKind, Found, Time};
use hikyaku_transfer::{FileHash, SegmentHash, SegmentIndex};
use serde::{Deserialize, Serialize};

/// The number of a request, chosen by the client. It is not used again on the connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// A request with its number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// The number.
    pub id: RequestId,
    /// What is asked for.
    pub request: Request,
}

/// An answer with the number of its request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The number of the request.
    pub id: RequestId,
    /// The answer.
    pub reply: Reply,
}

/// What a client may ask for. Paths are relative to the root that the server serves; the empty path is the root.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// The metadata of a name. Answered by [`Reply::Looked`].
    Look {
        /// The path.
        path: Vec<u8>,
    },
    /// Everything at and below a path, a directory before what is in it. Answered by any number of [`Reply::Walked`],
    /// then [`Reply::Done`].
    Walk {
        /// The path.
        path: Vec<u8>,
    },
    /// Ranges of a file. Answered by [`Reply::Giving`], [`Reply::Hashes`], then [`Reply::Given`].
    Give(Give),
    /// Whole small files. Answered by one [`Reply::Small`] or [`Reply::NotGiven`] for each, then [`Reply::Done`].
    GiveMany {
        /// The files, each of at most [`SMALL_BYTES_MAX`].
        files: Vec<Wanted>,
    },
    /// What the request `give` has not sent yet is not wanted any more, from the byte `from` of its answer on. It has
    /// no answer of its own: that request ends with [`Reply::Given`] and the bytes that were sent, or with
    /// [`Reply::Done`] before its last file.
    Cut {
        /// The request.
        give: RequestId,
        /// The first byte that is not wanted, counted over all ranges or files of the request.
        from: u64,
    },
    /// The most payload that the server may send on this connection, in bytes per second; `None` for no limit. No
    /// answer.
    Cap {
        /// The rate.
        bytes_per_second: Option<u64>,
    },
    /// Byte ranges of a file that need not lie along segments. Answered as [`Request::Give`]: the ranges one after the other
    /// are taken for a file of their own, whose segments are proven.
    // spec: store-pick-1
    Pick(Give),
}

/// What a client knows of a file that it asks for, to be sure that all its parts come from one content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time.
    pub modified: Time,
}

impl From<&Found> for Seen {
    fn from(found: &Found) -> Self {
        Self { size: found.size, modified: found.modified }
    }
}

/// A request for ranges of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Give {
    /// The path of the file.
    pub path: Vec<u8>,
    /// What the client expects of it. Another size or time is answered with `Changed`.
    pub seen: Seen,
    /// Byte ranges as (from, to), whole segments each unless the request is [`Request::Pick`]. They follow each other in the
    /// object.
    pub ranges: Vec<(u64, u64)>,
    /// How urgent it is.
    pub class: Class,
}

/// A small file that a client asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// Its path.
    pub path: Vec<u8>,
    /// What the client expects of it.
    pub seen: Seen,
}

/// The urgency of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Class {
    /// A person or a program waits for these bytes: they go before all others of the connection.
    Urgent,
    /// Part of a large transfer.
    #[default]
    Bulk,
}

/// An entry that a walk has found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its path relative to the root of the store.
    pub path: Vec<u8>,
    /// Its metadata, or why there is none.
    pub found: Result<Found, ErrorKind>,
    /// The text of a symbolic link.
    pub link: Option<Vec<u8>>,
}

/// What a server answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The metadata of the name.
    Looked(Found),
    /// Some of what a walk has found.
    Walked(Vec<Entry>),
    /// The request is complete.
    Done,
    /// The file is open, and its bytes come in this object.
    Giving {
        /// The stream id of the object.
        object: u32,
    },
    /// Hashes of segments that follow each other, each told before the segment's bytes.
    Hashes {
        /// The first segment.
        first: SegmentIndex,
        /// Its hash and those of the segments behind it.
        hashes: Vec<SegmentHash>,
    },
    /// The object has this many bytes, fewer than were asked for if the request was cut. The file had the same size
    /// and times before and after.
    Given {
        /// Bytes of the object.
        bytes: u64,
    },
    /// A small file. Its content is behind the message.
    Small {
        /// Its index in the request.
        index: u32,
        /// Its size.
        size: u32,
        /// The hash of its content.
        hash: FileHash,
    },
    /// A small file that cannot be given.
    NotGiven {
        /// Its index in the request.
        index: u32,
        /// Why.
        kind: ErrorKind,
    },
    /// The request failed.
    Refused(Refusal),
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refusal {
    /// For programs.
    pub kind: ErrorKind,
    /// For people.
    pub text: String,
}

/// Ranges that one [`Request::Pick`] may have.
pub const PICKED_RANGES_MAX: usize = 65_536;

/// The largest file that [`Request::GiveMany`] gives: 256 KiB, as the small files of a copy.
pub const SMALL_BYTES_MAX: u64 = 256 << 10;

impl Reply {
    /// How many bytes follow the message in its frame.
    pub const fn tail(&self) -> u64 {
        match self {
            Self::Small { size, .. } => *size as u64,
            _ => 0,
        }
    }
}
