//! Downloads into what is no plain file: standard output, a FIFO, a device. Parts of a file come from several servers in any
//! order, so that the file is completed in the folder for temporary files first, and then written in order.

use anyhow::{Context, Result, ensure};
use hikyaku_console::Scope;
use hikyaku_fs::{FsError, Patience, Shown, Target};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A target that takes bytes in order.
pub(super) struct Stream {
    shown: String,
    to: hikyaku_fs::Stream,
    /// A directory that only this user may enter, which is removed at the end.
    folder: PathBuf,
    name: PathBuf,
}

impl Stream {
    /// Opens the target if it is one. A FIFO is waited for until it has a reader, or the copy is stopped.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or the folder for temporary files cannot be written to.
    pub(super) fn open(target: &Path, scope: &Scope) -> Result<Option<Self>> {
        let bytes = target.as_os_str().as_bytes();
        // Of a target that is none, and cannot be one, whoever lands there tells.
        let Ok(Target::Stream(device)) = Target::of(target) else { return Ok(None) };
        let scope = scope.clone();
        let to = device.open(Patience::new(move || scope.stop_cause().is_none()))?;
        let random: [u8; 8] = hikyaku_crypto::random_array();
        let folder =
            std::env::temp_dir().join(format!("hikyaku-{:016x}", u64::from_le_bytes(random)));
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        let name = folder.join(target.file_name().unwrap_or_else(|| OsStr::new("file")));
        Ok(Some(Self { shown: Shown::new(bytes).to_string(), to, folder, name }))
    }

    /// Where the file is completed.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// Writes the file that was completed, if there is one.
    pub(super) fn pour(mut self) -> Result<()> {
        let mut from = match File::open(&self.name) {
            Ok(from) => from,
            // It was not copied, and that was told.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).context("cannot read the temporary file"),
        };
        ensure!(from.metadata()?.is_file(), "{}: is not a directory", self.shown);
        let poured = io::copy(&mut from, &mut self.to);
        poured.map_err(|error| FsError::io("write", self.shown.as_bytes(), &error))?;
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // What is left in the folder for temporary files is no error of the copy.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
