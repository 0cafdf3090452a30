//! The directories and the links of a transfer, which need no bytes.

use super::{FetchError, Fetched, Job};
use crate::blocked::Blocked;
use crate::choice::{InTheWay, LinkAction};
use crate::dress::DirState;
use crate::links;
use hikyaku_store::{Change, ErrorKind, Kind, Result as StoreResult, StoreError, StorePath};

/// What became of the directories.
#[derive(Default)]
pub(super) struct Made {
    /// Of each in their order; `None` if it is not there.
    states: Vec<Option<DirState>>,
    /// Those that could not be made.
    pub(super) blocked: Blocked,
}

/// Creates the directories, and the links, which need no bytes.
pub(super) fn make(job: &Job<'_>, fetched: &mut Fetched) -> Made {
    let made = dirs(job, fetched, |place, mode| job.store.make_dir(place, mode));
    for (place, link) in job.plan.links.iter().filter(|(place, _)| !made.blocked.is_above(place)) {
        if let Err(error) = links::make(&*job.store, place, link, job.existing) {
            fetched.failed.push((place.as_bytes().to_vec(), error.into()));
        }
    }
    made
}

/// Tells which links would be made, and which names of directories are taken by something else.
pub(super) fn rehearse(job: &Job<'_>, fetched: &mut Fetched) -> Made {
    let made = dirs(job, fetched, |place, _| match job.store.look(place) {
        Ok(_) => Err(StoreError::new("create", place, ErrorKind::Exists)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    });
    for (place, link) in job.plan.links.iter().filter(|(place, _)| !made.blocked.is_above(place)) {
        let error = match links::decide(&*job.store, place, link, job.existing) {
            Ok(Some((LinkAction::Stay, _))) => continue,
            Ok(None | Some((LinkAction::Replace, _))) => {
                fetched.would.push(place.as_bytes().to_vec());
                continue;
            }
            Ok(Some((LinkAction::Refuse(way), _))) => FetchError::InTheWay(way),
            Err(error) => error.into(),
        };
        fetched.failed.push((place.as_bytes().to_vec(), error));
    }
    made
}

/// Makes each directory, or finds it there.
fn dirs(
    job: &Job<'_>,
    fetched: &mut Fetched,
    make: impl Fn(&StorePath, u32) -> StoreResult<()>,
) -> Made {
    let mut made = Made::default();
    for (place, meta) in &job.plan.dirs {
        // What is above it could not be made, which was told.
        if made.blocked.is_above(place) {
            made.states.push(None);
            continue;
        }
        let state = match make(place, job.dress.new_dir(meta.mode)) {
            Ok(()) => Ok(DirState::Made),
            Err(error) if error.kind == ErrorKind::Exists => match job.store.look(place) {
                Ok(found) if found.kind == Kind::Dir => Ok(DirState::There),
                Ok(_) => Err(FetchError::InTheWay(InTheWay::NoDirectory)),
                Err(error) => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        };
        made.states.push(state.as_ref().ok().copied());
        if let Err(error) = state {
            made.blocked.add(place);
            fetched.failed.push((place.as_bytes().to_vec(), error));
        }
    }
    made
}

/// Gives the directories their modes and times, the deepest first, and brings the names in them to the disk.
pub(super) fn finish(job: &Job<'_>, made: &Made, fetched: &mut Fetched) {
    let settle = |place: &StorePath, change: Option<Change>| -> StoreResult<()> {
        job.store.sync(std::slice::from_ref(place))?;
        change.map_or(Ok(()), |change| job.store.change(place, &change))
    };
    for ((place, meta), state) in job.plan.dirs.iter().zip(&made.states).rev() {
        let Some(state) = *state else { continue };
        let change = job.dress.filled_dir(*meta, state);
        if let Err(error) = settle(place, change.filter(|_| job.store.abilities().modes)) {
            fetched.failed.push((place.as_bytes().to_vec(), error.into()));
        }
    }
    let places = job.plan.files.iter().map(|file| &file.to);
    let parents = places.filter(|place| !made.blocked.is_above(place)).filter_map(StorePath::split);
    let mut parents: Vec<StorePath> = parents.map(|(dir, _)| dir).collect();
    parents.sort_unstable();
    parents.dedup();
    if let Err(error) = job.store.sync(&parents) {
        fetched.failed.push((b".".to_vec(), error.into()));
    }
}
