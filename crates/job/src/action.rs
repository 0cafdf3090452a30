//! The action for an entry of a source, depending on the entry that has its name at the target. This is the only decision: all
//! ways of copying use it, and a dry run uses the function that the copy uses.

use hikyaku_store::{Found, Kind, Time};
use hikyaku_transfer::Existing;

/// When a file at the target counts as copied already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Same {
    /// Never, as with scp: files are always copied. For copies whose ends are this host or hosts reached through ssh.
    Never,
    /// If its size and time are those of the source, as with rclone. For copies with another storage at one end.
    SizeAndTime,
}

/// The content of a file, as far as it is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time.
    pub modified: Time,
}

/// The entry that has the name at the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Its kind.
    pub kind: Kind,
    /// Its size and modification time.
    pub content: Content,
}

/// The action for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileAction {
    /// It is written, in the place of a file or link that has the name.
    Write,
    /// It counts as copied already.
    Same,
    /// The existing entry stays.
    Stay,
    /// The existing entry stays, and the file cannot be written.
    Refuse(InTheWay),
}

/// The action for a symbolic link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkAction {
    /// It is made, in the place of a file or link that has the name.
    Make,
    /// The existing entry stays: the user wants that, or it is a link with the same text.
    Stay,
    /// The existing entry stays, and the link cannot be made.
    Refuse(InTheWay),
}

/// The action for a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirAction {
    /// It is made.
    Make,
    /// Its entries go into the existing directory.
    Merge,
    /// The existing entry stays, and the directory cannot be made.
    Refuse(InTheWay),
}

/// An entry at the target that is not replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InTheWay {
    /// A directory, where a file or link is to be made.
    #[error("is a directory")]
    Directory,
    /// A FIFO, a socket or a device.
    #[error("not a regular file; it is left unchanged")]
    Special,
    /// Anything but a directory, where one is to be made.
    #[error("not a directory")]
    NoDirectory,
    /// A file or a link, and none is to be replaced.
    #[error("exists; --force replaces it")]
    File,
}

impl From<&Found> for Taken {
    fn from(found: &Found) -> Self {
        let content = Content { size: found.size, modified: found.modified };
        Self { kind: found.kind, content }
    }
}

/// Decides about a file.
pub fn file_action(
    new: Content,
    taken: Option<Taken>,
    (existing, same): (Existing, Same),
) -> FileAction {
    let Some(Taken { kind, content }) = taken else { return FileAction::Write };
    match kind {
        _ if existing == Existing::Kept => FileAction::Stay,
        Kind::Dir => FileAction::Refuse(InTheWay::Directory),
        Kind::Special => FileAction::Refuse(InTheWay::Special),
        Kind::File if same == Same::SizeAndTime && content == new => FileAction::Same,
        Kind::File | Kind::Link if existing == Existing::Refused => {
            FileAction::Refuse(InTheWay::File)
        }
        Kind::File | Kind::Link if existing.keeps(new.modified, content.modified) => {
            FileAction::Stay
        }
        Kind::File | Kind::Link => FileAction::Write,
    }
}

/// Decides about a symbolic link with this text and modification time. `taken` includes the text of the existing entry, if that
/// is a link that can be read.
pub fn link_action(
    (text, modified): (&[u8], Time),
    taken: Option<(Taken, Option<&[u8]>)>,
    existing: Existing,
) -> LinkAction {
    let Some((Taken { kind, content }, existing_text)) = taken else { return LinkAction::Make };
    match kind {
        _ if existing == Existing::Kept => LinkAction::Stay,
        Kind::Dir => LinkAction::Refuse(InTheWay::Directory),
        Kind::Special => LinkAction::Refuse(InTheWay::Special),
        Kind::Link if existing_text == Some(text) => LinkAction::Stay,
        Kind::File | Kind::Link if existing == Existing::Refused => {
            LinkAction::Refuse(InTheWay::File)
        }
        Kind::File | Kind::Link if existing.keeps(modified, content.modified) => LinkAction::Stay,
        Kind::File | Kind::Link => LinkAction::Make,
    }
}

/// Decides about a directory, from the kind of the existing entry.
pub const fn dir_action(taken: Option<Kind>) -> DirAction {
    match taken {
        None => DirAction::Make,
        Some(Kind::Dir) => DirAction::Merge,
        Some(Kind::File | Kind::Link | Kind::Special) => DirAction::Refuse(InTheWay::NoDirectory),
    }
}

#[cfg(test)]
mod tests;
