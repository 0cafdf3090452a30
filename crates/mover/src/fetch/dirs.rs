//! The directories and the links of a transfer, which need no bytes.

use super::{FetchError, Fetched, Job};
use crate::blocked::Blocked;
use crate::choice::{InTheWay, Link, LinkAction};
use crate::dress::{DirMeta, DirState, Dress, Times};
use crate::links::LinkTimes;
use crate::{links, many};
use hikyaku_store::{Change, ErrorKind, Found, Kind, Op, Result as StoreResult, StorePath};
use hikyaku_transfer::{Durable, Pass};
use std::collections::HashSet;

/// What became of the directories.
#[derive(Default)]
pub(super) struct Made {
    /// Of each in their order; `None` if it is not there.
    states: Vec<Option<DirState>>,
    /// Those that could not be made.
    pub(super) blocked: Blocked,
}

impl Made {
    /// The directories that were made, and not found there.
    pub(super) fn new_dirs<'j>(&self, job: &'j Job<'_>) -> HashSet<&'j StorePath> {
        let dirs = job.plan.dirs.iter().zip(&self.states);
        dirs.filter(|(_, state)| **state == Some(DirState::Made)).map(|((dir, _), _)| dir).collect()
    }
}

/// Creates the directories, and the links, which need no bytes.
pub(super) fn make(job: &Job<'_>, fetched: &mut Fetched) -> Made {
    let made = dirs(job, fetched);
    // As with directories.
    let times = match (job.times, job.dress) {
        (Times::Kept, Dress::Kept) => LinkTimes::Kept,
        _ => LinkTimes::New,
    };
    for (place, link) in wanted_links(job, &made.blocked) {
        if let Err(error) = links::make(&*job.store, place, link, (job.existing, times)) {
            fetched.failed.push((place.as_bytes().to_vec(), error.into()));
        }
    }
    made
}

/// Tells which links would be made, and which names of directories are taken by something else.
pub(super) fn rehearse(job: &Job<'_>, fetched: &mut Fetched) -> Made {
    let made = dirs(job, fetched);
    for (place, link) in wanted_links(job, &made.blocked) {
        let error = match links::decide(&*job.store, place, link, job.existing) {
            Ok(Some((LinkAction::Stay, _))) => continue,
            Ok(None | Some((LinkAction::Make, _))) => {
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

/// The links that the target gets. One that has no links gets none ([`Loss::Links`](crate::Loss::Links)).
fn wanted_links<'a>(
    job: &'a Job<'_>,
    blocked: &'a Blocked,
) -> impl Iterator<Item = &'a (StorePath, Link)> {
    let has_links = job.store.abilities().links;
    let is_wanted = move |(place, _): &&(StorePath, Link)| has_links && !blocked.is_above(place);
    job.plan.links.iter().filter(is_wanted)
}

/// Makes each directory, or finds it there: level by level, those of a level at once.
fn dirs(job: &Job<'_>, fetched: &mut Fetched) -> Made {
    let dirs = &job.plan.dirs;
    let (mut states, mut blocked) = (vec![None; dirs.len()], Blocked::default());
    for mut level in many::levels(dirs.iter().map(|(place, _)| place)) {
        // What is above it could not be made, which was told.
        level.retain(|number| !blocked.is_above(&dirs[*number].0));
        for (number, state) in level.iter().zip(level_of(job, &level)) {
            let place = &dirs[*number].0;
            states[*number] = state.as_ref().ok().copied();
            if let Err(error) = state {
                blocked.add(place);
                fetched.failed.push((place.as_bytes().to_vec(), error));
            }
        }
    }
    Made { states, blocked }
}

/// The same with the directories of these numbers.
fn level_of(job: &Job<'_>, level: &[usize]) -> Vec<Result<DirState, FetchError>> {
    let place = |number: &usize| &job.plan.dirs[*number].0;
    if job.pass == Pass::DryRun {
        return many::look(&*job.store, level.iter().map(place)).into_iter().map(there).collect();
    }
    let op = |number: &usize| {
        let (place, meta) = &job.plan.dirs[*number];
        Op::MakeDir(place, job.dress.new_dir(meta.mode))
    };
    let made = many::all(&*job.store, &level.iter().map(op).collect::<Vec<_>>());
    let exists =
        |made: &StoreResult<_>| made.as_ref().is_err_and(|error| error.kind == ErrorKind::Exists);
    let old = level.iter().zip(&made).filter(|(_, made)| exists(made)).map(|(number, _)| number);
    let mut found = many::look(&*job.store, old.map(place)).into_iter();
    let mut state = |made: StoreResult<_>| match made {
        Err(error) if error.kind == ErrorKind::Exists => {
            found.next().map_or_else(|| Err(error.into()), there)
        }
        made => Ok(made.map(|_| DirState::Made)?),
    };
    made.into_iter().map(&mut state).collect()
}

/// What the name of a directory means for it.
fn there(found: StoreResult<Option<Found>>) -> Result<DirState, FetchError> {
    match found? {
        None => Ok(DirState::Made),
        Some(found) if found.kind == Kind::Dir => Ok(DirState::There),
        Some(_) => Err(FetchError::InTheWay(InTheWay::NoDirectory)),
    }
}

/// The changes of the directories of these numbers after they are filled.
fn changes<'a>(
    job: &'a Job<'_>,
    (level, made): (&[usize], &Made),
    fetched: &mut Fetched,
) -> Vec<(&'a StorePath, Change)> {
    let clock = job.store.abilities().clock;
    let dirs = level.iter().filter_map(|&number| {
        let (place, meta) = &job.plan.dirs[number];
        Some((place, *meta, made.states[number]?))
    });
    let dirs: Vec<_> = dirs.collect();
    let lent = |(place, meta, state): &(&'a StorePath, DirMeta, DirState)| {
        Some((*place, job.dress.lent_by_store(meta.mode, *state)?))
    };
    let lent: Vec<_> = dirs.iter().filter_map(lent).collect();
    let found = many::look(&*job.store, lent.iter().map(|(place, _)| *place));
    let mut all = Vec::new();
    for ((place, lent), found) in lent.into_iter().zip(found) {
        match found {
            Ok(Some(found)) => {
                let mode = Some(found.mode & !lent);
                all.push((place, Change { mode, ..Change::default() }));
            }
            Ok(None) => {}
            Err(error) => fetched.failed.push((place.as_bytes().to_vec(), error.into())),
        }
    }
    for (place, meta, state) in dirs {
        let modified = meta.modified.filter(|_| job.times == Times::Kept);
        let kept = modified.filter(|time| clock.kept(*time).is_some());
        let Some(change) = job.dress.filled_dir(DirMeta { modified: kept, ..meta }, state) else {
            continue;
        };
        if modified != kept && job.dress == Dress::Kept {
            fetched.failed.push((place.as_bytes().to_vec(), FetchError::NoTime));
        }
        all.push((place, change));
    }
    all
}

/// Brings the names in the directories to the disk, and gives the directories their modes and times, the deepest first.
pub(super) fn finish(job: &Job<'_>, made: &Made, fetched: &mut Fetched) {
    let dirs = job.plan.dirs.iter().zip(&made.states);
    let mut places: Vec<StorePath> =
        dirs.filter(|(_, state)| state.is_some()).map(|((place, _), _)| place.clone()).collect();
    let files = job.plan.files.iter().map(|file| &file.to);
    let files = files.filter(|place| !made.blocked.is_above(place));
    places.extend(files.filter_map(|place| Some(place.split()?.0)));
    places.extend(job.plan.parents.iter().cloned());
    places.sort_unstable();
    places.dedup();
    if job.writing.durable == Durable::Disk
        && let Err(error) = job.store.sync(&places)
    {
        fetched.failed.push((error.path.clone().into_bytes(), error.into()));
    }
    if !job.store.abilities().modes {
        return;
    }
    for level in many::levels(job.plan.dirs.iter().map(|(place, _)| place)).into_iter().rev() {
        let changes = changes(job, (&level, made), fetched);
        let ops: Vec<Op<'_>> =
            changes.iter().map(|(place, change)| Op::Change(place, change)).collect();
        for ((place, _), changed) in changes.iter().zip(many::all(&*job.store, &ops)) {
            if let Err(error) = changed {
                fetched.failed.push((place.as_bytes().to_vec(), error.into()));
            }
        }
    }
}
