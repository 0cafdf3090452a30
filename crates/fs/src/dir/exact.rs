//! Operations that a storage engine needs beyond those of a copy.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod others;

use super::{Dir, PRIVATE_DIR};
use crate::error::FsError;
use crate::path::Name;
use rustix::fs::{self, RenameFlags, StatVfs};

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

    /// Room in the file system: bytes free for this user, and bytes in all; files that may still be made, where the
    /// file system limits them.
    pub fn space(&self) -> Result<(u64, u64, Option<u64>), FsError> {
        let StatVfs { f_bavail, f_blocks, f_frsize, f_files, f_favail, .. } =
            fs::fstatvfs(&self.fd).map_err(|errno| FsError::new("look at", b".", errno))?;
        let files = (f_files > 0).then_some(f_favail);
        Ok((f_bavail.saturating_mul(f_frsize), f_blocks.saturating_mul(f_frsize), files))
    }
}
