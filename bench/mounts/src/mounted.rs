//! The file system of our own, mounted.

use crate::faults::Faults;
use crate::node::{Kind, Owner};
use crate::record::Record;
use crate::serve::Serve;
use crate::store::ROOT;
use fuser::{BackgroundSession, Config, MountOption, SessionACL, spawn_mount};
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A mount, which goes with this value.
pub struct Mounted {
    at: PathBuf,
    serve: Serve,
    session: Option<BackgroundSession>,
}

/// Answers that come at the same time.
const THREADS: usize = 4;

impl Mounted {
    /// Mounts an empty file system at `at`, which is made.
    pub fn new(at: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&at)?;
        let owner = Owner {
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        };
        let serve = Serve::new(owner);
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("hikyaku-test".to_owned()), MountOption::DefaultPermissions];
        config.acl = if owner.user == 0 { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(THREADS);
        let session = Some(spawn_mount(serve.clone(), &at, &config)?);
        Ok(Self { at, serve, session })
    }

    /// Where it is.
    pub fn at(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    /// Changes what is wrong with it.
    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.serve.store().faults);
    }

    /// What was done since the last time this was asked.
    pub fn take_record(&self) -> Record {
        std::mem::take(&mut self.serve.store().record)
    }

    /// All that a power failure would take, in words.
    pub fn unsynced(&self) -> Vec<String> {
        self.serve.store().unsynced()
    }

    /// A failure to write back that waits to be told.
    pub fn has_failing_sync(&self) -> bool {
        self.serve.store().faults.failing_sync.is_some()
    }

    /// What the file system has of a file, whatever the kernel believes.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let store = self.serve.store();
        let step = |number: u64, name| store.node(number).ok()?.named(name);
        let number = path.iter().try_fold(ROOT, step)?;
        match &store.node(number).ok()?.kind {
            Kind::File(content) => Some(content.now.clone()),
            _ => None,
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A program that another test starts has the files of all tests open for a moment, which make a mount busy.
        let _ = unmount(&self.at, UnmountFlags::DETACH);
        drop(self.session.take());
        let _ = fs::remove_dir(&self.at);
    }
}

/// Whether a test has to be left out, which is said aloud.
pub fn skipped<T>(made: io::Result<T>) -> Option<T> {
    made.inspect_err(|error| eprintln!("\n*** SKIPPED, because of {error} ***\n")).ok()
}
