//! The data model of a copy, without I/O: the segments of a file and their hashes, the journal of
//! proven segments, and the messages between sender and receiver; and the limits of its rate.
#![forbid(unsafe_code)]

mod assembly;
mod failure;
mod geometry;
mod head;
mod journal;
mod layout;
mod message;
mod missing;
mod pace;
mod proven;
mod rules;
mod tree;
mod version;

pub use assembly::{Assembly, Beyond, Whole};
pub use failure::{Failure, FailureKind};
pub use geometry::{Geometry, SEGMENT, SegmentIndex};
pub use head::Head;
pub use journal::{
    Begun, Done, EarlierFile, FileRecord, Journal, JournalError, Part, Reached, Record, Remains,
    read_earlier,
};
pub use layout::Layout;
pub use message::{
    Attribute, Coming, Entry, EntryId, EntryKind, FromReceiver, FromSender, Kept, LimitedBy, Long,
    MAX_FRAME, MessageError, PathFigures, Sources, TargetKind, decode, encode, encode_long, frame,
    frame_len, framed,
};
pub use missing::missing;
pub use pace::{Limit, Pace};
pub use proven::{Hole, Proven};
pub use rules::{
    Attributes, Depth, Durable, Existing, Links, OtherSources, Owners, Pass, Preserve, Resume,
    Rules, Verify, Write,
};
pub use tree::{FileHash, SegmentHash};
pub use version::Version;
