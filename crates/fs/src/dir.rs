//! A directory held open, and what may be done beneath it.

mod entries;
mod meta;
mod resolve;

pub use entries::Entry;
pub use meta::{Kind, Meta};
pub use resolve::Resolve;

use crate::error::FsError;
use crate::path::{Name, PeerPath};
use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A directory beneath which everything stays.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    resolve: Resolve,
}

/// Whether a rename may put an end to what has the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// The old file is gone at once and for all.
    Allowed,
    /// It is an error, if the name is taken.
    Refused,
}

/// Fresh directories are their owner's until the transfer gives them their mode.
const PRIVATE_DIR: Mode = Mode::RWXU;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
/// A FIFO without a writer must not hold us, a terminal not become ours.
const CALM: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

impl Dir {
    /// Opens the directory that this machine's own user named: links on the way are theirs.
    pub fn open(path: &Path) -> Result<Self, FsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty())
            .map_err(|errno| FsError::new("open", path.as_os_str().as_bytes(), errno))?;
        let resolve = Resolve::probe(fd.as_fd());
        Ok(Self { fd, resolve })
    }

    /// The same directory with names looked up in another way; for tests of both.
    #[must_use]
    pub fn with_resolve(self, resolve: Resolve) -> Self {
        Self { resolve, ..self }
    }

    /// How names are looked up here.
    pub const fn resolve(&self) -> Resolve {
        self.resolve
    }

    fn lookup(
        &self,
        what: &'static str,
        path: &PeerPath,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, FsError> {
        self.resolve
            .open(self.fd.as_fd(), path, flags, mode)
            .map_err(|errno| FsError::new(what, path.as_bytes(), errno))
    }

    /// A directory beneath this one.
    pub fn dir(&self, path: &PeerPath) -> Result<Self, FsError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = self.lookup("open", path, flags, Mode::empty())?;
        Ok(Self { fd, resolve: self.resolve })
    }

    /// The directory beneath this one that holds `path`, and the name of `path` there.
    pub fn parent(&self, path: &PeerPath) -> Result<(Self, Name), FsError> {
        let dir = match path.parent() {
            Some(parent) => self.dir(&parent)?,
            None => self.again()?,
        };
        Ok((dir, path.name()))
    }

    /// A second handle.
    pub fn again(&self) -> Result<Self, FsError> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)
            .map_err(|errno| FsError::new("keep open", b".", errno))?;
        Ok(Self { fd, resolve: self.resolve })
    }

    /// Opens a file for reading. It may be no plain file: look at its [`Meta`] before reading.
    pub fn read(&self, path: &PeerPath) -> Result<File, FsError> {
        self.lookup("read", path, OFlags::RDONLY | CALM, Mode::empty()).map(File::from)
    }

    /// Opens a file that exists for writing in place.
    pub fn write(&self, path: &PeerPath) -> Result<File, FsError> {
        self.lookup("write", path, OFlags::RDWR | CALM, Mode::empty()).map(File::from)
    }

    /// Makes a file that did not exist: of mode 0600, to be read and written.
    pub fn create(&self, name: &Name) -> Result<File, FsError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.lookup("create", &name.clone().into(), flags, PRIVATE_FILE).map(File::from)
    }

    /// Makes a directory of mode 0700, or takes one that is there.
    pub fn make_dir(&self, name: &Name) -> Result<Self, FsError> {
        match fs::mkdirat(&self.fd, name.as_os_str(), PRIVATE_DIR) {
            Ok(()) | Err(Errno::EXIST) => self.dir(&name.clone().into()),
            Err(errno) => Err(FsError::new("make the directory", name.as_bytes(), errno)),
        }
    }

    /// Makes a link that says `target`, verbatim: it is nothing until somebody follows it.
    pub fn make_link(&self, name: &Name, target: &[u8]) -> Result<(), FsError> {
        fs::symlinkat(OsStr::from_bytes(target), &self.fd, name.as_os_str())
            .map_err(|errno| FsError::new("make the link", name.as_bytes(), errno))
    }

    /// What a link says.
    pub fn read_link(&self, name: &Name) -> Result<Vec<u8>, FsError> {
        fs::readlinkat(&self.fd, name.as_os_str(), Vec::new())
            .map(std::ffi::CString::into_bytes)
            .map_err(|errno| FsError::new("read the link", name.as_bytes(), errno))
    }

    /// Renames a file here to a name in `to`. Neither name is followed if it is a link.
    pub fn rename(
        &self,
        from: &Name,
        to: &Self,
        name: &Name,
        replace: Replace,
    ) -> Result<(), FsError> {
        let (old, new) = (from.as_os_str(), name.as_os_str());
        let done = match replace {
            Replace::Allowed => fs::renameat(&self.fd, old, &to.fd, new),
            Replace::Refused => {
                fs::renameat_with(&self.fd, old, &to.fd, new, RenameFlags::NOREPLACE)
            }
        };
        done.map_err(|errno| FsError::new("rename to", name.as_bytes(), errno))
    }

    /// Removes a name that is no directory.
    pub fn remove_file(&self, name: &Name) -> Result<(), FsError> {
        fs::unlinkat(&self.fd, name.as_os_str(), AtFlags::empty())
            .map_err(|errno| FsError::new("remove", name.as_bytes(), errno))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &Name) -> Result<(), FsError> {
        fs::unlinkat(&self.fd, name.as_os_str(), AtFlags::REMOVEDIR)
            .map_err(|errno| FsError::new("remove the directory", name.as_bytes(), errno))
    }

    /// What is known of a name here, of the link itself if it is one; `None` if there is none.
    pub fn meta(&self, name: &Name) -> Result<Option<Meta>, FsError> {
        match fs::statat(&self.fd, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Meta::new(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FsError::new("look at", name.as_bytes(), errno)),
        }
    }

    /// Makes names that were given or taken here last through a power failure.
    pub fn sync(&self) -> Result<(), FsError> {
        match fs::fsync(&self.fd) {
            // Some file systems have no such thing for directories.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(FsError::new("sync the directory", b".", errno)),
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests;
