//! The plan of a copy, without I/O: a file's segments and their hashes, which of them are proven,
//! and what the two ends say to each other.
#![forbid(unsafe_code)]

mod assembly;
mod geometry;
mod journal;
mod message;
mod proven;
mod tree;

pub use assembly::{Assembly, Beyond, Whole};
pub use geometry::{Geometry, SEGMENT, SegmentIndex};
pub use journal::{FileRecord, Journal, JournalError, Record, Remains};
pub use message::{
    Attribute, Entry, EntryId, EntryKind, FromReceiver, FromSender, Kept, LimitedBy, MAX_FRAME,
    MessageError, PathFigures, Sources, decode, encode, frame, frame_len, framed,
};
pub use proven::{Hole, Proven};
pub use tree::{FileHash, SegmentHash};
