//! A directory held open by its descriptor, and operations on names beneath it.

mod entries;
mod exact;
mod meta;
mod resolve;
mod tree;

pub use entries::Entry;
pub use exact::Names;
pub use meta::{CHANGED, Kind, Meta, Owner};
pub use resolve::Resolve;
pub use tree::{Folder, Links, Special, Tree};

use crate::error::FsError;
use crate::partial::Token;
use crate::path::{Name, PeerPath};
use crate::system::{SEARCH, sync};
use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An open directory. No operation on it reaches a file outside of it.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    resolve: Resolve,
}

/// Whether a rename may replace an existing file of the new name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// The rename replaces an existing file atomically (rename(2)).
    Allowed,
    /// The rename fails with `EEXIST` if the new name exists (`RENAME_NOREPLACE`).
    Refused,
}

/// New directories are accessible to their owner only, until the transfer sets their final mode.
const PRIVATE_DIR: Mode = Mode::RWXU;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Flags for opening a file of unknown type. With them, opening a FIFO without a writer returns at
/// once, and opening a terminal does not make it the controlling terminal (open(2)).
const NONBLOCK_NOCTTY: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

impl Dir {
    /// Opens a directory that the local user named. Symbolic links in `path` are followed: the user
    /// chose them. Fails if `path` is not a directory or may not be searched.
    pub fn open(path: &Path) -> Result<Self, FsError> {
        let open = |flags| fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let fd = search(open)
            .map_err(|errno| FsError::new("open", path.as_os_str().as_bytes(), errno))?;
        let resolve = Resolve::probe(fd.as_fd());
        Ok(Self { fd, resolve })
    }

    /// The same directory with another method of name lookup. Tests use it to cover both methods.
    #[must_use]
    pub fn with_resolve(self, resolve: Resolve) -> Self {
        Self { resolve, ..self }
    }

    /// The method of name lookup in use.
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

    /// Opens a directory beneath this one.
    pub fn dir(&self, path: &PeerPath) -> Result<Self, FsError> {
        let open = |flags| self.resolve.open(self.fd.as_fd(), path, flags, Mode::empty());
        let fd = search(open).map_err(|errno| FsError::new("open", path.as_bytes(), errno))?;
        Ok(Self { fd, resolve: self.resolve })
    }

    /// Opens the directory that holds `path`, and returns it with the last name of `path`.
    pub fn parent(&self, path: &PeerPath) -> Result<(Self, Name), FsError> {
        let dir = match path.parent() {
            Some(parent) => self.dir(&parent)?,
            None => self.again()?,
        };
        Ok((dir, path.name()))
    }

    /// Duplicates the descriptor (`F_DUPFD_CLOEXEC`, fcntl(2)).
    pub fn again(&self) -> Result<Self, FsError> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)
            .map_err(|errno| FsError::new("keep open", b".", errno))?;
        Ok(Self { fd, resolve: self.resolve })
    }

    /// Opens a file for reading. It may be a FIFO, a device or a directory, so the caller checks
    /// its [`Meta`] before reading.
    pub fn read(&self, path: &PeerPath) -> Result<File, FsError> {
        self.lookup("read", path, OFlags::RDONLY | NONBLOCK_NOCTTY, Mode::empty()).map(File::from)
    }

    /// Opens an existing file for reading and writing. It may be of any type; the caller checks its
    /// [`Meta`].
    pub fn write(&self, path: &PeerPath) -> Result<File, FsError> {
        self.lookup("write", path, OFlags::RDWR | NONBLOCK_NOCTTY, Mode::empty()).map(File::from)
    }

    /// Whether `name` is a regular file that this process may write to, by its effective ids.
    pub fn may_write(&self, name: &Name) -> bool {
        self.meta(name).is_ok_and(|meta| meta.is_some_and(|meta| meta.kind == Kind::File))
            && fs::accessat(&self.fd, name.as_os_str(), fs::Access::WRITE_OK, AtFlags::EACCESS)
                .is_ok()
    }

    /// Creates a file of mode 0600 for reading and writing. Fails with `EEXIST` if the name exists.
    pub fn create(&self, name: &Name) -> Result<File, FsError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.lookup("create", &name.clone().into(), flags, PRIVATE_FILE).map(File::from)
    }

    /// Creates a directory of mode 0700, or opens the existing one of that name.
    pub fn make_dir(&self, name: &Name) -> Result<Self, FsError> {
        match self.make_new_dir(name) {
            Err(error) if error.errno() == Some(Errno::EXIST) => self.dir(&name.clone().into()),
            made => made,
        }
    }

    /// Creates a symbolic link with the text `target`. The text is stored verbatim and not checked,
    /// because this crate never follows a link beneath a [`Dir`].
    pub fn make_link(&self, name: &Name, target: &[u8]) -> Result<(), FsError> {
        fs::symlinkat(OsStr::from_bytes(target), &self.fd, name.as_os_str())
            .map_err(|errno| FsError::new("make the link", name.as_bytes(), errno))
    }

    /// Makes `name` a symbolic link to `target`, replacing an existing file or link atomically. The
    /// link is created under a temporary name with `token` in it and then renamed. On failure, as
    /// with an existing directory, device, FIFO or socket of that name, the old entry is unchanged.
    pub fn put_link(&self, name: &Name, target: &[u8], token: &Token) -> Result<(), FsError> {
        if self.meta(name)?.is_some_and(|found| found.kind == Kind::Special) {
            return Err(FsError::is_special(name.as_bytes()));
        }
        let partial = token.partial(name)?;
        self.make_link(&partial, target).map_err(|error| error.about(name.as_bytes()))?;
        let renamed = self.rename(&partial, self, name, Replace::Allowed);
        if renamed.is_err() {
            // Best effort: another process may have removed the temporary link already.
            let _ = self.remove_file(&partial);
        }
        renamed
    }

    /// Reads the target text of a symbolic link.
    pub fn read_link(&self, name: &Name) -> Result<Vec<u8>, FsError> {
        fs::readlinkat(&self.fd, name.as_os_str(), Vec::new())
            .map(std::ffi::CString::into_bytes)
            .map_err(|errno| FsError::new("read the link", name.as_bytes(), errno))
    }

    /// Renames the file `from` in this directory to `name` in `to`. A symbolic link under either
    /// name is itself renamed or replaced, never followed.
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

    /// Removes a file or link. Fails if the name is a directory.
    pub fn remove_file(&self, name: &Name) -> Result<(), FsError> {
        fs::unlinkat(&self.fd, name.as_os_str(), AtFlags::empty())
            .map_err(|errno| FsError::new("remove", name.as_bytes(), errno))
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &Name) -> Result<(), FsError> {
        fs::unlinkat(&self.fd, name.as_os_str(), AtFlags::REMOVEDIR)
            .map_err(|errno| FsError::new("remove the directory", name.as_bytes(), errno))
    }

    /// Reads the metadata of a name in this directory without following a link; `None` if the name
    /// does not exist.
    pub fn meta(&self, name: &Name) -> Result<Option<Meta>, FsError> {
        match fs::statat(&self.fd, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Meta::new(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FsError::new("look at", name.as_bytes(), errno)),
        }
    }

    /// Makes the creation, renaming and removal of names in this directory durable (fsync(2)).
    pub fn sync(&self) -> Result<(), FsError> {
        match sync(&self.fd) {
            // Some file systems cannot sync a directory (`EINVAL`). A directory without read
            // permission was opened with `O_PATH`, which cannot be synced (`EBADF`).
            Ok(()) | Err(Errno::INVAL | Errno::BADF) => Ok(()),
            Err(errno) => Err(FsError::new("sync the directory", b".", errno)),
        }
    }
}

/// Opens a directory for reading its entries. Without read permission it is opened with `O_PATH`,
/// where the system has that, which is enough to reach names in it.
fn search(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(OFlags::RDONLY | OFlags::DIRECTORY) {
        Err(Errno::ACCESS) => open(SEARCH | OFlags::DIRECTORY),
        opened => opened,
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests;
