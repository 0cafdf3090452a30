//! Files of this machine that have all of their bytes, and get their names when they are on its disk: one sync of a file
//! system for many of them, as where the far side has hikyaku.

use super::Run;
use super::download::done_of;
use super::fault::{Trouble, stored};
use super::journal::Key;
use hikyaku_store_local::{Whole, name_all};
use std::mem::take;
use std::sync::{Mutex, PoisonError};

/// Files that wait for one sync.
const FILES_MAX: usize = 1024;
/// Directories of them, each of which is open.
const FOLDERS_MAX: usize = 128;

/// Files that wait for their names.
#[derive(Default)]
pub(super) struct Landing(Mutex<Group>);

/// Files that were written together.
#[derive(Default)]
pub(super) struct Group {
    pub(super) files: Vec<(Key, Whole)>,
    /// Directories that were opened for them.
    pub(super) folders: usize,
}

impl Landing {
    /// Adds files. Who adds the last ones of a group syncs and names the group.
    pub(super) fn add(&self, run: &Run<'_>, more: Group) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.files.extend(more.files);
        waiting.folders += more.folders;
        let is_due = waiting.files.len() >= FILES_MAX || waiting.folders >= FOLDERS_MAX;
        let due = if is_due { take(&mut *waiting) } else { Group::default() };
        drop(waiting);
        due.name(run);
    }

    /// Syncs and names all that wait.
    pub(super) fn rest(&self, run: &Run<'_>) {
        take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).name(run);
    }
}

impl Group {
    /// Names its files; counts those that cannot be.
    pub(super) fn name(self, run: &Run<'_>) {
        let (keys, files): (Vec<_>, Vec<_>) = self.files.into_iter().unzip();
        let mut noted = Vec::new();
        for (key, named) in keys.into_iter().zip(name_all(files)) {
            match named.map_err(stored) {
                Ok(found) => {
                    run.meter.add_file();
                    noted.push((key, done_of(&found)));
                }
                Err(Trouble::File(end, failure)) => run.meter.add_failure(end, &failure),
                Err(_) => {}
            }
        }
        run.journal.iter().for_each(|journal| journal.add_all(&noted));
    }
}
