//! Calls to the kernel that the rigs know: what each is, and where in its arguments it says which file it means.

use nix::libc;
use std::fmt;
use std::str::FromStr;

/// What a call does, whichever of its names is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Call {
    /// Opens what is there.
    Open,
    /// Opens with leave to make it.
    Create,
    Read,
    Write,
    Fsync,
    Fdatasync,
    Syncfs,
    SyncRange,
    Fallocate,
    Truncate,
    Rename,
    Link,
    Symlink,
    Unlink,
    Mkdir,
    Chmod,
    Chown,
    Utimes,
    SetAttribute,
    Attributes,
    Stat,
    Statfs,
    List,
    ReadLink,
    Seek,
    CopyRange,
    Lock,
    Close,
}

/// Which arguments say what file is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// A descriptor.
    Descriptor(usize),
    /// A path, relative to the working directory.
    Path(usize),
    /// A path, relative to a descriptor; an empty one means the descriptor itself.
    At(usize, usize),
    /// Two paths.
    Paths(usize, usize),
    /// Two paths, each relative to a descriptor.
    Both((usize, usize), (usize, usize)),
}

/// A call by its number.
pub(crate) struct Row {
    pub(crate) number: i64,
    pub(crate) call: Call,
    pub(crate) which: Which,
}

const fn row(number: i64, call: Call, which: Which) -> Row {
    Row { number, call, which }
}

use Which::{At, Both, Descriptor, Path, Paths};

/// All of them. Kinds `Open` and `Create` are told apart by the flags.
pub(crate) const TABLE: &[Row] = &[
    row(libc::SYS_open, Call::Open, Path(0)),
    row(libc::SYS_creat, Call::Create, Path(0)),
    row(libc::SYS_openat, Call::Open, At(0, 1)),
    row(libc::SYS_openat2, Call::Open, At(0, 1)),
    row(libc::SYS_read, Call::Read, Descriptor(0)),
    row(libc::SYS_pread64, Call::Read, Descriptor(0)),
    row(libc::SYS_readv, Call::Read, Descriptor(0)),
    row(libc::SYS_preadv, Call::Read, Descriptor(0)),
    row(libc::SYS_preadv2, Call::Read, Descriptor(0)),
    row(libc::SYS_write, Call::Write, Descriptor(0)),
    row(libc::SYS_pwrite64, Call::Write, Descriptor(0)),
    row(libc::SYS_writev, Call::Write, Descriptor(0)),
    row(libc::SYS_pwritev, Call::Write, Descriptor(0)),
    row(libc::SYS_pwritev2, Call::Write, Descriptor(0)),
    row(libc::SYS_fsync, Call::Fsync, Descriptor(0)),
    row(libc::SYS_fdatasync, Call::Fdatasync, Descriptor(0)),
    row(libc::SYS_syncfs, Call::Syncfs, Descriptor(0)),
    row(libc::SYS_sync_file_range, Call::SyncRange, Descriptor(0)),
    row(libc::SYS_fallocate, Call::Fallocate, Descriptor(0)),
    row(libc::SYS_ftruncate, Call::Truncate, Descriptor(0)),
    row(libc::SYS_truncate, Call::Truncate, Path(0)),
    row(libc::SYS_rename, Call::Rename, Paths(0, 1)),
    row(libc::SYS_renameat, Call::Rename, Both((0, 1), (2, 3))),
    row(libc::SYS_renameat2, Call::Rename, Both((0, 1), (2, 3))),
    row(libc::SYS_link, Call::Link, Paths(0, 1)),
    row(libc::SYS_linkat, Call::Link, Both((0, 1), (2, 3))),
    row(libc::SYS_symlink, Call::Symlink, Path(1)),
    row(libc::SYS_symlinkat, Call::Symlink, At(1, 2)),
    row(libc::SYS_unlink, Call::Unlink, Path(0)),
    row(libc::SYS_rmdir, Call::Unlink, Path(0)),
    row(libc::SYS_unlinkat, Call::Unlink, At(0, 1)),
    row(libc::SYS_mkdir, Call::Mkdir, Path(0)),
    row(libc::SYS_mkdirat, Call::Mkdir, At(0, 1)),
    row(libc::SYS_chmod, Call::Chmod, Path(0)),
    row(libc::SYS_fchmod, Call::Chmod, Descriptor(0)),
    row(libc::SYS_fchmodat, Call::Chmod, At(0, 1)),
    row(libc::SYS_chown, Call::Chown, Path(0)),
    row(libc::SYS_lchown, Call::Chown, Path(0)),
    row(libc::SYS_fchown, Call::Chown, Descriptor(0)),
    row(libc::SYS_fchownat, Call::Chown, At(0, 1)),
    row(libc::SYS_utimensat, Call::Utimes, At(0, 1)),
    row(libc::SYS_setxattr, Call::SetAttribute, Path(0)),
    row(libc::SYS_lsetxattr, Call::SetAttribute, Path(0)),
    row(libc::SYS_fsetxattr, Call::SetAttribute, Descriptor(0)),
    row(libc::SYS_getxattr, Call::Attributes, Path(0)),
    row(libc::SYS_lgetxattr, Call::Attributes, Path(0)),
    row(libc::SYS_fgetxattr, Call::Attributes, Descriptor(0)),
    row(libc::SYS_listxattr, Call::Attributes, Path(0)),
    row(libc::SYS_llistxattr, Call::Attributes, Path(0)),
    row(libc::SYS_flistxattr, Call::Attributes, Descriptor(0)),
    row(libc::SYS_stat, Call::Stat, Path(0)),
    row(libc::SYS_lstat, Call::Stat, Path(0)),
    row(libc::SYS_fstat, Call::Stat, Descriptor(0)),
    row(libc::SYS_newfstatat, Call::Stat, At(0, 1)),
    row(libc::SYS_statx, Call::Stat, At(0, 1)),
    row(libc::SYS_statfs, Call::Statfs, Path(0)),
    row(libc::SYS_fstatfs, Call::Statfs, Descriptor(0)),
    row(libc::SYS_getdents64, Call::List, Descriptor(0)),
    row(libc::SYS_readlink, Call::ReadLink, Path(0)),
    row(libc::SYS_readlinkat, Call::ReadLink, At(0, 1)),
    row(libc::SYS_lseek, Call::Seek, Descriptor(0)),
    row(libc::SYS_copy_file_range, Call::CopyRange, Descriptor(2)),
    row(libc::SYS_sendfile, Call::CopyRange, Descriptor(0)),
    row(libc::SYS_flock, Call::Lock, Descriptor(0)),
    row(libc::SYS_close, Call::Close, Descriptor(0)),
];

/// Names as faults are written with.
const NAMES: &[(Call, &str)] = &[
    (Call::Open, "open"),
    (Call::Create, "create"),
    (Call::Read, "read"),
    (Call::Write, "write"),
    (Call::Fsync, "fsync"),
    (Call::Fdatasync, "fdatasync"),
    (Call::Syncfs, "syncfs"),
    (Call::SyncRange, "sync-range"),
    (Call::Fallocate, "fallocate"),
    (Call::Truncate, "truncate"),
    (Call::Rename, "rename"),
    (Call::Link, "link"),
    (Call::Symlink, "symlink"),
    (Call::Unlink, "unlink"),
    (Call::Mkdir, "mkdir"),
    (Call::Chmod, "chmod"),
    (Call::Chown, "chown"),
    (Call::Utimes, "utimes"),
    (Call::SetAttribute, "set-attribute"),
    (Call::Attributes, "attributes"),
    (Call::Stat, "stat"),
    (Call::Statfs, "statfs"),
    (Call::List, "list"),
    (Call::ReadLink, "readlink"),
    (Call::Seek, "seek"),
    (Call::CopyRange, "copy-range"),
    (Call::Lock, "lock"),
    (Call::Close, "close"),
];

impl Call {
    /// Whether it asks the disk to keep what was written.
    pub(crate) const fn is_sync(self) -> bool {
        matches!(self, Self::Fsync | Self::Fdatasync | Self::Syncfs | Self::SyncRange)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(call, _)| call == self).map_or("?", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Call {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let found = NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(call, _)| *call).ok_or_else(|| anyhow::anyhow!("{text}: no such call"))
    }
}
