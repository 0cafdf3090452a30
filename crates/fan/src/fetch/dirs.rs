//! The directories and the links of a transfer, which need no bytes.

use super::{Fetched, Job};
use crate::choice::{LinkAction, action_of_link};
use crate::dress::DirState;
use hikyaku_store::{Change, ErrorKind, Kind, Result as StoreResult, StoreError, StorePath};

/// Creates the directories, and the links, which need no bytes. Returns which of the directories are new, in their order.
pub(super) fn make(job: &Job<'_>, fetched: &mut Fetched) -> Vec<DirState> {
    let mut states = Vec::new();
    let there = |path: &StorePath| match job.store.look(path) {
        Ok(found) if found.kind == Kind::Dir => Ok(DirState::There),
        Ok(_) => Err(StoreError::new("create", path, ErrorKind::Exists)),
        Err(error) => Err(error),
    };
    for (path, meta) in &job.census.dirs {
        let Some(place) = (job.place)(path) else {
            states.push(DirState::There);
            continue;
        };
        let made = match job.store.make_dir(&place, job.dress.new_dir(meta.mode)) {
            Err(error) if error.kind == ErrorKind::Exists => there(&place),
            made => made.map(|()| DirState::Made),
        };
        states.push(made.unwrap_or_else(|error| {
            fetched.failed.push((path.as_bytes().to_vec(), error.into()));
            DirState::There
        }));
    }
    for (path, text) in &job.census.links {
        let Some(place) = (job.place)(path) else { continue };
        let made = match job.store.make_link(&place, text) {
            Err(error) if error.kind == ErrorKind::Exists => {
                let is_same = job.store.read_link(&place).is_ok_and(|there| there == *text);
                match action_of_link(job.older, is_same) {
                    LinkAction::Stay => Ok(()),
                    LinkAction::Replace | LinkAction::Refuse => Err(error),
                }
            }
            made => made,
        };
        made.unwrap_or_else(|error| fetched.failed.push((path.as_bytes().to_vec(), error.into())));
    }
    states
}

/// Tells which links would be made, and which names of directories are taken by something else.
pub(super) fn rehearse(job: &Job<'_>, fetched: &mut Fetched) {
    for (path, _) in &job.census.dirs {
        let Some(place) = (job.place)(path) else { continue };
        if job.store.look(&place).is_ok_and(|found| found.kind != Kind::Dir) {
            let error = StoreError::new("create", &place, ErrorKind::Exists);
            fetched.failed.push((path.as_bytes().to_vec(), error.into()));
        }
    }
    for (path, text) in &job.census.links {
        let Some(place) = (job.place)(path) else { continue };
        match job.store.look(&place) {
            Err(_) => fetched.would.push(place.as_bytes().to_vec()),
            Ok(_) => {
                let is_same = job.store.read_link(&place).is_ok_and(|there| there == *text);
                if action_of_link(job.older, is_same) == LinkAction::Stay {
                    continue;
                }
                let error = StoreError::new("create", &place, ErrorKind::Exists);
                fetched.failed.push((path.as_bytes().to_vec(), error.into()));
            }
        }
    }
}

/// Gives the directories their modes and times, the deepest first, and brings the names in them to the disk.
pub(super) fn finish(job: &Job<'_>, states: &[DirState], fetched: &mut Fetched) {
    let settle = |place: &StorePath, change: Option<Change>| -> StoreResult<()> {
        job.store.sync(std::slice::from_ref(place))?;
        change.map_or(Ok(()), |change| job.store.change(place, &change))
    };
    for ((path, meta), state) in job.census.dirs.iter().zip(states).rev() {
        let Some(place) = (job.place)(path) else { continue };
        if let Err(error) = settle(&place, job.dress.filled_dir(*meta, *state)) {
            fetched.failed.push((path.as_bytes().to_vec(), error.into()));
        }
    }
    let parents = job.census.files.iter().filter_map(|file| (job.place)(&file.path)?.split());
    let mut parents: Vec<StorePath> = parents.map(|(dir, _)| dir).collect();
    parents.sort_unstable();
    parents.dedup();
    if let Err(error) = job.store.sync(&parents) {
        fetched.failed.push((b".".to_vec(), error.into()));
    }
}
