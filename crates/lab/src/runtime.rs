//! The runtime directory: one entry for each lab that lives, and for each that died badly.
//!
//! A lab holds a lock on the file `lock` in its directory for as long as its process lives. The
//! kernel drops the lock with the process, however that ends, so an unlocked directory is a dead
//! lab's, and whoever starts a lab next removes what it left.

use crate::namespace;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A lab's own directory; removed when dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    name: String,
    directory: PathBuf,
    /// Held for as long as the lab lives.
    _lock: File,
}

impl Claim {
    /// Claims `name` for a new lab, after removing what dead labs have left.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 32 || !name.chars().all(valid) {
            bail!("'{name}' is not a lab's name: use up to 32 of a-z, 0-9 and '-'");
        }
        let base = base();
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&base)
            .with_context(|| format!("cannot make {}", base.display()))?;
        clean(&base);
        let directory = base.join(name);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                bail!("there is a lab '{name}' already; 'lab down {name}' ends it")
            }
            Err(error) => return Err(error).context("cannot make the lab's directory"),
        }
        let lock = File::create(directory.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { name: name.to_owned(), directory, _lock: lock })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where the lab listens for requests.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("control")
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Where the lab `name` listens for requests, if it lives.
pub(crate) fn socket_of(name: &str) -> Result<PathBuf> {
    let directory = base().join(name);
    if name.contains('/') || !is_live(&directory) {
        let live = names();
        if live.is_empty() {
            bail!("there is no lab '{name}'; 'lab up {name}' makes one");
        }
        bail!("there is no lab '{name}', only: {}", live.join(", "));
    }
    Ok(directory.join("control"))
}

/// The labs that live and can be asked.
pub(crate) fn names() -> Vec<String> {
    let live = entries(&base()).into_iter().filter(|path| is_live(path));
    let named = live.filter(|path| path.join("control").exists());
    named.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// Where a lab that is starting notes what goes wrong.
pub(crate) fn log_of(name: &str) -> PathBuf {
    base().join(format!("{name}.log"))
}

/// Makes the base directory, for a log.
pub(crate) fn make_base() -> Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(base()).map_err(Into::into)
}

fn base() -> PathBuf {
    let root = rustix::process::geteuid().is_root();
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|_| !root) {
        Some(directory) => Path::new(&directory).join("hikyaku-lab"),
        None => PathBuf::from("/run/hikyaku-lab"),
    }
}

fn entries(base: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Whether the process of the lab with this directory lives. A lab that is just starting may not
/// have made its lock file yet, and counts as living.
fn is_live(directory: &Path) -> bool {
    match File::open(directory.join("lock")) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockShared).is_err(),
        Err(_) => fs::metadata(directory)
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|made| made.elapsed().is_ok_and(|age| age.as_secs() < 5)),
    }
}

fn clean(base: &Path) {
    for directory in entries(base) {
        let Some(name) = directory.file_name().and_then(|name| name.to_str()) else { continue };
        if is_live(&directory) {
            continue;
        }
        for namespace in namespace::existing(name) {
            namespace::remove(&namespace);
        }
        let _ = fs::remove_dir_all(&directory);
    }
}
