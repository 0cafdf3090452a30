//! Names of files that are being fetched at once: two of the same name would share their journal.

use anyhow::Result;
use hikyaku_console::{ExitCode, with_remedy};
use hikyaku_fs::Name;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The names of the files that are being fetched, all in one directory.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<BTreeSet<Vec<u8>>>);

/// A name that no other file of the command can have meanwhile.
pub(crate) struct Taken<'a> {
    names: &'a Names,
    name: Vec<u8>,
}

impl Names {
    /// Takes a name until the value is dropped.
    ///
    /// # Errors
    /// Another file has it.
    pub(crate) fn take(&self, name: &Name) -> Result<Taken<'_>> {
        if self.lock().insert(name.as_bytes().to_vec()) {
            return Ok(Taken { names: self, name: name.as_bytes().to_vec() });
        }
        let text = format!("another file of this command is called {}", name.shown());
        Err(with_remedy(ExitCode::WillFail.error(text), Some("fetch it by itself, with -o FILE")))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.names.lock().remove(&self.name);
    }
}
