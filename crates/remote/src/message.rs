//! What client and server of a store say to each other.
//!
//! A message is a frame as in a copy (`docs/internals/transfer-protocol.md`, section 1): a length, the message as
//! `postcard` encodes it, and for [`Reply::Small`] the content of the file behind it.

mod edit;
mod lease;
mod lock;
mod put;
mod report;

pub use edit::Edit;
pub use lease::{Extent, Holder, Lease, Leased};
pub use lock::{Lock, Patience, Wish};
pub use put::{NewFile, Put, Taken};
pub use report::{MachineReport, PathReport, Report};

use hikyaku_store::{ErrorKind, Found, Space, Time};
use hikyaku_transfer::{FileHash, SegmentHash, SegmentIndex};
use serde::{Deserialize, Serialize};

/// The number of a request, chosen by the client. It is not used again on the connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// A request with its number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
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
    /// [`Reply::Done`] before its last file or, of a walk, before its last name. Older servers finish a walk.
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
    /// A short range of a file. Answered by [`Reply::Piece`].
    Piece(Piece),
    /// The entries of a directory, and of directories below it. Answered by any number of [`Reply::Listed`], then
    /// [`Reply::Done`].
    // spec: store-list-1
    List {
        /// The directory.
        path: Vec<u8>,
        /// Directories below it are told as well, breadth first, until about so many entries have been told in all.
        ahead: u32,
    },
    /// The text of a symbolic link. Answered by [`Reply::Link`].
    ReadLink {
        /// The path of the link.
        path: Vec<u8>,
    },
    /// The free and the total space of the store. Answered by [`Reply::Space`].
    Space,
    /// A change of the store. Changes of one stream are made in the order in which they were asked for.
    // spec: store-write-1
    Edit(Edit),
    /// Byte ranges of a file that need not lie along segments. Answered as [`Request::Give`]: the ranges one after the other
    /// are taken for a file of their own, whose segments are proven.
    // spec: store-pick-1
    Pick(Give),
    /// A window of a picture. Answered by [`Reply::Viewed`], then as [`Request::Give`]: the coded window is taken for a file of
    /// its own, whose segments are proven.
    // spec: store-view-1
    View(View),
    /// A part of an upload. Parts of one file come on one stream.
    Put(Put),
    /// The state of the server. Answered by [`Reply::Report`].
    // spec: store-report-1
    Report,
    /// Leases of directories.
    Lease(Lease),
    /// A change under leases for writing of all directories whose names or files it changes; without them it is refused as
    /// `Changed`. Answered by [`Reply::Looked`] where the path is there afterwards, by [`Reply::Leased`] for a new directory,
    /// otherwise by [`Reply::Done`].
    // spec: store-lease-4
    Held {
        /// The change. The identity of a [`Edit::Write`] is not compared.
        edit: Edit,
        /// Whether it may have been made already, over an earlier connection.
        attempt: Attempt,
    },
    /// A lock of a range of a file.
    Lock(Lock),
    /// The lock that keeps an owner from a range. Answered by [`Reply::Locked`].
    LockOf(Lock),
    /// The name of the client's process, which no other one has, and those of processes with its key that have ended: their
    /// sessions end. Answered by [`Reply::Done`].
    // spec: store-process-1
    Process {
        /// Its name.
        name: Holder,
        /// At most 64 others; more are not looked at.
        ended: Vec<Holder>,
    },
    /// The directory in which the paths of the client's user begin, from the root of the machine on. Answered by [`Reply::Link`].
    // spec: store-feature-11
    Home,
}

/// Whether a change may have been made already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Attempt {
    /// It was not asked for before.
    First,
    /// It was asked for over a connection that was lost: if it looks as if it had been made, it counts as made.
    Again,
}

impl Request {
    /// How many bytes follow the message in its frame.
    pub const fn tail(&self) -> u64 {
        match self {
            Self::Edit(edit) | Self::Held { edit, .. } => edit.tail(),
            Self::Put(put) => put.tail(),
            _ => 0,
        }
    }
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

/// A request for a short range of a file, which need not lie along segments.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// The path of the file.
    pub path: Vec<u8>,
    /// What the client expects of it. Another size or time is answered with `Changed`.
    pub seen: Seen,
    /// The first byte.
    pub from: u64,
    /// Bytes, at most [`SMALL_BYTES_MAX`]. The range lies within the file.
    pub length: u32,
}

/// A request for a window of a picture, which the server decodes and codes again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct View {
    /// The path of the picture.
    pub path: Vec<u8>,
    /// What the client expects of the file. Another size or time is answered with `Changed`.
    pub seen: Seen,
    /// The part of the picture: pixels before it and rows above it, pixels of a row of it and its rows. What lies outside the
    /// picture is left out.
    pub region: [u32; 4],
    /// The side of the squares of pixels of which the average is shown.
    pub step: u32,
    /// The values that are shown as black and white, where the picture has numbers.
    pub levels: Option<(f64, f64)>,
    /// The shape of a picture without a head: width, height, channels, bytes of a sample, and the first pixel's byte.
    pub raw: Option<(u32, u32, u8, u8, u64)>,
    /// How the window is coded.
    pub coding: Coding,
}

/// How a window of a picture is coded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Coding {
    /// As JPEG of this quality, 1 to 100.
    Jpeg(u8),
    /// As PNG, without loss.
    Png,
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

/// An entry of a directory that was listed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Its name, without a slash.
    pub name: Vec<u8>,
    /// Its metadata.
    pub found: Found,
    /// The text of a symbolic link, if it could be read.
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
    /// The bytes of a short range are behind the message.
    Piece {
        /// How many.
        length: u32,
        /// Their hash.
        hash: FileHash,
    },
    /// Entries of one directory.
    Listed {
        /// Its path relative to the root of the store.
        dir: Vec<u8>,
        /// Some of its entries.
        entries: Vec<Listed>,
        /// Whether all of them have been told.
        is_last: bool,
    },
    /// The text of the link.
    Link {
        /// The text.
        text: Vec<u8>,
    },
    /// The space of the store.
    Space(Space),
    /// The window of a picture is coded, and its bytes follow.
    Viewed {
        /// Pixels of a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes of the coded window.
        bytes: u64,
        /// The time that the server took to make it, in microseconds.
        micros: u64,
    },
    /// The state of the server.
    Report(Box<Report>),
    /// A lease is granted.
    Leased(Leased),
    /// The server wants a lease back.
    // spec: store-lease-2
    Recall {
        /// The number of the lease.
        lease: u64,
    },
    /// Somebody else's lock.
    Locked {
        /// Whether it is exclusive, and its first and last byte; `None` if nothing is in the way.
        by: Option<(bool, (u64, u64))>,
    },
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
            Self::Piece { length, .. } => *length as u64,
            _ => 0,
        }
    }
}
