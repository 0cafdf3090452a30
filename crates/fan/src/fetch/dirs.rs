//! The directories and the links of a transfer, which need no bytes.

use super::{Fetched, Job};
use crate::choice::Older;
use hikyaku_store::{ErrorKind, Kind, Result as StoreResult, StoreError, StorePath};

/// Creates the directories, and the links, which need no bytes.
pub(super) fn make(job: &Job<'_>, fetched: &mut Fetched) {
    let there = |path: &StorePath, kind| match job.store.look(path) {
        Ok(found) if found.kind == kind => Ok(()),
        Ok(_) => Err(StoreError::new("create", path, ErrorKind::Exists)),
        Err(error) => Err(error),
    };
    for (path, _) in &job.census.dirs {
        let Some(place) = (job.place)(path) else { continue };
        // Its final mode might forbid to write in it.
        let made = match job.store.make_dir(&place, 0o700) {
            Err(error) if error.kind == ErrorKind::Exists => there(&place, Kind::Dir),
            made => made,
        };
        made.unwrap_or_else(|error| fetched.failed.push((path.as_bytes().to_vec(), error.into())));
    }
    for (path, text) in &job.census.links {
        let Some(place) = (job.place)(path) else { continue };
        let made = match job.store.make_link(&place, text) {
            Err(error) if error.kind == ErrorKind::Exists && job.older == Older::Kept => Ok(()),
            Err(error) if error.kind == ErrorKind::Exists => {
                let is_same = || job.store.read_link(&place).is_ok_and(|there| there == *text);
                there(&place, Kind::Link).and_then(|()| match is_same() {
                    true => Ok(()),
                    false => Err(error),
                })
            }
            made => made,
        };
        made.unwrap_or_else(|error| fetched.failed.push((path.as_bytes().to_vec(), error.into())));
    }
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
            Ok(_) if job.older == Older::Kept => {}
            Ok(_) if job.store.read_link(&place).is_ok_and(|there| there == *text) => {}
            Ok(_) => {
                let error = StoreError::new("create", &place, ErrorKind::Exists);
                fetched.failed.push((path.as_bytes().to_vec(), error.into()));
            }
        }
    }
}

/// Gives the directories their modes, the deepest first, and brings the names in them to the disk.
pub(super) fn finish(job: &Job<'_>, fetched: &mut Fetched) {
    let settle = |place: &StorePath, mode: u32| -> StoreResult<()> {
        job.store.sync(std::slice::from_ref(place))?;
        let change =
            hikyaku_store::Change { mode: Some(mode & 0o777 & !job.umask), ..Default::default() };
        job.store.change(place, &change)
    };
    for (path, mode) in job.census.dirs.iter().rev() {
        let Some(place) = (job.place)(path) else { continue };
        if let Err(error) = settle(&place, *mode) {
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
