//! Values that both ends of a copy use: its options, its connection, and its counters.

use crate::fault::Fault;
use hikyaku_fs::Kind;
use hikyaku_job::{Allowed, Claimant, Meter, Patterns};
use hikyaku_reach::{Connection, In, Out};
use hikyaku_transfer::{
    Attributes, Depth, Durable, EntryKind, Existing, Links, OtherSources, Owners, Pass, Preserve,
    Resume, Verify, Write,
};
use serde::{Deserialize, Serialize};

/// Maximum size in bytes of a file that is sent within the stream of messages. A larger file is an object of the transport.
pub const SMALL: u64 = 256 << 10;

/// One end of a copy while it runs.
pub(crate) struct Ends<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) incoming: In,
    pub(crate) outgoing: Out,
    pub(crate) fault: &'a Fault,
    pub(crate) meter: &'a Meter,
    pub(crate) options: &'a Options,
    /// Names that the sender may send. Used by the receiver.
    pub(crate) allowed: &'a Allowed,
    /// Names that other parts of the copy have made. Used by the near end.
    pub(crate) claims: Claimant<'a>,
}

/// The rules of a copy as both ends know them. The order and the types of the fields are those of the message
/// (`docs/internals/transfer-protocol.md`).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Options {
    /// Whether directories are copied.
    pub depth: Depth,
    /// Which times and modes are kept.
    pub preserve: Preserve,
    /// The treatment of links.
    pub links: Links,
    /// The owners of new files.
    pub owners: Owners,
    /// Extended attributes of users.
    pub attributes: Attributes,
    /// Where contents are written.
    pub write: Write,
    /// When a file counts as written.
    pub durable: Durable,
    /// The use of data of earlier attempts.
    pub resume: Resume,
    /// How contents are checked.
    pub verify: Verify,
    /// The treatment of files that have the name at the target.
    pub existing: Existing,
    /// Whether anything is written.
    pub pass: Pass,
    /// Paths below the one source that are copied; if empty, all are.
    pub files: Vec<Vec<u8>>,
    /// The rate limit in bits of file contents per second. The sender reports whether it limits the copy.
    pub limit: Option<u64>,
    /// Whether the command has other sources than those of this end.
    pub other_sources: OtherSources,
    /// Names that are left out.
    pub patterns: Patterns,
}

/// The kind of file that an entry would be at the target.
pub(crate) const fn kind_of(entry: &EntryKind) -> Kind {
    match entry {
        EntryKind::File { .. } => Kind::File,
        EntryKind::Dir => Kind::Dir,
        EntryKind::Link(_) => Kind::Link,
    }
}
