//! A RAM disk of large pages.
//!
//! Whoever writes a new page of memory on a virtual machine may wait for the machine beneath to hand one
//! out. In pages of 4 kB that costs up to 3 s a gigabyte, and hides what is measured; in pages of 2 MB it
//! happens a five-hundredth as often.

use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use xtask::run;

/// Mounted; gone when dropped.
pub(crate) struct RamDisk(PathBuf);

const MOUNT: Duration = Duration::from_secs(10);
const PARENT: &str = "/dev/shm";
const PREFIX: &str = "hikyaku-ram-";

impl RamDisk {
    /// Mounts it. RAM disks of benches that were interrupted are removed first.
    pub(crate) fn up() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        abandoned()?.into_iter().map(Self).for_each(drop);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(PARENT).join(format!("{PREFIX}{}-{number}", std::process::id()));
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

/// RAM disks whose bench has ended.
fn abandoned() -> Result<Vec<PathBuf>> {
    let is_running = |pid: &str| Path::new("/proc").join(pid).exists();
    let mut paths = Vec::new();
    for entry in fs::read_dir(PARENT)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !is_running(pid)) {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}
