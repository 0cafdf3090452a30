//! What stands for the system calls of Linux elsewhere, such as on macOS.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Opens a directory of which only names are used. It must be readable here.
pub(crate) const SEARCH: OFlags = OFlags::RDONLY;
/// The error for an extended attribute that is not there.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NODATA;

/// There is no such call: each component is opened by itself.
pub(crate) fn open_beneath(
    _root: BorrowedFd<'_>,
    _path: &OsStr,
    _flags: OFlags,
    _mode: Mode,
) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Zeros are written in place of holes.
pub(crate) fn punch_hole(_file: impl AsFd, _range: Range<u64>) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Cached pages stay.
pub(crate) fn drop_cache(_file: impl AsFd) {}

/// Makes what was written to a file or directory durable. fsync(2) of macOS leaves it in the cache of
/// the drive, so `F_FULLFSYNC` (fcntl(2)) is asked for, which not every file system has.
#[cfg(target_vendor = "apple")]
pub(crate) fn sync(file: impl AsFd) -> Result<(), Errno> {
    match rustix::fs::fcntl_fullfsync(&file) {
        Err(Errno::NOTSUP | Errno::INVAL | Errno::NOTTY) => rustix::fs::fsync(file),
        synced => synced,
    }
}

#[cfg(not(target_vendor = "apple"))]
pub(crate) fn sync(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

/// Each file is synced by itself.
pub(crate) fn sync_file_system(_file: impl AsFd) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// No: [`sync_file_system`] is not there.
pub(crate) fn is_error_reporting(_dir: impl AsFd) -> bool {
    false
}

/// There are no such file systems.
pub(crate) fn is_sizeless(_file: impl AsFd) -> bool {
    false
}

/// Fills `bytes` from the kernel's random generator (random(4)).
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), Errno> {
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes));
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
