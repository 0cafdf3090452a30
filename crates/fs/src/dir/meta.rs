//! Metadata of a file: reading and setting it.

use super::Dir;
use crate::error::FsError;
use crate::path::Name;
use rustix::fs::{self, AtFlags, FileType, Gid, Mode, RawMode, Stat, Timespec, Timestamps, Uid};
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

/// The type of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl Kind {
    pub(crate) const fn new(kind: FileType) -> Option<Self> {
        match kind {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Dir),
            FileType::Symlink => Some(Self::Link),
            FileType::Unknown => None,
            _ => Some(Self::Special),
        }
    }
}

/// The metadata of a file as stat(2) reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// Its type.
    pub kind: Kind,
    /// Its size in bytes. Meaningful for regular files only.
    pub size: u64,
    /// Permission bits with set-user-id, set-group-id and sticky bit: the lower 12 bits of
    /// `st_mode`.
    pub mode: u32,
    /// Time of last modification: seconds since 1970 and nanoseconds.
    pub modified: (i64, u32),
    /// Time of last status change, in the same form. It reveals a writer that has restored the
    /// modification time, because no call can set this one.
    pub changed: (i64, u32),
    /// Device and inode number. Together they identify the file.
    pub identity: (u64, u64),
    /// Its owner.
    pub owner: Owner,
    /// Allocated blocks of 512 bytes. Fewer than the size needs means that the file has holes.
    pub blocks: u64,
}

/// The owner of a file, as numeric ids of the machine that holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

impl Owner {
    /// The ids for chown(2). The id `u32::MAX` is -1 to the kernel, which leaves that id unchanged.
    fn ids(self) -> (Option<Uid>, Option<Gid>) {
        let (user, group) =
            [self.user, self.group].map(|id| Some(id).filter(|id| *id != u32::MAX)).into();
        (user.map(Uid::from_raw), group.map(Gid::from_raw))
    }
}

/// The permission bits that a peer may set. Set-user-id and set-group-id are dropped: they would let a peer install a
/// program with its owner's rights.
const PERMISSIONS: u32 = 0o777;
/// The sticky bit. Of a directory it is a peer's to set: without it, what is in a shared directory is everybody's to remove.
const STICKY_BIT: u32 = 0o1000;
/// The set-group-id bit.
const SET_GROUP_ID_BIT: u32 = 0o2000;

/// Mode bits as fchmod(2) takes them. Their type differs between systems.
#[allow(clippy::unnecessary_cast)]
fn mode_of(bits: u32) -> Mode {
    Mode::from_bits_truncate(bits as RawMode)
}

/// What is said of a source that is not [the same](Meta::is_unchanged) at its end as it was at its beginning.
pub const CHANGED: &str =
    "changed while it was read; run the same command again when nobody writes to it";

impl From<&Metadata> for Meta {
    fn from(meta: &Metadata) -> Self {
        let nanos = |nanos: i64| u32::try_from(nanos).unwrap_or(0);
        Self {
            kind: Kind::new(FileType::from_raw_mode(meta.mode() as RawMode))
                .unwrap_or(Kind::Special),
            size: meta.size(),
            mode: meta.mode() & 0o7777,
            modified: (meta.mtime(), nanos(meta.mtime_nsec())),
            changed: (meta.ctime(), nanos(meta.ctime_nsec())),
            identity: (meta.dev(), meta.ino()),
            owner: Owner { user: meta.uid(), group: meta.gid() },
            blocks: meta.blocks(),
        }
    }
}

impl Meta {
    // The types of these fields differ between architectures.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    pub(crate) fn new(stat: &Stat) -> Self {
        let kind = Kind::new(FileType::from_raw_mode(stat.st_mode)).unwrap_or(Kind::Special);
        Self {
            kind,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode as u32 & 0o7777,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            owner: Owner { user: stat.st_uid as u32, group: stat.st_gid as u32 },
            blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
        }
    }

    /// Reads the metadata of an open file.
    pub fn of(file: impl AsFd) -> Result<Self, FsError> {
        fs::fstat(file)
            .map(|stat| Self::new(&stat))
            .map_err(|errno| FsError::new("look at", b"an open file", errno))
    }

    /// Whether `now` describes the same file with the same content: identity, size, modification
    /// time and change time are equal.
    pub fn is_unchanged(&self, now: &Self) -> bool {
        (self.identity, self.size, self.modified, self.changed)
            == (now.identity, now.size, now.modified, now.changed)
    }

    /// A fingerprint of this content of this file: device, inode, size, modification time (seconds,
    /// nanoseconds) and change time (seconds, nanoseconds).
    pub fn version(&self) -> [u64; 7] {
        let ((device, inode), size) = (self.identity, self.size);
        let ((modified, nanos), (changed, more_nanos)) = (self.modified, self.changed);
        let times = [modified as u64, nanos.into(), changed as u64, more_nanos.into()];
        [device, inode, size, times[0], times[1], times[2], times[3]]
    }

    /// Sets the permission bits and the sticky bit of an open directory. A set-group-id bit that it already has is
    /// kept: in a shared directory it passes the group on to new files (inode(7)).
    pub fn set_dir_mode(dir: impl AsFd, mode: u32) -> Result<(), FsError> {
        let inherited = Self::of(&dir)?.mode & SET_GROUP_ID_BIT;
        let mode = mode_of(mode & (PERMISSIONS | STICKY_BIT) | inherited);
        fs::fchmod(dir, mode).map_err(|errno| FsError::new("set the mode", b".", errno))
    }

    /// Sets the permission bits of an open file. Other mode bits are cleared.
    pub fn set_mode(file: impl AsFd, mode: u32) -> Result<(), FsError> {
        let mode = mode_of(mode & PERMISSIONS);
        fs::fchmod(file, mode).map_err(|errno| FsError::new("set the mode", b"an open file", errno))
    }

    /// Sets all twelve permission bits of an open file or directory, also those that grant the rights of its owner.
    pub fn set_all_bits(file: impl AsFd, mode: u32) -> Result<(), FsError> {
        fs::fchmod(file, mode_of(mode & 0o7777))
            .map_err(|errno| FsError::new("set the mode", b"an open file", errno))
    }

    /// Sets access and modification time of an open file.
    pub fn set_modified(file: impl AsFd, modified: (i64, u32)) -> Result<(), FsError> {
        fs::futimens(file, &times(modified))
            .map_err(|errno| FsError::new("set the time", b"an open file", errno))
    }

    /// Sets the owner of an open file. chown(2) clears set-user-id and set-group-id, so callers set
    /// the mode afterwards.
    pub fn set_owner(file: impl AsFd, owner: Owner) -> Result<(), FsError> {
        let (user, group) = owner.ids();
        fs::fchown(file, user, group)
            .map_err(|errno| FsError::new("set the owner", b"an open file", errno))
    }

    /// Sets access and modification time of the symbolic link `name` in `dir`, not of its target.
    pub fn set_link_modified(dir: &Dir, name: &Name, modified: (i64, u32)) -> Result<(), FsError> {
        fs::utimensat(&dir.fd, name.as_os_str(), &times(modified), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| FsError::new("set the time", name.as_bytes(), errno))
    }

    /// Sets the owner of the symbolic link `name` in `dir`, not of its target.
    pub fn set_link_owner(dir: &Dir, name: &Name, owner: Owner) -> Result<(), FsError> {
        let (user, group) = owner.ids();
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        fs::chownat(&dir.fd, name.as_os_str(), user, group, flags)
            .map_err(|errno| FsError::new("set the owner", name.as_bytes(), errno))
    }
}

fn times((seconds, nanos): (i64, u32)) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanos.min(999_999_999).into() };
    Timestamps { last_access: time, last_modification: time }
}
