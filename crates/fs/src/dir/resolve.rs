//! From a path of names to a descriptor, without leaving a directory and without passing a link.

use crate::path::PeerPath;
use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Who looks names up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolve {
    /// The kernel, the whole path in one call that refuses links.
    Kernel,
    /// This crate, a name at a time: for kernels before 5.6 and sandboxes without `openat2`.
    Stepwise,
}

/// What one call takes.
const MAX_PATH: usize = 4095;
/// A lookup that races with a rename is told to try again.
const RETRIES: usize = 64;

const STEP: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Resolve {
    /// What this system can.
    pub(super) fn probe(root: BorrowedFd<'_>) -> Self {
        match kernel(root, b".", STEP, Mode::empty()) {
            Ok(_) => Self::Kernel,
            Err(_) => Self::Stepwise,
        }
    }

    /// Opens `path` beneath `root`.
    pub(super) fn open(
        self,
        root: BorrowedFd<'_>,
        path: &PeerPath,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match self {
            Self::Kernel => by_kernel(root, path.as_bytes(), flags, mode),
            Self::Stepwise => stepwise(root, path, flags, mode),
        }
    }
}

fn kernel(root: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match fs::openat2(root, OsStr::from_bytes(path), flags, mode, how) {
            Err(Errno::AGAIN | Errno::INTR) if tries < RETRIES => tries += 1,
            other => return other,
        }
    }
}

/// A path longer than one call takes goes in parts, each beneath the last.
fn by_kernel(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let mut held: Option<OwnedFd> = None;
    let mut rest = path;
    while rest.len() > MAX_PATH {
        // A name has at most 255 bytes, so there is a slash.
        let cut =
            rest[..MAX_PATH].iter().rposition(|&byte| byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let from = held.as_ref().map_or(root, AsFd::as_fd);
        let next = kernel(from, &rest[..cut], STEP, Mode::empty())?;
        held = Some(next);
        rest = &rest[cut + 1..];
    }
    kernel(held.as_ref().map_or(root, AsFd::as_fd), rest, flags, mode)
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
        let step = fs::openat(from, OsStr::from_bytes(name), STEP, Mode::empty());
        // For a link as a directory the kernel says "not a directory".
        let next = step.map_err(|errno| told_apart(from, name, errno))?;
        held = Some(next);
    }
    fs::openat(held.as_ref().map_or(root, AsFd::as_fd), last, flags, mode)
}

fn told_apart(dir: BorrowedFd<'_>, name: &[u8], errno: Errno) -> Errno {
    let is_link = errno == Errno::NOTDIR
        && fs::statat(dir, OsStr::from_bytes(name), fs::AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| fs::FileType::from_raw_mode(stat.st_mode).is_symlink());
    if is_link { Errno::LOOP } else { errno }
}
