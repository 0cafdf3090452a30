//! A failure of the file system, as it is sent to the other end.

use hikyaku_fs::{FsError, Shown};
use hikyaku_job::kind_of_fs_error;
use hikyaku_transfer::{Failure, FailureKind};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A failure that the next file would meet as well, or one of the target as a whole. It ends the copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fatal {
    failure: Failure,
    remedy: Option<String>,
}

impl Fatal {
    /// A failure of this kind with this text.
    pub const fn of(kind: FailureKind, text: String) -> Self {
        Self::new(Failure { place: Vec::new(), kind, text })
    }

    /// A failure of a file.
    pub(crate) const fn new(failure: Failure) -> Self {
        Self { failure, remedy: None }
    }

    /// This failure with a remedy, which begins with `try: `.
    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// The kind of the failure.
    pub const fn kind(&self) -> FailureKind {
        self.failure.kind
    }

    pub(crate) fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { place, text, .. } = &self.failure;
        if place.is_empty() {
            f.write_str(text)
        } else {
            write!(f, "{}: {text}", Shown::new(place))
        }
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
