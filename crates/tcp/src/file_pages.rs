//! Pages of a file in the kernel's cache, where the bytes of a download wait for the disk.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Pages of a file, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FilePages {
    /// In memory, whatever their state.
    pub cached: u64,
    /// Changed, and not on their way to the disk.
    pub dirty: u64,
    /// On their way to the disk.
    pub writeback: u64,
}

/// `cachestat` has this number on all architectures (asm-generic/unistd.h).
const CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range` (linux/mman.h).
#[repr(C)]
struct Range {
    offset: u64,
    /// 0: to the end of the file.
    length: u64,
}

/// `struct cachestat` (linux/mman.h), in pages.
#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The pages of a file. The caller owns the file, or may write to it.
///
/// # Errors
///
/// The kernel's, of cachestat(2): it does not have it before Linux 6.5 (`Unsupported`), or the file is not the caller's.
pub fn file_pages(file: impl AsFd) -> io::Result<FilePages> {
    let (range, mut counts) = (Range { offset: 0, length: 0 }, Counts::default());
    // SAFETY: cachestat(2) reads one `cachestat_range` and writes one `cachestat`, whose layouts `Range` and `Counts` have.
    // Both outlive the call, and any bytes are valid integers.
    let (result, page) = unsafe {
        let (fd, range, counts) =
            (file.as_fd().as_raw_fd(), ptr::from_ref(&range), ptr::from_mut(&mut counts));
        (libc::syscall(CACHESTAT, fd, range, counts, 0), libc::sysconf(libc::_SC_PAGESIZE))
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let bytes = |pages: u64| pages.saturating_mul(u64::try_from(page).unwrap_or_default());
    Ok(FilePages {
        cached: bytes(counts.cached),
        dirty: bytes(counts.dirty),
        writeback: bytes(counts.writeback),
    })
}

/// Starts to write the dirty pages of a range of a file to the disk, and does not wait for the end of it. A descriptor that
/// is open for reading is enough. It waits if the disk's queue is full.
///
/// # Errors
///
/// The kernel's, of sync_file_range(2).
pub fn start_write_back(file: impl AsFd, offset: u64, length: u64) -> io::Result<()> {
    let bad = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let (offset, length) =
        (i64::try_from(offset).map_err(bad)?, i64::try_from(length).map_err(bad)?);
    // SAFETY: sync_file_range(2) takes numbers only.
    let result = unsafe {
        let fd = file.as_fd().as_raw_fd();
        libc::sync_file_range(fd, offset, length, libc::SYNC_FILE_RANGE_WRITE)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FsWord, fstatfs};
    use std::fs::{self, File};
    use std::io::Write;

    /// `OVERLAYFS_SUPER_MAGIC` (linux/magic.h).
    const OVERLAYFS_MAGIC: FsWord = 0x794c_7630;

    /// On a file system with a disk behind it, where pages are dirty until they are written.
    #[test]
    fn pages_are_counted_and_written_through_a_descriptor_for_reading() {
        let folder = std::env::var_os("CARGO_TARGET_TMPDIR").map_or_else(
            || std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"),
            Into::into,
        );
        let path = folder.join(format!("hikyaku-pages-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; 8 << 20]).unwrap();
        let seen = File::open(&path).unwrap();
        fs::remove_file(path).unwrap();
        let pages = match file_pages(&seen) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                eprintln!("\n*** SKIPPED, because this kernel has no cachestat ***\n");
                return;
            }
            pages => pages.unwrap(),
        };
        // The pages of a file of an overlay belong to a file of the layer below, which cachestat(2) does not count.
        if pages == FilePages::default() && fstatfs(&seen).unwrap().f_type == OVERLAYFS_MAGIC {
            eprintln!("\n*** SKIPPED, because the target folder is on an overlay ***\n");
            return;
        }
        assert_eq!(pages.cached, 8 << 20);
        assert!(pages.dirty + pages.writeback <= pages.cached);
        if pages.dirty > 0 {
            start_write_back(&seen, 0, 8 << 20).unwrap();
            let after = file_pages(&seen).unwrap();
            assert!(after.dirty < pages.dirty, "{pages:?} {after:?}");
        }
        assert!(start_write_back(&seen, u64::MAX, 1).is_err());
    }
}
