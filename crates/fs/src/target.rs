//! What a path that the local user wrote means as the place of one file.
//!
//! Every program that writes to a path of the user's asks here, so that all treat the same target alike. A regular file is
//! replaced by a rename, and so a device, FIFO or socket must never be taken for one: the rename would destroy it. Links
//! are followed by the kernel, which obeys `fs.protected_symlinks` (proc_sys_fs(5)); readlink(2) alone would not.

mod place;

use crate::descriptor::{descriptor_number, open_descriptor};
use crate::dir::{Dir, Meta};
use crate::error::FsError;
use crate::path::Name;
use crate::stream::{Patience, Stream};
use rustix::fs::{FileType, stat};
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

pub use place::FilePlace;

/// What has the path, links followed.
#[derive(Debug)]
pub enum Target {
    /// A directory.
    Dir,
    /// A regular file, or nothing: a complete file gets this name.
    Name(Spot),
    /// An open descriptor, a FIFO or a device, which is written into.
    Stream(Device),
}

/// A name in a directory.
#[derive(Debug)]
pub struct Spot {
    /// The directory.
    pub dir: Dir,
    /// The directory as a path.
    pub path: PathBuf,
    /// The name in it. A regular file or nothing has it, or a link that leads nowhere.
    pub name: Name,
    /// Whether the user wrote a slash behind the name: only a directory may be made.
    pub must_be_dir: bool,
}

/// What the local user named and takes bytes in order only.
#[derive(Debug)]
pub enum Device {
    /// A descriptor of this process that is open already, such as `/dev/stdout`.
    Descriptor(u32),
    /// A FIFO: its path and its device and inode number.
    Fifo(PathBuf, (u64, u64)),
    /// A character or block device, in the same way.
    Device(PathBuf, (u64, u64)),
}

impl Target {
    /// Looks at `path`.
    ///
    /// # Errors
    ///
    /// Its directory does not exist, it cannot be looked at, or it is a socket, which nothing can be written into.
    pub fn of(path: &Path) -> Result<Self, FsError> {
        let bytes = path.as_os_str().as_bytes();
        if let Some(number) = descriptor_number(path) {
            return Ok(Self::Stream(Device::Descriptor(number)));
        }
        let stat = match stat(path) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Spot::of(path).map(Self::Name),
            Err(errno) => return Err(FsError::new("look at", bytes, errno)),
        };
        let identity = Meta::new(&stat).identity;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Self::Dir),
            FileType::RegularFile => Spot::of_file(path, identity).map(Self::Name),
            FileType::Fifo => Ok(Self::Stream(Device::Fifo(path.to_owned(), identity))),
            FileType::CharacterDevice | FileType::BlockDevice => {
                Ok(Self::Stream(Device::Device(path.to_owned(), identity)))
            }
            _ => Err(FsError::is_special(bytes)),
        }
    }
}

impl Spot {
    /// The last name of `path`, whatever has it.
    ///
    /// # Errors
    ///
    /// The path does not end in a name, or its directory cannot be opened.
    pub fn of(path: &Path) -> Result<Self, FsError> {
        let bytes = path.as_os_str().as_bytes();
        let last = match path.components().next_back() {
            Some(Component::Normal(name)) => name.as_bytes(),
            _ => bytes,
        };
        let name = Name::new(last).map_err(|error| FsError::bad_path(bytes, error))?;
        let above = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let must_be_dir = bytes.ends_with(b"/");
        Ok(Self { dir: Dir::open(&above)?, path: above, name, must_be_dir })
    }

    /// Whether something has the name.
    ///
    /// # Errors
    ///
    /// It cannot be looked at.
    pub fn is_taken(&self) -> Result<bool, FsError> {
        Ok(self.dir.meta(&self.name)?.is_some())
    }

    /// The regular file with this `identity` at `path`: a file behind a link is the target, and not the link.
    fn of_file(path: &Path, identity: (u64, u64)) -> Result<Self, FsError> {
        let bytes = path.as_os_str().as_bytes();
        let look = |error| FsError::io("look at", bytes, &error);
        let spot = match std::fs::symlink_metadata(path).map_err(look)?.is_symlink() {
            true => Self::of(&std::fs::canonicalize(path).map_err(look)?)?,
            false => Self::of(path)?,
        };
        // In a directory of several users somebody may have put something else there meanwhile.
        match spot.dir.meta(&spot.name)? {
            Some(found) if found.identity != identity => Err(FsError::exchanged(bytes)),
            _ => Ok(spot),
        }
    }
}

impl Device {
    /// Opens it to write to it. A FIFO is waited for until it has a reader, as long as `patience` has it.
    ///
    /// # Errors
    ///
    /// It cannot be opened, something else has its name by now, or `patience` has come to its end.
    pub fn open(&self, patience: Patience) -> Result<Stream, FsError> {
        let (path, identity, opened) = match self {
            Self::Descriptor(number) => {
                let path = format!("/dev/fd/{number}");
                let file = open_descriptor(*number);
                let file = file.map_err(|error| FsError::io("open", path.as_bytes(), &error))?;
                return Ok(Stream::of(file));
            }
            Self::Fifo(path, identity) => (path, identity, Stream::open_fifo(path, patience)),
            Self::Device(path, identity) => (path, identity, Stream::open_device(path)),
        };
        let bytes = path.as_os_str().as_bytes();
        let stream = opened.map_err(|errno| FsError::new("open", bytes, errno))?;
        match Meta::of(stream.file())?.identity == *identity {
            true => Ok(stream),
            false => Err(FsError::exchanged(bytes)),
        }
    }
}

#[cfg(test)]
mod tests;
