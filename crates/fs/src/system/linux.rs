//! System calls of Linux.

use rustix::fs::{
    Advice, FallocateFlags, Mode, OFlags, ResolveFlags, fadvise, fallocate, fstatfs, fsync,
    openat2, syncfs,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Opens a directory of which only names are used, which takes no permission to read it.
pub(crate) const SEARCH: OFlags = OFlags::PATH;
/// The error for an extended attribute that is not there.
pub(crate) const NO_ATTRIBUTE: Errno = Errno::NODATA;

/// Opens `path` beneath `root` in one call (openat2(2)). The kernel refuses symbolic links.
pub(crate) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, flags, mode, how)
}

/// Deallocates a range of a file; its length is unchanged (fallocate(2)).
pub(crate) fn punch_hole(file: impl AsFd, range: Range<u64>) -> Result<(), Errno> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(file, flags, range.start, range.end - range.start)
}

/// Asks the kernel to drop its cached pages of a file.
pub(crate) fn drop_cache(file: impl AsFd) {
    // posix_fadvise(2) is advice: a file system may ignore or refuse it, and the data is correct
    // either way.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
}

/// Makes what was written to a file or directory durable (fsync(2)).
pub(crate) fn sync(file: impl AsFd) -> Result<(), Errno> {
    fsync(file)
}

/// Writes everything on a file system to the disk (syncfs(2)).
pub(crate) fn sync_file_system(file: impl AsFd) -> Result<(), Errno> {
    syncfs(file)
}

/// The magic numbers (statfs(2)) of file systems that report write-back errors to `syncfs`: ext2 to
/// ext4, XFS and btrfs, and tmpfs, which has no disk to fail.
const ERROR_REPORTING_MAGICS: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

/// Whether [`sync_file_system`] reports write-back errors on the file system of a directory, if the
/// kernel is new enough.
pub(crate) fn is_error_reporting(dir: impl AsFd) -> bool {
    fstatfs(dir).is_ok_and(|found| ERROR_REPORTING_MAGICS.contains(&(found.f_type as u32)))
}

/// The magic numbers (statfs(2)) of file systems of the kernel's own, which make the content of a file when it is read and tell
/// its size as zero: proc, sysfs, debugfs, tracefs, cgroup and cgroup2, securityfs, configfs, selinuxfs, smackfs, fusectl,
/// nfsd, rpc_pipefs, binfmt_misc, mqueue, bpf, resctrl.
const SIZELESS_MAGICS: [u32; 17] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x0027_e0eb,
    0x6367_7270,
    0x7363_6673,
    0x6265_6570,
    0xf97c_ff8c,
    0x4341_5d53,
    0x6573_5543,
    0x6e66_7364,
    0x6759_6969,
    0x4249_4e4d,
    0x1980_0202,
    0xcafe_4a11,
    0x0765_5821,
];

/// Whether files of the file system of `file` may have content although their size is told as zero.
pub(crate) fn is_sizeless(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|found| SIZELESS_MAGICS.contains(&(found.f_type as u32)))
}

/// Fills `bytes` from the kernel's random generator.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), Errno> {
    getrandom(bytes, GetRandomFlags::empty()).map(drop)
}
