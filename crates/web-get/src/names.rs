//! Names of files that are being fetched at once: two of the same name would share their journal.

use crate::target::Spot;
use anyhow::Result;
use hikyaku_console::{ExitCode, with_remedy};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The paths of the files that are being fetched.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeSet<PathBuf>>);

/// A name that no other file of the command can have meanwhile.
pub(crate) struct Taken<'a> {
    names: &'a Names,
    path: PathBuf,
}

impl Names {
    /// Takes a name until the value is dropped.
    ///
    /// # Errors
    /// Another file has it.
    pub(crate) fn take(&self, spot: &Spot) -> Result<Taken<'_>> {
        let path = spot.path();
        if self.lock().insert(path.clone()) {
            return Ok(Taken { names: self, path });
        }
        let name = spot.place.name.shown();
        let text = format!("another file of this command is called {name}");
        Err(with_remedy(ExitCode::WillFail.error(text), Some("fetch it by itself, with -o FILE")))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.names.lock().remove(&self.path);
    }
}
