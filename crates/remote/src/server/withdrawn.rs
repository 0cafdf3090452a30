//! Files whose names a client has withdrawn: they have no name any more, and the client goes on with them under the path that
//! they had, until it removes that path or its session ends.

use super::Session;
use hikyaku_store::{Ability, Access, ErrorKind, Found, Kind, Open, Result, StoreError, StorePath};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The files of one session.
#[derive(Default)]
pub(crate) struct Withdrawn {
    files: Mutex<HashMap<StorePath, Arc<dyn Open>>>,
}

/// Files of one session at once.
const FILES_MAX: usize = 64;

/// Only names that begin so can be withdrawn: those that a mount gives to files that are open and have lost their name.
pub const HIDDEN_PREFIX: &[u8] = b".hikyaku-open-";

impl Withdrawn {
    fn files(&self) -> MutexGuard<'_, HashMap<StorePath, Arc<dyn Open>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, path: &StorePath) -> Option<Arc<dyn Open>> {
        self.files().get(path).cloned()
    }

    /// Whether there is one.
    pub(super) fn has(&self, path: &StorePath) -> bool {
        self.files().contains_key(path)
    }

    /// The client needs the file no more. Returns whether there was one.
    pub(super) fn end(&self, path: &StorePath) -> bool {
        self.files().remove(path).is_some()
    }

    /// The client has given a directory another name.
    pub(super) fn moved(&self, from: &StorePath, to: &StorePath) {
        let mut files = self.files();
        let below = |path: &StorePath| {
            let rest = path.as_bytes().strip_prefix(from.as_bytes())?;
            let new = rest.starts_with(b"/").then(|| [to.as_bytes(), rest].concat())?;
            Some((path.clone(), StorePath::new(&new).ok()?))
        };
        let moved: Vec<(StorePath, StorePath)> = files.keys().filter_map(below).collect();
        for (old, new) in moved {
            if let Some(file) = files.remove(&old) {
                files.insert(new, file);
            }
        }
    }
}

impl Session {
    /// Opens a file, also one whose name was withdrawn.
    pub(super) fn open(&self, path: &StorePath, access: Access) -> Result<Arc<dyn Open>> {
        match self.withdrawn.of(path) {
            Some(file) => Ok(file),
            None => self.store.open(path, access).map(Arc::from),
        }
    }

    /// The metadata of a path, also of one that was withdrawn.
    pub(super) fn look(&self, path: &StorePath) -> Result<Found> {
        match self.withdrawn.of(path) {
            Some(file) => file.found(),
            None => self.store.look(path),
        }
    }

    /// Removes the name of a file that this client goes on with.
    // spec: store-withdraw-1
    pub(super) fn withdraw(&self, path: &StorePath) -> Result<()> {
        let error = |kind| StoreError::new("withdraw", path, kind);
        if !path.split().is_some_and(|(_, name)| name.as_bytes().starts_with(HIDDEN_PREFIX)) {
            return Err(error(ErrorKind::BadName));
        }
        if !self.plain.abilities().unnamed {
            return Err(error(ErrorKind::Unsupported(Ability::Unnamed)));
        }
        if self.withdrawn.files().len() >= FILES_MAX {
            return Err(error(ErrorKind::Busy));
        }
        let update = self.plain.open(path, Access::Update);
        let file = update.or_else(|_| self.plain.open(path, Access::Read))?;
        self.store.remove(path, Kind::File)?;
        self.withdrawn.files().insert(path.clone(), Arc::from(file));
        Ok(())
    }
}
