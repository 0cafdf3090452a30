//! Where a source is: beneath a directory that its user named and that is held open.

use super::failure::place;
use super::read::ReadSource;
use hikyaku_fs::{Folder, FsError, Links, PeerPath, Tree};
use hikyaku_job::kind_of_fs_error;
use hikyaku_transfer::{Failure, FailureKind};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory that sources are beneath.
pub(crate) struct Base {
    tree: Tree,
    /// As its user wrote it; empty, if that was the name of something in the current directory.
    path: PathBuf,
}

/// A file or directory.
#[derive(Clone)]
pub(crate) struct Spot {
    base: Arc<Base>,
    /// None: the directory itself.
    below: Option<PeerPath>,
}

impl Base {
    pub(crate) fn open(path: &Path, links: Links) -> Result<Self, FsError> {
        let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Self { tree: Tree::open(here, links)?, path: path.to_path_buf() })
    }

    pub(crate) const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The failure of an entry below this one that cannot be read.
    pub(crate) fn failure(&self, below: &[u8], error: &ReadSource) -> Failure {
        failure(&self.path, below, error)
    }
}

impl Spot {
    pub(crate) const fn new(base: Arc<Base>, below: Option<PeerPath>) -> Self {
        Self { base, below }
    }

    pub(crate) const fn below(&self) -> Option<&PeerPath> {
        self.below.as_ref()
    }

    pub(crate) const fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// Opens a file for reading; it may be no plain file.
    pub(super) fn open(&self) -> Result<File, ReadSource> {
        match &self.below {
            Some(path) => Ok(self.base.tree.file(path)?),
            None => Err(ReadSource::Exchanged),
        }
    }

    /// Opens a directory.
    pub(crate) fn folder(&self) -> Result<Folder, ReadSource> {
        Ok(self.base.tree.folder(self.below.as_ref())?)
    }

    /// The failure of this entry if it cannot be read.
    pub(crate) fn failure(&self, error: &ReadSource) -> Failure {
        self.base.failure(self.below.as_ref().map_or(b"", PeerPath::as_bytes), error)
    }
}

/// The failure of what is `below` a directory as its user wrote it.
pub(crate) fn failure(base: &Path, below: &[u8], error: &ReadSource) -> Failure {
    let place = match below {
        b"" => base.as_os_str().as_bytes().to_vec(),
        below => place(base, below),
    };
    let kind = match error {
        ReadSource::System(error) => kind_of_fs_error(error),
        ReadSource::Changed => FailureKind::Changed,
        ReadSource::Nameless | ReadSource::Closed => FailureKind::NotFound,
        ReadSource::Link => FailureKind::Link,
        ReadSource::Special(_) | ReadSource::Exchanged | ReadSource::Carrier => {
            FailureKind::Special
        }
        ReadSource::JustMade => FailureKind::Exists,
        ReadSource::Directory => FailureKind::IsDirectory,
        ReadSource::Circle => FailureKind::Link,
        ReadSource::TooDeep | ReadSource::Odd(_) => FailureKind::BadName,
        ReadSource::TooLarge | ReadSource::Attributes => FailureKind::TooLarge,
        ReadSource::More | ReadSource::Less => FailureKind::Unsupported,
    };
    Failure { place, kind, text: error.reason() }
}
