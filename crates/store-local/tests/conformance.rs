//! The conformance suite on directories of this machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use hikyaku_store::testing::{Forbidden, Rig, failures};
use hikyaku_store::{Store, StorePath};
use hikyaku_store_local::{Local, NewModes};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// An empty directory that is removed when the case ends.
struct InDirectory(PathBuf);

impl InDirectory {
    fn new(below: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = below.join(format!("hikyaku-store-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Rig for InDirectory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(Local::open(&self.0, NewModes::default()).unwrap())
    }

    /// The superuser may list every directory.
    fn forbid(&self, dir: &StorePath) -> Forbidden {
        let path = self.0.join(OsStr::from_bytes(dir.as_bytes()));
        let mode = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
        match fs::read_dir(&path) {
            Err(_) => Forbidden::Done,
            Ok(_) => {
                fs::set_permissions(&path, mode).unwrap();
                Forbidden::NotHere
            }
        }
    }
}

impl Drop for InDirectory {
    fn drop(&mut self) {
        // A directory that a case has made unlistable is one of these.
        let _ = fs::set_permissions(self.0.join("d/b"), Permissions::from_mode(0o700));
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// On the file system of the build directory.
#[test]
fn a_directory_on_a_disk_conforms() {
    let failed = failures(|| InDirectory::new(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_directory_on_tmpfs_conforms() {
    let failed = failures(|| InDirectory::new(Path::new("/dev/shm")));
    assert!(failed.is_empty(), "{failed:#?}");
}
