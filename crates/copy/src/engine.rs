//! The two ends of a copy, whoever dialled whom: one reads, one writes, and they share a connection
//! with a stream of messages.

mod board;
mod buffers;
mod choice;
mod claims;
mod disk;
mod failure;
mod fate;
mod fault;
mod gather;
mod in_order;
mod incoming;
mod journal;
mod landing;
mod lane;
mod limit;
mod meter;
mod naming;
mod pending;
mod read;
mod receive;
mod room;
mod said;
mod send;
mod slots;
mod spot;
mod sync;
mod through;
mod version;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use choice::Choice;
pub use choice::Patterns;
pub(crate) use claims::{Claimant, Claims};
pub(crate) use failure::{Fatal, kind, kind_of_file};
pub(crate) use fault::{Fault, close_code, kind_of_close};
pub(crate) use journal::{Content, Held, Known, NotHeld, State, Unfinished, unfinished};
pub(crate) use landing::Descriptors;
pub(crate) use meter::{End, Meter, Tally};
pub(crate) use read::ReadSource;
pub(crate) use receive::{Writing, receive};
pub(crate) use send::send;
pub(crate) use slots::places;
pub(crate) use sync::SyncEvery;
pub(crate) use through::{Party, Terms, through};
pub(crate) use walk::Roots;

use crate::patterns::Allowed;
use hikyaku_fs::Kind;
use hikyaku_reach::{Connection, In, Out};
use hikyaku_transfer::{
    Attributes, Depth, Durable, EntryKind, Existing, Links, OtherSources, Owners, Pass, Preserve,
    Resume, Verify, Write,
};
use serde::{Deserialize, Serialize};

/// Files up to this size go through the stream of messages, one behind the other; larger ones have an
/// object of the transport each.
pub(crate) const SMALL: u64 = 256 << 10;

/// What the two ends of a copy have in common.
pub(crate) struct Ends<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) incoming: In,
    pub(crate) outgoing: Out,
    pub(crate) fault: &'a Fault,
    pub(crate) meter: &'a Meter,
    pub(crate) options: &'a Options,
    /// Names that the sender may send; for the end that writes.
    pub(crate) allowed: &'a Allowed,
    /// Names that other parts of the copy have, for the near end.
    pub(crate) claims: Claimant<'a>,
}

/// How a copy is made; both ends know it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Whether directories are copied.
    pub(crate) depth: Depth,
    /// Which times and modes are kept.
    pub(crate) preserve: Preserve,
    /// The treatment of links.
    pub(crate) links: Links,
    /// The owners of new files.
    pub(crate) owners: Owners,
    /// Extended attributes of users.
    pub(crate) attributes: Attributes,
    /// Where contents are written.
    pub(crate) write: Write,
    /// When a file counts as written.
    pub(crate) durable: Durable,
    /// The use of data of earlier attempts.
    pub(crate) resume: Resume,
    /// How contents are checked.
    pub(crate) verify: Verify,
    /// What happens to files that have the name at the target.
    pub(crate) existing: Existing,
    /// Whether anything is written.
    pub(crate) pass: Pass,
    /// Only these, relative to the one source; all, if there are none.
    pub(crate) files: Vec<Vec<u8>>,
    /// The most that may be sent, in bits of files per second; for whoever tells what limits.
    pub(crate) limit: Option<u64>,
    /// Whether the command has other sources than those of this end.
    pub(crate) other_sources: OtherSources,
    /// What is left out.
    pub(crate) patterns: Patterns,
}

/// What an entry would be at the target.
pub(crate) const fn kind_of(entry: &EntryKind) -> Kind {
    match entry {
        EntryKind::File { .. } => Kind::File,
        EntryKind::Dir => Kind::Dir,
        EntryKind::Link(_) => Kind::Link,
    }
}
