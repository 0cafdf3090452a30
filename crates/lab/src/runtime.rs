//! The runtime directory: one entry for each running lab, and for each lab whose process was
//! killed.
//!
//! The process of a lab holds a lock on the file `lock` in the lab's directory as long as it runs.
//! The kernel releases the lock when the process ends, in whatever way, so a directory without a
//! lock belongs to a dead lab. The next lab that is started removes its remains, and so does `lab
//! down`.

use crate::site::Layout;
use crate::{namespace, trouble};
use anyhow::{Context, Error, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory of a lab. Dropping it removes the directory.
#[derive(Debug)]
pub(crate) struct Claim {
    name: String,
    directory: PathBuf,
    /// The lock, held while the lab runs.
    _lock: File,
}

/// Name of the file in a lab's directory that describes its sites.
const LAYOUT_FILE: &str = "layout";

/// How long a lab that is starting may take to create its lock file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

impl Claim {
    /// Claims `name` for a new lab, after removing the remains of dead labs.
    pub(crate) fn new(name: &str) -> Result<Self> {
        lab_name(name).map_err(|error| trouble::of(ErrorKind::InvalidInput, error))?;
        let base = base();
        make_base()?;
        clean(&base);
        let directory = base.join(name);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = format!("there is a lab '{name}' already");
                let remedy = format!("another name, or remove it: hikyaku lab down {name}");
                return Err(trouble::with_remedy(ErrorKind::ResourceBusy, text, remedy));
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

    /// The path of the control socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("control")
    }

    /// Writes the description of the sites, for other commands.
    pub(crate) fn write_layout(&self, layout: &Layout) -> Result<()> {
        let text = serde_json::to_string(layout)?;
        fs::write(self.directory.join(LAYOUT_FILE), text)
            .context("cannot write the description of the lab's sites")
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What exists of a lab.
pub(crate) enum Found {
    /// It is running and has this control socket.
    Live(PathBuf),
    /// The remains of a lab whose process was killed.
    Dead,
    Nothing,
}

/// Checks that `name` is a valid name of a lab.
pub(crate) fn lab_name(name: &str) -> Result<String, String> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 32 || !name.chars().all(valid) {
        return Err(format!("'{name}' is not a lab's name: use up to 32 of a-z, 0-9 and '-'"));
    }
    Ok(name.to_owned())
}

/// Looks for the lab `name`.
pub(crate) fn find(name: &str) -> Found {
    let directory = base().join(name);
    if is_live(&directory) {
        Found::Live(directory.join("control"))
    } else if directory.exists() || !namespace::left(name).is_empty() {
        Found::Dead
    } else {
        Found::Nothing
    }
}

/// The control socket of the lab `name`, if it is running.
pub(crate) fn socket_of(name: &str) -> Result<PathBuf> {
    match find(name) {
        Found::Live(socket) => Ok(socket),
        Found::Dead => {
            let text = format!("lab '{name}' was killed");
            let remedy = format!("hikyaku lab down {name}, which removes its remains");
            Err(trouble::with_remedy(ErrorKind::NotFound, text, remedy))
        }
        Found::Nothing => Err(no_lab(name)),
    }
}

/// The error for a lab `name` that does not exist.
pub(crate) fn no_lab(name: &str) -> Error {
    let live = names();
    let remedy = match &live[..] {
        [] => format!("hikyaku lab up {name}"),
        _ => format!("a lab that runs: {}", live.join(", ")),
    };
    trouble::with_remedy(ErrorKind::NotFound, format!("{name}: no such lab"), remedy)
}

/// The names of the running labs.
pub(crate) fn names() -> Vec<String> {
    let live = entries(&base()).into_iter().filter(|path| is_live(path));
    live.filter(|path| path.join("control").exists()).filter_map(|path| name_of(&path)).collect()
}

/// The names of the labs whose process was killed and that have remains.
pub(crate) fn dead_names() -> Vec<String> {
    let dead = entries(&base()).into_iter().filter(|path| !is_live(path));
    dead.filter_map(|path| name_of(&path)).collect()
}

/// Removes the remains of the dead lab `name`: the programs in its namespaces, the namespaces, and
/// its files.
pub(crate) fn remove(name: &str) -> Result<()> {
    remove_dead(name);
    match namespace::left(name)[..] {
        [] => Ok(()),
        ref left => {
            let text = format!("cannot remove all of lab '{name}': {} is left", left.join(", "));
            Err(trouble::of(ErrorKind::ResourceBusy, text))
        }
    }
}

/// The sites of the lab `name`; `None` if it has a client and servers.
pub(crate) fn layout_of(name: &str) -> Result<Option<Layout>> {
    match fs::read_to_string(base().join(name).join(LAYOUT_FILE)) {
        Ok(text) => Ok(Some(
            serde_json::from_str(&text)
                .context("cannot read the description of the lab's sites")?,
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot read the description of the lab's sites"),
    }
}

/// The log file of a lab that is starting in the background.
pub(crate) fn log_of(name: &str) -> PathBuf {
    base().join(format!("{name}.log"))
}

/// Creates the base directory.
pub(crate) fn make_base() -> Result<()> {
    let base = base();
    let made = DirBuilder::new().mode(0o700).recursive(true).create(&base);
    made.with_context(|| format!("cannot make {}", base.display()))
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

fn name_of(directory: &Path) -> Option<String> {
    directory.file_name()?.to_str().map(str::to_owned)
}

/// Whether the process of the lab with this directory is running. A lab that is just starting may
/// not have created its lock file yet; it counts as running.
fn is_live(directory: &Path) -> bool {
    match File::open(directory.join("lock")) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockShared).is_err(),
        Err(_) => fs::metadata(directory)
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|made| made.elapsed().is_ok_and(|age| age < LOCK_TIMEOUT)),
    }
}

fn clean(base: &Path) {
    for directory in entries(base) {
        if let Some(name) = name_of(&directory).filter(|_| !is_live(&directory)) {
            remove_dead(&name);
        }
    }
}

/// Removes the remains of a dead lab, unless another process is doing so or a lab of this name is
/// running.
fn remove_dead(name: &str) {
    let directory = base().join(name);
    // Held during the removal, so that no lab of this name can start in the middle of it.
    let _turn = match File::create(directory.join("lock")) {
        Ok(lock) if is_ours(&lock, &directory) => Some(lock),
        Ok(_) => return,
        // Without a directory there is no file to lock.
        Err(_) => None,
    };
    namespace::remove(&namespace::left(name));
    let _ = fs::remove_file(log_of(name));
    let _ = fs::remove_dir_all(&directory);
}

/// Whether the locked file is still the one in the directory: another process may have removed and
/// recreated it.
fn is_ours(lock: &File, directory: &Path) -> bool {
    let same = |one: &fs::Metadata, other: &fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        && matches!(
            (lock.metadata(), fs::metadata(directory.join("lock"))),
            (Ok(held), Ok(there)) if same(&held, &there)
        )
}
