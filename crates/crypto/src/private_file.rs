//! Files that only their owner may read (mode 0600), written atomically.

use crate::base64;
use crate::random::random_array;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Creates `path` with these bytes. Fails if it exists. Other processes see the complete file or
/// none.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = TemporaryFile::write(path, bytes)?;
    // A hard link does not replace an existing file, as a rename would.
    fs::hard_link(&temporary.0, path)?;
    sync_directory(path)
}

/// Writes `path` with these bytes, atomically replacing an existing file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = TemporaryFile::write(path, bytes)?;
    fs::rename(&temporary.0, path)?;
    sync_directory(path)
}

/// Opens `path` for locking, creating it and its directory if necessary.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    create_directory(path)?;
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// A temporary file beside the target. It is removed when dropped, unless it was renamed.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn write(target: &Path, bytes: &[u8]) -> io::Result<Self> {
        create_directory(target)?;
        let mut name = target.as_os_str().to_owned();
        let suffix = base64::encode(&random_array::<9>()).replace(['/', '+'], "_");
        name.push(format!(".{suffix}"));
        let path = PathBuf::from(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let temporary = Self(path);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(temporary)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Fails if the file was renamed.
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

/// Makes a new directory entry durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
