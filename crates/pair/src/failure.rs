//! A failure of the file system, as the other end is told of it.

use hikyaku_fs::{FsError, Shown};
use hikyaku_job::{ClaimsFull, kind_of_errno, kind_of_fs_error};
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

/// The error of a copy with too many names.
pub(crate) fn full(error: ClaimsFull) -> anyhow::Error {
    anyhow::Error::new(error).context(ClaimsFull::REMEDY)
}

/// The kind of what was said of a file, if that is what ended a copy.
pub fn kind_of_file(error: &anyhow::Error) -> Option<FailureKind> {
    error.chain().find_map(|link| {
        let fatal = link.downcast_ref::<Fatal>().map(|fatal| fatal.0.kind);
        fatal.or_else(|| link.downcast_ref::<FsError>().map(kind_of_fs_error))
    })
}

/// The kind of whatever ended a copy, if it is known.
pub(crate) fn kind_of_error(error: &anyhow::Error) -> Option<FailureKind> {
    kind_of_file(error).or_else(|| {
        error.chain().find_map(|link| {
            let io = || Errno::from_io_error(link.downcast_ref::<io::Error>()?).map(kind_of_errno);
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
    Failure { place: place(base, path), kind: kind_of_fs_error(error), text: error.reason() }
}

/// The path of a file as this machine's user would write it.
pub(crate) fn place(base: &Path, path: &[u8]) -> Vec<u8> {
    let base = if base == Path::new(".") { Path::new("") } else { base };
    base.join(OsStr::from_bytes(path)).as_os_str().as_bytes().to_vec()
}
