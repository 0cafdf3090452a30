//! Opens a relative path beneath a directory, without leaving that directory and without following
//! a symbolic link.

use crate::path::PeerPath;
use crate::system::{SEARCH, open_beneath};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// The method of name lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolve {
    /// `openat2` (Linux 5.6): the kernel resolves the whole path in one call and refuses symbolic
    /// links.
    Kernel,
    /// One `openat` with `O_NOFOLLOW` a component, for kernels before 5.6, sandboxes that forbid
    /// `openat2`, and other systems.
    Stepwise,
}

/// The longest path that one system call accepts, in bytes: `PATH_MAX` less the final NUL.
const PATH_BYTES_MAX: usize = 4095;
/// `openat2` returns `EAGAIN` when it races with a rename (openat2(2)). It is then repeated this
/// many times at most.
const OPENAT2_RETRIES_MAX: usize = 64;

const OPEN_DIR_FLAGS: OFlags =
    SEARCH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Resolve {
    /// Finds out by one call whether `openat2` works here.
    pub(super) fn probe(root: BorrowedFd<'_>) -> Self {
        match kernel(root, b".", OPEN_DIR_FLAGS, Mode::empty()) {
            Ok(_) => Self::Kernel,
            Err(_) => Self::Stepwise,
        }
    }

    /// Opens `path` beneath `root`. A symbolic link at any component fails with `ELOOP` or `EXDEV`.
    pub(super) fn open(
        self,
        root: BorrowedFd<'_>,
        path: &PeerPath,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match self {
            Self::Kernel => in_parts(
                root,
                path.as_bytes(),
                |from, dir| kernel(from, dir, OPEN_DIR_FLAGS, Mode::empty()),
                |from, last| kernel(from, last, flags, mode),
            ),
            Self::Stepwise => stepwise(root, path, flags, mode),
        }
    }
}

fn kernel(root: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut tries = 0;
    loop {
        match open_beneath(root, OsStr::from_bytes(path), flags, mode) {
            Err(Errno::AGAIN | Errno::INTR) if tries < OPENAT2_RETRIES_MAX => tries += 1,
            other => return other,
        }
    }
}

/// Opens `path` beneath `root`. A path longer than [`PATH_BYTES_MAX`] is opened in parts, each relative to the descriptor of
/// the part before: the directories by `open_dir`, the last part by `open`.
pub(super) fn in_parts(
    root: BorrowedFd<'_>,
    path: &[u8],
    open_dir: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<OwnedFd, Errno>,
    open: impl FnOnce(BorrowedFd<'_>, &[u8]) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let mut held: Option<OwnedFd> = None;
    let mut rest = path;
    while rest.len() > PATH_BYTES_MAX {
        // A name has at most 255 bytes, so these bytes contain a slash.
        let cut = rest[..PATH_BYTES_MAX]
            .iter()
            .rposition(|&byte| byte == b'/')
            .ok_or(Errno::NAMETOOLONG)?;
        let next = open_dir(held.as_ref().map_or(root, AsFd::as_fd), &rest[..cut])?;
        held = Some(next);
        rest = &rest[cut + 1..];
    }
    open(held.as_ref().map_or(root, AsFd::as_fd), rest)
}

fn stepwise(
    root: BorrowedFd<'_>,
    path: &PeerPath,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let mut names = path.names();
    let last = OsStr::from_bytes(names.next_back().unwrap_or_default());
    let mut held: Option<OwnedFd> = None;
    for name in names {
        let from = held.as_ref().map_or(root, AsFd::as_fd);
        let step = fs::openat(from, OsStr::from_bytes(name), OPEN_DIR_FLAGS, Mode::empty());
        // `O_DIRECTORY` with `O_NOFOLLOW` returns `ENOTDIR` for a symbolic link as well.
        let next = step.map_err(|errno| link_as_eloop(from, name, errno))?;
        held = Some(next);
    }
    fs::openat(held.as_ref().map_or(root, AsFd::as_fd), last, flags, mode)
}

fn link_as_eloop(dir: BorrowedFd<'_>, name: &[u8], errno: Errno) -> Errno {
    let is_link = errno == Errno::NOTDIR
        && fs::statat(dir, OsStr::from_bytes(name), fs::AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| fs::FileType::from_raw_mode(stat.st_mode).is_symlink());
    if is_link { Errno::LOOP } else { errno }
}
