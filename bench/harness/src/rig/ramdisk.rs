//! A RAM disk of large pages.
//!
//! Whoever writes a new page of memory on a virtual machine may wait for the machine beneath to hand one
//! out. In pages of 4 kB that costs up to 3 s a gigabyte, and hides what is measured; in pages of 2 MB it
//! happens a five-hundredth as often.

use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::run;

/// Mounted; gone when dropped.
pub(crate) struct RamDisk(PathBuf);

const MOUNT: Duration = Duration::from_secs(10);

impl RamDisk {
    pub(crate) fn up() -> Result<Self> {
        let path = PathBuf::from(format!("/dev/shm/hikyaku-ram-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        let disk = Self(path);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "huge=always", "tmpfs"]).arg(&disk.0);
        run(&mut mount, MOUNT)?.success()?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        // A leftover is no reason to fail.
        let _ = run(Command::new("umount").arg(&self.0), MOUNT);
        let _ = fs::remove_dir(&self.0);
    }
}
