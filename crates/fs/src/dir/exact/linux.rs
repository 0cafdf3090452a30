//! Listings in pages, by positions of getdents64(2).

use super::{Dir, Names};
use crate::error::FsError;
use crate::path::Name;
use rustix::fs::{self, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// Bytes of one getdents64 call.
const BUFFER_BYTES: usize = 32 << 10;
/// tmpfs before Linux 6.6 counts entries in place of giving each a lasting position, so that removals shift the rest.
const TMPFS_MAGIC: u32 = 0x0102_1994;

impl Dir {
    /// Whether a position in a listing stays valid while entries are removed.
    pub fn has_lasting_positions(&self) -> bool {
        fs::fstatfs(&self.fd).is_ok_and(|stat| stat.f_type as u32 != TMPFS_MAGIC)
    }

    /// The entries behind a position, at most `room` of them, in the file system's order.
    pub fn names_from(&self, position: Option<u64>, room: usize) -> Result<Names, FsError> {
        let fail = |errno| FsError::new("list", b".", errno);
        // A descriptor of its own has a position of its own.
        let fd = self.to_list().map_err(fail)?;
        if let Some(position) = position {
            fs::seek(&fd, SeekFrom::Start(position)).map_err(fail)?;
        }
        let mut buffer = [const { MaybeUninit::uninit() }; BUFFER_BYTES];
        let mut entries = RawDir::new(&fd, &mut buffer);
        let mut page = Names::default();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(fail)?;
            let bytes = entry.file_name().to_bytes();
            match Name::new(bytes) {
                Ok(name) => page.names.push(name),
                Err(_) if matches!(bytes, b"." | b"..") => {}
                Err(_) => page.skipped += 1,
            }
            if page.names.len() >= room {
                page.next = Some(entry.next_entry_cookie());
                break;
            }
        }
        Ok(page)
    }

    fn to_list(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        fs::openat(&self.fd, ".", flags, Mode::empty())
    }
}
