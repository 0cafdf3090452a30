//! A failure of the file system, as the other end is told of it.

use hikyaku_fs::{FsError, Shown};
use hikyaku_transfer::{Failure, FailureKind};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A failure that the next file would meet, too: it ends the copy.
#[derive(Debug)]
pub struct Fatal(pub(crate) Failure);

impl Fatal {
    /// One whose text says all.
    pub const fn of(kind: FailureKind, text: String) -> Self {
        Self(Failure { place: Vec::new(), kind, text })
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { place, text, .. } = &self.0;
        if place.is_empty() {
            f.write_str(text)
        } else {
            write!(f, "{}: {text}", Shown::new(place))
        }
    }
}

/// An error of this kind with this text.
pub(crate) fn failed(kind: FailureKind, text: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Fatal::of(kind, text.into()))
}

/// The kind of what was said of a file, if that is what ended a copy.
pub fn kind_of_file(error: &anyhow::Error) -> Option<FailureKind> {
    error.chain().find_map(|link| {
        let fatal = link.downcast_ref::<Fatal>().map(|fatal| fatal.0.kind);
        fatal.or_else(|| link.downcast_ref::<FsError>().map(kind))
    })
}

/// The kind of whatever ended a copy, if it is known.
pub(crate) fn kind_of_error(error: &anyhow::Error) -> Option<FailureKind> {
    kind_of_file(error).or_else(|| {
        error.chain().find_map(|link| {
            let io = || Errno::from_io_error(link.downcast_ref::<io::Error>()?).map(kind_of);
            let plain = || link.downcast_ref::<io::Error>().and_then(|error| of_io(error.kind()));
            io().or_else(plain)
        })
    })
}

const fn of_io(kind: io::ErrorKind) -> Option<FailureKind> {
    match kind {
        io::ErrorKind::NotFound => Some(FailureKind::NotFound),
        io::ErrorKind::PermissionDenied => Some(FailureKind::Denied),
        _ => None,
    }
}

impl std::error::Error for Fatal {}

/// The failure of the file that is `path` beneath `base`.
pub(crate) fn failure(base: &Path, path: &[u8], error: &FsError) -> Failure {
    Failure { place: place(base, path), kind: kind(error), text: error.reason() }
}

/// The path of a file as this machine's user would write it.
pub(crate) fn place(base: &Path, path: &[u8]) -> Vec<u8> {
    let base = if base == Path::new(".") { Path::new("") } else { base };
    base.join(OsStr::from_bytes(path)).as_os_str().as_bytes().to_vec()
}

/// The kind of an error.
pub const fn kind(error: &FsError) -> FailureKind {
    match error {
        FsError::System { errno, .. } => kind_of(*errno),
        FsError::Link { .. } => FailureKind::Link,
        FsError::Special { .. } => FailureKind::Special,
        FsError::OnlyInPlace { .. } | FsError::NotOurs { .. } => FailureKind::Denied,
        FsError::Exchanged { .. } => FailureKind::Changed,
        FsError::Busy { .. } => FailureKind::Busy,
        FsError::Path { .. } => FailureKind::BadName,
    }
}

/// The kind of an error of the system.
pub(crate) const fn kind_of(errno: Errno) -> FailureKind {
    match errno {
        Errno::NOENT => FailureKind::NotFound,
        Errno::EXIST | Errno::NOTEMPTY => FailureKind::Exists,
        Errno::NOTDIR => FailureKind::NotDirectory,
        Errno::ISDIR => FailureKind::IsDirectory,
        Errno::ACCESS | Errno::PERM => FailureKind::Denied,
        Errno::ROFS => FailureKind::ReadOnly,
        Errno::NOSPC => FailureKind::NoSpace,
        Errno::DQUOT => FailureKind::Quota,
        Errno::FBIG => FailureKind::TooLarge,
        Errno::NAMETOOLONG | Errno::ILSEQ => FailureKind::BadName,
        Errno::LOOP => FailureKind::Link,
        Errno::BUSY | Errno::TXTBSY => FailureKind::Busy,
        Errno::OPNOTSUPP | Errno::NOSYS => FailureKind::Unsupported,
        Errno::MFILE | Errno::NFILE => FailureKind::TooManyFiles,
        Errno::IO => FailureKind::Io,
        _ => FailureKind::Other,
    }
}
