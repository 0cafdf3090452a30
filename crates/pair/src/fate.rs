//! What becomes of an entry where something may be already: one decision for files, links and directories,
//! for the copy and for its rehearsal.

use super::Options;
use hikyaku_fs::{Kind, Manner, Meta};
use hikyaku_store::Time;
use hikyaku_transfer::{Entry, EntryKind, Existing, Write};

/// What has an entry's name at the target.
pub(crate) struct Found {
    pub(crate) meta: Meta,
    /// What it says, if it is a link.
    pub(crate) link: Option<Vec<u8>>,
}

/// What becomes of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// A file is written, in this manner.
    Write(Manner),
    /// A link is made, in place of a file or link that may be there.
    Link,
    /// A directory is made.
    Make,
    /// The directory that is there is used.
    Merge,
    /// What is there stays: its user wants that, or it is the same link.
    Stay,
    /// What is there stays, and the entry cannot be made.
    Refuse(Refusal),
}

/// Why an entry cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// A directory has the name of a file or link.
    IsDirectory,
    /// Something else has the name of a directory.
    NotDirectory,
    /// A FIFO, a socket or a device has the name.
    Special,
}

/// Decides.
pub(crate) fn fate(entry: &Entry, found: Option<&Found>, options: &Options) -> Fate {
    let Some(found) = found else {
        return match entry.kind {
            EntryKind::File { .. } => Fate::Write(Manner::Renamed),
            EntryKind::Link(_) => Fate::Link,
            EntryKind::Dir => Fate::Make,
        };
    };
    match (&entry.kind, found.meta.kind) {
        (EntryKind::Dir, Kind::Dir) => Fate::Merge,
        (EntryKind::Dir, _) => Fate::Refuse(Refusal::NotDirectory),
        _ if options.existing == Existing::Kept => Fate::Stay,
        (_, Kind::Dir) => Fate::Refuse(Refusal::IsDirectory),
        (_, Kind::Special) => Fate::Refuse(Refusal::Special),
        _ if is_newer(entry, found, options) => Fate::Stay,
        (EntryKind::Link(to), _) if found.link.as_ref() == Some(to) => Fate::Stay,
        (EntryKind::Link(_), _) => Fate::Link,
        (EntryKind::File { .. }, Kind::File) if options.write == Write::InPlace => {
            Fate::Write(Manner::InPlace)
        }
        (EntryKind::File { .. }, _) => Fate::Write(Manner::Renamed),
    }
}

fn is_newer(entry: &Entry, found: &Found, options: &Options) -> bool {
    let time = |(secs, nanos)| Time { secs, nanos };
    options.existing.keeps(time(entry.modified), time(found.meta.modified))
}

#[cfg(test)]
mod tests;
