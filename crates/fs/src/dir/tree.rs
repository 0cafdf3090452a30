//! A source tree: read-only access to everything beneath a directory held open. Symbolic links in
//! it are either followed or reported as links; in the second mode no path passes through one, even
//! if another process exchanges a directory for a link meanwhile.
//!
//! Opening never blocks: a FIFO without a writer opens at once, and the caller tells it from a
//! regular file by its [`Meta`].

use super::resolve::in_parts;
use super::{Dir, Meta, NONBLOCK_NOCTTY};
use crate::error::FsError;
use crate::path::{Name, PeerPath};
use crate::system::SEARCH;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How symbolic links in a tree are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    /// A link is replaced by its target.
    Followed,
    /// A link is reported as a link, and no path passes through one.
    Kept,
}

/// The root of a tree to be read.
#[derive(Debug)]
pub struct Tree {
    dir: Dir,
    links: Links,
}

/// One open directory of a tree.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    links: Links,
}

/// The type of a file that is neither regular, nor a directory, nor a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

impl Tree {
    /// Opens the tree beneath a directory that the local user named. Symbolic links in `path`
    /// itself are always followed: the user chose them.
    pub fn open(path: &Path, links: Links) -> Result<Self, FsError> {
        Ok(Self { dir: Dir::open(path)?, links })
    }

    /// How its symbolic links are treated.
    pub const fn links(&self) -> Links {
        self.links
    }

    /// Opens a directory of the tree for listing; its root for `None`.
    pub fn folder(&self, path: Option<&PeerPath>) -> Result<Folder, FsError> {
        let about = path.map_or(&b"."[..], PeerPath::as_bytes);
        let open = |flags| match path {
            Some(path) => self.at(path, flags),
            None => fs::openat(&self.dir, ".", flags | OFlags::CLOEXEC, Mode::empty()),
        };
        let fd = super::search(open).map_err(|errno| FsError::new("open", about, errno))?;
        Ok(Folder { fd, links: self.links })
    }

    /// Opens a file of the tree for reading. It may be a FIFO, a device or a directory, so the
    /// caller checks its [`Meta`] before reading.
    pub fn file(&self, path: &PeerPath) -> Result<File, FsError> {
        let opened = self.at(path, OFlags::RDONLY | NONBLOCK_NOCTTY);
        opened.map(File::from).map_err(|errno| FsError::new("read", path.as_bytes(), errno))
    }

    /// Reads the metadata of a path in the tree: of a link itself under [`Links::Kept`], of its
    /// target under [`Links::Followed`].
    pub fn look(&self, path: &PeerPath) -> Result<Meta, FsError> {
        let folder = self.folder(path.parent().as_ref());
        folder.and_then(|folder| folder.look(&path.name())).map_err(|e| e.about(path.as_bytes()))
    }

    fn at(&self, path: &PeerPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self.links {
            Links::Kept => self.dir.resolve.open(self.dir.as_fd(), path, flags, Mode::empty()),
            Links::Followed => follow(self.dir.as_fd(), path.as_bytes(), flags),
        }
    }
}

/// Opens a path whose links are followed.
fn follow(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let open = |from: BorrowedFd<'_>, path: &[u8], flags| {
        fs::openat(from, OsStr::from_bytes(path), flags | OFlags::CLOEXEC, Mode::empty())
    };
    in_parts(
        root,
        path,
        |from, dir| open(from, dir, SEARCH | OFlags::DIRECTORY),
        |from, last| open(from, last, flags),
    )
}

impl Folder {
    /// Lists all names, sorted, with the count of further entries whose names [`Name`] refuses.
    pub fn names(&self) -> Result<(Vec<Name>, usize), FsError> {
        let fail = |errno| FsError::new("list", b".", errno);
        let (mut names, mut odd) = (Vec::new(), 0);
        for entry in fs::Dir::read_from(self).map_err(fail)? {
            match Name::new(entry.map_err(fail)?.file_name().to_bytes()) {
                Ok(name) => names.push(name),
                // The entries `.` and `..` are not counted.
                Err(crate::PathError::Dots(_)) => {}
                Err(_) => odd += 1,
            }
        }
        names.sort_unstable();
        Ok((names, odd))
    }

    /// Reads the metadata of a name in this directory: of a link itself under [`Links::Kept`], of
    /// its target under [`Links::Followed`].
    pub fn look(&self, name: &Name) -> Result<Meta, FsError> {
        self.stat(name).map(|stat| Meta::new(&stat))
    }

    /// The type of a special file; `None` for a regular file, a directory or a link.
    pub fn special(&self, name: &Name) -> Result<Option<Special>, FsError> {
        Ok(match FileType::from_raw_mode(self.stat(name)?.st_mode) {
            FileType::Fifo => Some(Special::Fifo),
            FileType::Socket => Some(Special::Socket),
            FileType::CharacterDevice | FileType::BlockDevice => Some(Special::Device),
            _ => None,
        })
    }

    fn stat(&self, name: &Name) -> Result<fs::Stat, FsError> {
        let flags = match self.links {
            Links::Followed => AtFlags::empty(),
            Links::Kept => AtFlags::SYMLINK_NOFOLLOW,
        };
        fs::statat(&self.fd, name.as_os_str(), flags)
            .map_err(|errno| FsError::new("look at", name.as_bytes(), errno))
    }

    /// Reads the target text of a symbolic link.
    pub fn read_link(&self, name: &Name) -> Result<Vec<u8>, FsError> {
        fs::readlinkat(&self.fd, name.as_os_str(), Vec::new())
            .map(std::ffi::CString::into_bytes)
            .map_err(|errno| FsError::new("read the link", name.as_bytes(), errno))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_or_reported_as_links() {
        let scratch = std::env::temp_dir().join(format!("hikyaku-tree-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(scratch.join("t/dir")).unwrap();
        std::fs::create_dir_all(scratch.join("aside")).unwrap();
        for file in ["t/dir/f", "aside/f"] {
            std::fs::write(scratch.join(file), file).unwrap();
        }
        symlink("../aside", scratch.join("t/away")).unwrap();
        symlink("dir/f", scratch.join("t/link")).unwrap();
        let path = |text: &str| PeerPath::new(text.as_bytes()).unwrap();
        let read = |tree: &Tree, at: &str| {
            tree.file(&path(at)).map(|file| std::io::read_to_string(file).unwrap())
        };
        let kept = Tree::open(&scratch.join("t"), Links::Kept).unwrap();
        assert_eq!(read(&kept, "dir/f").unwrap(), "t/dir/f");
        assert_eq!(kept.look(&path("link")).unwrap().kind, Kind::Link);
        let top = kept.folder(None).unwrap();
        assert_eq!(top.read_link(&path("link").name()).unwrap(), b"dir/f");
        for through in ["away/f", "link"] {
            assert!(matches!(kept.file(&path(through)), Err(FsError::Link { .. })), "{through}");
        }
        assert!(kept.folder(Some(&path("away"))).is_err());
        let followed = Tree::open(&scratch.join("t"), Links::Followed).unwrap();
        assert_eq!(read(&followed, "away/f").unwrap(), "aside/f");
        assert_eq!(followed.look(&path("link")).unwrap().kind, Kind::File);
        let (names, odd) = followed.folder(None).unwrap().names().unwrap();
        assert_eq!((names.len(), odd), (3, 0));
        std::fs::remove_dir_all(scratch).unwrap();
    }
}
