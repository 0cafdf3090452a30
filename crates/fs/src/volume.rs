//! A whole file system that is synced at once: one wait for the disk for a group of files, rather
//! than one a file; and file systems whose files have no size.

use crate::dir::{Dir, Kind, Meta};
use crate::error::FsError;
use crate::system::{is_error_reporting, sync_file_system};
use rustix::fs::fstat;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// A file system whose `syncfs` reports write-back errors, opened before the copy writes to it.
///
/// Linux reports a write-back error once to each descriptor that was open when it happened
/// (syncfs(2)). One descriptor opened before the first write therefore learns of all errors. Before
/// Linux 5.8, and on network and FUSE file systems, `syncfs` reports none.
#[derive(Debug)]
pub struct Volume {
    fd: OwnedFd,
    device: u64,
}

/// The first Linux version whose `syncfs` reports write-back errors (syncfs(2)).
const LINUX_VERSION_MIN: (u32, u32) = (5, 8);

/// Whether the file of this metadata may have content that its size does not tell: a file of the kernel, as in `/proc`, whose
/// content is made when it is read. `beside` is it or its directory, open.
pub fn is_sizeless(meta: &Meta, beside: impl AsFd) -> bool {
    meta.kind == Kind::File && meta.size == 0 && crate::system::is_sizeless(beside)
}

impl Volume {
    /// Opens the file system that holds `dir`; `None` if its `syncfs` does not report errors. The
    /// caller then syncs each file by itself.
    pub fn of(dir: &Dir) -> Option<Self> {
        if !is_error_reporting(dir) || !is_new_enough(kernel().as_deref()?) {
            return None;
        }
        // The type differs between systems.
        #[allow(clippy::unnecessary_cast)]
        let device = fstat(dir).ok()?.st_dev as u64;
        // Errors are reported once a descriptor, so this one is shared with nobody.
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let fd = rustix::fs::openat(dir, ".", flags, rustix::fs::Mode::empty()).ok()?;
        Some(Self { fd, device })
    }

    /// Its device number (`st_dev`).
    pub const fn device(&self) -> u64 {
        self.device
    }

    /// Writes everything on the file system to the disk. Fails if a write-back failed since this
    /// value was made or since the last call.
    pub fn sync(&self) -> Result<(), FsError> {
        sync_file_system(self.fd.as_fd())
            .map_err(|errno| FsError::new("sync the file system", b".", errno))
    }
}

/// The file systems that are written to, each opened before anything is written to it, by the numbers of their devices.
/// Nothing, where a sync of the whole cannot be believed.
#[derive(Debug, Default)]
pub struct Volumes(Mutex<BTreeMap<u64, Option<Arc<Volume>>>>);

impl Volumes {
    /// Notes where `dir` is, before anything is written into it; gives the number of the device.
    pub fn note(&self, dir: &Dir) -> u64 {
        let device = Meta::of(dir).map_or(0, |meta| meta.identity.0);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(device).or_insert_with(|| Volume::of(dir).map(Arc::new));
        device
    }

    /// The file system on a device, if a sync of all of it can be believed.
    pub fn get(&self, device: u64) -> Option<Arc<Volume>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&device).cloned().flatten()
    }
}

fn kernel() -> Option<String> {
    Some(rustix::system::uname().release().to_str().ok()?.to_owned())
}

/// Whether a kernel release (`6.1.0-13-amd64`) is at least [`LINUX_VERSION_MIN`].
fn is_new_enough(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= LINUX_VERSION_MIN,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_compared_by_number() {
        for release in ["5.8.0", "5.10.0-28-amd64", "6.1.0", "10.0"] {
            assert!(is_new_enough(release), "{release}");
        }
        for release in ["5.7.19", "4.19.0-25", "5", "", "x.y", "3.100"] {
            assert!(!is_new_enough(release), "{release}");
        }
    }

    #[test]
    fn files_of_the_kernel_have_no_size_and_empty_files_have() {
        let told = |dir: &str, name: &[u8]| {
            let dir = Dir::open(std::path::Path::new(dir)).unwrap();
            let meta = dir.meta(&crate::Name::new(name).unwrap()).unwrap().unwrap();
            is_sizeless(&meta, &dir)
        };
        assert!(told("/proc", b"version"));
        assert!(!told("/proc", b"self") && !told("/proc", b"sys"));
        let empty = format!("hikyaku-sizeless-{}", std::process::id());
        std::fs::write(std::env::temp_dir().join(&empty), "").unwrap();
        assert!(!told(std::env::temp_dir().to_str().unwrap(), empty.as_bytes()));
        std::fs::remove_file(std::env::temp_dir().join(&empty)).unwrap();
    }

    #[test]
    fn proc_is_no_volume_with_a_trusted_syncfs() {
        let proc = Dir::open(std::path::Path::new("/proc/self")).unwrap();
        assert!(Volume::of(&proc).is_none());
    }
}
