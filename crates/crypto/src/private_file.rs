//! Files that nobody else may read, written whole or not at all.

use crate::base64;
use crate::random::random_array;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Creates `path` with these bytes; fails if it exists. Whoever opens it sees all of them.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = Draft::write(path, bytes)?;
    // Unlike a rename, a link does not replace what another process has just created.
    fs::hard_link(&draft.0, path)?;
    sync_directory(path)
}

/// Puts these bytes in the place of `path`, which may exist.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = Draft::write(path, bytes)?;
    fs::rename(&draft.0, path)?;
    sync_directory(path)
}

/// Opens `path` for locking, and creates it and its folder if need be.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    create_directory(path)?;
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// A file beside the one that is meant; removed if it did not become that.
struct Draft(PathBuf);

impl Draft {
    fn write(target: &Path, bytes: &[u8]) -> io::Result<Self> {
        create_directory(target)?;
        let mut name = target.as_os_str().to_owned();
        let suffix = base64::encode(&random_array::<9>()).replace(['/', '+'], "_");
        name.push(format!(".{suffix}"));
        let path = PathBuf::from(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let draft = Self(path);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Gone already if it was renamed.
        let _ = fs::remove_file(&self.0);
    }
}

fn create_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)
        }
        _ => Ok(()),
    }
}

/// Makes a new name survive a loss of power.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
