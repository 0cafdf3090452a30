//! What is known of a file, and what it is given.

use crate::error::FsError;
use rustix::fs::{self, FileType, Mode, Stat, Timespec, Timestamps};
use std::os::fd::AsFd;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Bytes.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl Kind {
    pub(super) const fn new(kind: FileType) -> Option<Self> {
        match kind {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Dir),
            FileType::Symlink => Some(Self::Link),
            FileType::Unknown => None,
            _ => Some(Self::Special),
        }
    }
}

/// What the system says of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Bytes, as far as it is a file.
    pub size: u64,
    /// Permission bits, with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// When it was last written, seconds since 1970 and nanoseconds.
    pub modified: (i64, u32),
    /// When anything about it last changed: who writes and sets the time back is found out by it.
    pub changed: (i64, u32),
    /// Device and inode: which file it is.
    pub identity: (u64, u64),
    /// 512-byte blocks in use; fewer than the size needs means holes.
    pub blocks: u64,
}

/// The bits that a peer may set. What gives a program its owner's rights is dropped (T24).
const PERMISSIONS: u32 = 0o777;

impl Meta {
    // The widths of these fields differ between architectures.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    pub(super) fn new(stat: &Stat) -> Self {
        let kind = Kind::new(FileType::from_raw_mode(stat.st_mode)).unwrap_or(Kind::Special);
        Self {
            kind,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode as u32 & 0o7777,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
        }
    }

    /// Of an open file.
    pub fn of(file: impl AsFd) -> Result<Self, FsError> {
        fs::fstat(file)
            .map(|stat| Self::new(&stat))
            .map_err(|errno| FsError::new("look at", b"an open file", errno))
    }

    /// Whether the file at hand is still the one, with the content, that `self` was taken of.
    pub fn is_unchanged(&self, now: &Self) -> bool {
        (self.identity, self.size, self.modified, self.changed)
            == (now.identity, now.size, now.modified, now.changed)
    }

    /// Gives an open file permission bits.
    pub fn set_mode(file: impl AsFd, mode: u32) -> Result<(), FsError> {
        let mode = Mode::from_bits_truncate(mode & PERMISSIONS);
        fs::fchmod(file, mode)
            .map_err(|errno| FsError::new("set the mode of", b"an open file", errno))
    }

    /// Gives an open file the time of its last writing.
    pub fn set_modified(file: impl AsFd, (seconds, nanos): (i64, u32)) -> Result<(), FsError> {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanos.min(999_999_999).into() };
        let times = Timestamps { last_access: time, last_modification: time };
        fs::futimens(file, &times)
            .map_err(|errno| FsError::new("set the time of", b"an open file", errno))
    }
}
