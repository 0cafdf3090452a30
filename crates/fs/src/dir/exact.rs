//! Operations that a storage engine needs beyond those of a copy.

use super::{Dir, PRIVATE_DIR};
use crate::error::FsError;
use crate::path::Name;
use rustix::fs::{self, Mode, OFlags, RawDir, RenameFlags, SeekFrom, StatVfs};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// The names.
    pub names: Vec<Name>,
    /// Where the next page begins, in the file system's own terms (`d_off` of getdents64(2)); `None` at the end.
    pub next: Option<u64>,
    /// Names that no [`Name`] can hold, which are left out.
    pub skipped: u64,
}

/// Bytes of one getdents64 call.
const BUFFER_BYTES: usize = 32 << 10;
/// tmpfs before Linux 6.6 counts entries in place of giving each a lasting position, so that removals shift the rest.
const TMPFS_MAGIC: u32 = 0x0102_1994;

impl Dir {
    /// Makes a directory of mode 0700, which must not exist.
    pub fn make_new_dir(&self, name: &Name) -> Result<Self, FsError> {
        fs::mkdirat(&self.fd, name.as_os_str(), PRIVATE_DIR)
            .map_err(|errno| FsError::new("make the directory", name.as_bytes(), errno))?;
        self.dir(&name.clone().into())
    }

    /// Exchanges a name here with a name in `to` in one step.
    pub fn exchange(&self, from: &Name, to: &Self, name: &Name) -> Result<(), FsError> {
        let (old, new) = (from.as_os_str(), name.as_os_str());
        fs::renameat_with(&self.fd, old, &to.fd, new, RenameFlags::EXCHANGE)
            .map_err(|errno| FsError::new("exchange with", name.as_bytes(), errno))
    }

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

    /// Room in the file system: bytes free for this user, and bytes in all; files that may still be made, where the
    /// file system limits them.
    pub fn space(&self) -> Result<(u64, u64, Option<u64>), FsError> {
        let StatVfs { f_bavail, f_blocks, f_frsize, f_files, f_favail, .. } =
            fs::fstatvfs(&self.fd).map_err(|errno| FsError::new("look at", b".", errno))?;
        let files = (f_files > 0).then_some(f_favail);
        Ok((f_bavail.saturating_mul(f_frsize), f_blocks.saturating_mul(f_frsize), files))
    }
}
