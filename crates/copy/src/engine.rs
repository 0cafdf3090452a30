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
use hikyaku_fan::Older;
use hikyaku_fs::Kind;
use hikyaku_reach::{Connection, In, Out};
use hikyaku_transfer::EntryKind;
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
    /// Directories with what is in them.
    pub(crate) recursive: bool,
    /// What of the source's metadata is kept.
    pub(crate) preserve: Preserve,
    /// Links stay links.
    pub(crate) keep_links: bool,
    /// Owners, where the end that writes may set them.
    pub(crate) keep_owners: bool,
    /// Extended attributes of users.
    pub(crate) keep_attributes: bool,
    /// Files that are there are written over, in place of making new ones.
    pub(crate) in_place: bool,
    /// What is said to be there is on the disk.
    pub(crate) durable: bool,
    /// What an earlier attempt left is not taken up.
    pub(crate) fresh: bool,
    /// Files are read again before they get their names.
    pub(crate) verify: bool,
    /// Which files at the target are left alone.
    pub(crate) existing: Existing,
    /// Say what would be copied, and copy nothing.
    pub(crate) rehearsal: bool,
    /// Only these, relative to the one source; all, if there are none.
    pub(crate) files: Vec<Vec<u8>>,
    /// The most that may be sent, in bits of files per second; for whoever tells what limits.
    pub(crate) limit: Option<u64>,
    /// There are more sources than those of this end: the target is a directory.
    pub(crate) several: bool,
    /// What is left out.
    pub(crate) patterns: Patterns,
}

/// Which times and modes are kept. The order of the variants is that of the protocol: the first two are what the two bools
/// of older programs mean.
// spec: copy-feature-1
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Preserve {
    /// Neither.
    #[default]
    Nothing,
    /// Both.
    All,
    /// Times alone. A far side has it with the feature [`TIMES_ALONE`](hikyaku_reach::TIMES_ALONE).
    Times,
}

impl Preserve {
    pub(crate) const fn times(self) -> bool {
        matches!(self, Self::All | Self::Times)
    }

    pub(crate) const fn modes(self) -> bool {
        matches!(self, Self::All)
    }
}

/// What becomes of a file that is at the target already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Existing {
    /// The new one takes its place.
    #[default]
    Replaced,
    /// It stays unless it is older than the source.
    KeptIfNewer,
    /// It stays.
    Kept,
}

impl From<Existing> for Older {
    fn from(existing: Existing) -> Self {
        match existing {
            Existing::Replaced => Self::Replaced,
            Existing::KeptIfNewer => Self::KeptIfNewer,
            Existing::Kept => Self::Kept,
        }
    }
}

/// What an entry would be at the target.
pub(crate) const fn kind_of(entry: &EntryKind) -> Kind {
    match entry {
        EntryKind::File { .. } => Kind::File,
        EntryKind::Dir => Kind::Dir,
        EntryKind::Link(_) => Kind::Link,
    }
}
