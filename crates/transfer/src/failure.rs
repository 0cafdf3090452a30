//! Failures of single files, as one end reports them to the other.

use serde::{Deserialize, Serialize};

/// A file, link or directory that could not be read or written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Its path on the machine that failed, in the form in which that machine's user would name it.
    /// Empty if `text` names it already.
    pub place: Vec<u8>,
    /// The kind of failure, for programs.
    pub kind: FailureKind,
    /// The cause and the remedy if there is one, for users.
    pub text: String,
}

/// Kinds of failures that a calling program may treat differently.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No file of this name exists.
    NotFound,
    /// A file of this name exists already.
    Exists,
    /// A directory was expected and the name is something else.
    NotDirectory,
    /// Something else was expected and the name is a directory.
    IsDirectory,
    /// Permission denied.
    Denied,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The file system is full.
    NoSpace,
    /// The user's quota is used up.
    Quota,
    /// The file exceeds a limit of the file system or of the process.
    TooLarge,
    /// The file system cannot store this name.
    BadName,
    /// A symbolic link stands in the path.
    Link,
    /// The name is a FIFO, a socket or a device.
    Special,
    /// Another process is writing to the file.
    Busy,
    /// The file changed while it was read.
    Changed,
    /// The file system does not support the operation.
    Unsupported,
    /// The data read back differ from the data written.
    Damaged,
    /// The limit on open files is reached.
    TooManyFiles,
    /// The device reported an I/O error.
    Io,
    /// Anything else.
    Other,
}

/// All kinds. The index of a kind is its number on the wire, so the order must not change.
const KINDS_BY_NUMBER: [FailureKind; 19] = [
    FailureKind::NotFound,
    FailureKind::Exists,
    FailureKind::NotDirectory,
    FailureKind::IsDirectory,
    FailureKind::Denied,
    FailureKind::ReadOnly,
    FailureKind::NoSpace,
    FailureKind::Quota,
    FailureKind::TooLarge,
    FailureKind::BadName,
    FailureKind::Link,
    FailureKind::Special,
    FailureKind::Busy,
    FailureKind::Changed,
    FailureKind::Unsupported,
    FailureKind::Damaged,
    FailureKind::TooManyFiles,
    FailureKind::Io,
    FailureKind::Other,
];

impl FailureKind {
    /// Its number on the wire and in places that hold numbers only.
    pub fn number(self) -> u64 {
        KINDS_BY_NUMBER.iter().position(|kind| *kind == self).map_or(0, |at| at as u64)
    }

    /// The kind with this number; `None` for an unknown number.
    pub fn from_number(number: u64) -> Option<Self> {
        KINDS_BY_NUMBER.get(usize::try_from(number).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_number() {
        for (at, kind) in KINDS_BY_NUMBER.into_iter().enumerate() {
            assert_eq!(kind.number(), at as u64);
            assert_eq!(FailureKind::from_number(kind.number()), Some(kind));
        }
        assert_eq!(FailureKind::from_number(KINDS_BY_NUMBER.len() as u64), None);
    }
}
