//! Errors of a store.

use crate::Ability;
use crate::path::StorePath;
use hikyaku_fs::{FsError, Shown};
use hikyaku_transfer::FailureKind;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The result of an operation on a store.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A failed operation: what was attempted, on which path, and why it failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}: cannot {what}: {kind}")]
pub struct StoreError {
    /// The operation as a verb with its object ("read", "make the directory").
    pub what: &'static str,
    /// The path, escaped for a terminal.
    pub path: String,
    /// The reason.
    pub kind: ErrorKind,
}

/// Why an operation failed. The list is fixed, so that a server can encode it and a mount can map
/// it to an error number. Its order is part of the server's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum ErrorKind {
    /// No entry has this name.
    #[error("no such file or directory")]
    NotFound,
    /// An entry has this name already.
    #[error("it exists already")]
    Exists,
    /// A part of the path, or the operand, is not a directory.
    #[error("not a directory")]
    NotDir,
    /// The operand is a directory.
    #[error("is a directory")]
    IsDir,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// The user of the store has no permission.
    #[error("permission denied")]
    Denied,
    /// The store cannot be written to.
    #[error("the storage is read-only")]
    ReadOnly,
    /// The storage is full.
    #[error("no space left")]
    NoSpace,
    /// The user's quota is used up.
    #[error("the quota is used up")]
    Quota,
    /// The file would be larger than the store allows.
    #[error("too large")]
    TooLarge,
    /// The store cannot hold a file of this name.
    #[error("the storage cannot have a file of this name")]
    BadName,
    /// A symbolic link stands in the path.
    #[error("a symbolic link is in the way")]
    Link,
    /// Another writer has the file.
    #[error("somebody else is writing to it")]
    Busy,
    /// The file changed while it was read.
    #[error("it was changed meanwhile")]
    Changed,
    /// The handle refers to a file that was replaced or removed, or to a store that was restarted.
    #[error("it is gone")]
    Gone,
    /// The store lacks this ability.
    #[error("the storage does not support {0}")]
    Unsupported(Ability),
    /// The machine that has the data cannot be reached.
    #[error("the storage cannot be reached")]
    Unreachable,
    /// The storage did not answer in time.
    #[error("the storage does not answer")]
    TimedOut,
    /// The data differ from what was stored.
    #[error("the data are damaged")]
    Damaged,
    /// Another error number of the operating system.
    #[error("{}", of_system(*.0))]
    System(i32),
    /// The server reports a failure without a reason.
    #[error("the server failed and does not say why")]
    Unexplained,
}

impl StoreError {
    /// The failure of an operation on `path` for this reason.
    pub fn new(what: &'static str, path: &StorePath, kind: ErrorKind) -> Self {
        let path = match path.as_bytes() {
            b"" => ".".to_owned(),
            bytes => Shown::new(bytes).to_string(),
        };
        Self { what, path, kind }
    }
}

/// The text of an error number. `ENXIO` of a file means a device, a FIFO or a socket, `EPROTO` a server.
fn of_system(raw: i32) -> String {
    match ErrorKind::System(raw) {
        ErrorKind::SPECIAL => "not a regular file; it is left unchanged".to_owned(),
        ErrorKind::PROTOCOL => "the server breaks the protocol".to_owned(),
        ErrorKind::DIFFERS => "the servers have different files of this name".to_owned(),
        _ => Errno::from_raw_os_error(raw).to_string(),
    }
}

impl ErrorKind {
    /// Whether the store itself cannot be reached, and not only a file. The stored files stay there.
    pub const fn is_away(self) -> bool {
        matches!(self, Self::Unreachable | Self::TimedOut)
    }

    /// The operand is a device, a FIFO or a socket. It has the number that open(2) gives for a socket, so that peers of all
    /// versions understand it.
    pub const SPECIAL: Self = Self::System(Errno::NXIO.raw_os_error());

    /// The server has sent something else than its protocol has. It would do so again.
    pub const PROTOCOL: Self = Self::System(Errno::PROTO.raw_os_error());

    /// Several servers that are read as one have different things under the name. No file system gives its number.
    pub const DIFFERS: Self = Self::System(Errno::DOM.raw_os_error());

    /// The kind for an error number of the operating system.
    pub const fn of(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::Exists,
            Errno::NOTDIR => Self::NotDir,
            Errno::ISDIR => Self::IsDir,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::ROFS => Self::ReadOnly,
            Errno::NOSPC => Self::NoSpace,
            Errno::DQUOT => Self::Quota,
            Errno::FBIG => Self::TooLarge,
            Errno::NAMETOOLONG => Self::BadName,
            // `openat2` fails with EXDEV where a path would leave the root (openat2(2)).
            Errno::LOOP | Errno::XDEV => Self::Link,
            Errno::BUSY | Errno::TXTBSY => Self::Busy,
            Errno::STALE => Self::Gone,
            Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::CONNRESET => Self::Unreachable,
            Errno::TIMEDOUT => Self::TimedOut,
            other => Self::System(other.raw_os_error()),
        }
    }

    /// The error number that a mounted file system reports.
    pub const fn errno(self) -> Errno {
        match self {
            Self::NotFound => Errno::NOENT,
            Self::Exists => Errno::EXIST,
            Self::NotDir => Errno::NOTDIR,
            Self::IsDir => Errno::ISDIR,
            Self::NotEmpty => Errno::NOTEMPTY,
            Self::Denied => Errno::ACCESS,
            Self::ReadOnly => Errno::ROFS,
            Self::NoSpace => Errno::NOSPC,
            Self::Quota => Errno::DQUOT,
            Self::TooLarge => Errno::FBIG,
            Self::BadName => Errno::INVAL,
            Self::Link => Errno::LOOP,
            Self::Busy => Errno::BUSY,
            Self::Changed | Self::Gone => Errno::STALE,
            Self::Unsupported(_) => Errno::OPNOTSUPP,
            Self::Unreachable => Errno::HOSTUNREACH,
            Self::TimedOut => Errno::TIMEDOUT,
            Self::Damaged | Self::Unexplained => Errno::IO,
            Self::System(raw) => Errno::from_raw_os_error(raw),
        }
    }

    /// Whether the same call may succeed later without a change by the user.
    pub const fn is_worth_retrying(self) -> bool {
        matches!(self, Self::Busy | Self::Changed | Self::Gone | Self::Unreachable | Self::TimedOut)
    }
}

/// An operation under way and its path, for the error of whatever fails in it.
#[derive(Clone, Copy, Debug)]
pub struct Doing<'a> {
    what: &'static str,
    path: &'a StorePath,
}

/// An operation that begins: a verb with its object, and the path.
pub const fn doing<'a>(what: &'static str, path: &'a StorePath) -> Doing<'a> {
    Doing { what, path }
}

impl<'a> Doing<'a> {
    /// The path of the operation.
    pub const fn path(self) -> &'a StorePath {
        self.path
    }

    /// The operation has failed for this reason.
    pub fn fail<T>(self, kind: ErrorKind) -> Result<T> {
        Err(StoreError::new(self.what, self.path, kind))
    }

    /// Turns the error of a part of the operation into that of the operation.
    pub fn or<T>(self, done: std::result::Result<T, impl Into<ErrorKind>>) -> Result<T> {
        done.or_else(|error| self.fail(error.into()))
    }
}

/// The kind of a failure in reports to programs.
impl From<ErrorKind> for FailureKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound | ErrorKind::Gone => Self::NotFound,
            ErrorKind::Exists | ErrorKind::NotEmpty => Self::Exists,
            ErrorKind::NotDir => Self::NotDirectory,
            ErrorKind::IsDir => Self::IsDirectory,
            ErrorKind::Denied => Self::Denied,
            ErrorKind::ReadOnly => Self::ReadOnly,
            ErrorKind::NoSpace => Self::NoSpace,
            ErrorKind::Quota => Self::Quota,
            ErrorKind::TooLarge => Self::TooLarge,
            ErrorKind::BadName => Self::BadName,
            ErrorKind::Link => Self::Link,
            ErrorKind::Busy | ErrorKind::Unreachable | ErrorKind::TimedOut => Self::Busy,
            ErrorKind::Changed => Self::Changed,
            ErrorKind::Unsupported(_) => Self::Unsupported,
            ErrorKind::Damaged => Self::Damaged,
            ErrorKind::SPECIAL => Self::Special,
            ErrorKind::System(_) | ErrorKind::Unexplained => Self::Io,
        }
    }
}

impl From<Errno> for ErrorKind {
    fn from(errno: Errno) -> Self {
        Self::of(errno)
    }
}

impl From<std::io::Error> for ErrorKind {
    fn from(error: std::io::Error) -> Self {
        Self::of(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl From<FsError> for ErrorKind {
    fn from(error: FsError) -> Self {
        match (&error, error.errno()) {
            (_, Some(errno)) => Self::of(errno),
            (FsError::Link { .. }, _) => Self::Link,
            (FsError::Busy { .. }, _) => Self::Busy,
            (FsError::Path { .. }, _) => Self::BadName,
            (FsError::OnlyInPlace { .. } | FsError::NotOurs { .. }, _) => Self::Denied,
            (FsError::Exchanged { .. }, _) => Self::Changed,
            (FsError::Special { .. } | FsError::System { .. }, None) => Self::SPECIAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_as_one_of_those_that_programs_know() {
        use FailureKind as F;
        let table = [
            (ErrorKind::NotFound, F::NotFound),
            (ErrorKind::Exists, F::Exists),
            (ErrorKind::NotDir, F::NotDirectory),
            (ErrorKind::IsDir, F::IsDirectory),
            (ErrorKind::NotEmpty, F::Exists),
            (ErrorKind::Denied, F::Denied),
            (ErrorKind::ReadOnly, F::ReadOnly),
            (ErrorKind::NoSpace, F::NoSpace),
            (ErrorKind::Quota, F::Quota),
            (ErrorKind::TooLarge, F::TooLarge),
            (ErrorKind::BadName, F::BadName),
            (ErrorKind::Link, F::Link),
            (ErrorKind::Busy, F::Busy),
            (ErrorKind::Changed, F::Changed),
            (ErrorKind::Gone, F::NotFound),
            (ErrorKind::Unsupported(Ability::Links), F::Unsupported),
            (ErrorKind::Unreachable, F::Busy),
            (ErrorKind::TimedOut, F::Busy),
            (ErrorKind::Damaged, F::Damaged),
            (ErrorKind::SPECIAL, F::Special),
            (ErrorKind::System(Errno::IO.raw_os_error()), F::Io),
            (ErrorKind::Unexplained, F::Io),
        ];
        for (kind, wanted) in table {
            assert_eq!(F::from(kind), wanted, "{kind:?}");
        }
    }
}
