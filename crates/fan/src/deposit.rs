//! Uploads into a store that this machine writes to itself, such as a Gfarm file system.
//!
//! Several threads copy whole files at once, the largest first; the store chooses the machine that gets a file.

use crate::blocked::Blocked;
use crate::census::File;
use crate::choice::{Action, InTheWay, LinkAction, action};
use crate::dress::{DirState, Dress};
use crate::links;
use crate::meter::Meter;
use crate::plan::Plan;
use crate::upload::{UploadError, Uploaded};
use hikyaku_remote::Seen;
use hikyaku_run_log::FileStage;
use hikyaku_store::{
    Access, ErrorKind, Finish, Found, Kind, Make, Naming, Store, StoreError, StorePath,
};
use hikyaku_transfer::{Existing, Limit, Pass};
use hikyaku_units::Rate;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

/// What is to be copied into a store.
pub struct DepositJob<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// The store that has the files.
    pub source: &'a dyn Store,
    /// Files, directories and links.
    pub plan: &'a Plan,
    /// What happens to files of the same name.
    pub existing: Existing,
    /// Whether anything is written.
    pub pass: Pass,
    /// Which permission bits files and directories get.
    pub dress: Dress,
    /// The rate of all files together; `None` for no limit.
    pub rate: Option<Rate>,
    /// How far it is. It needs no servers.
    pub meter: &'a Meter,
    /// Ends the copy early when it is set.
    pub stop: &'a AtomicBool,
}

/// Files that are copied at once: over a long path each waits for round trips most of the time.
const THREADS: usize = 16;
/// Bytes that are read and written at once.
const BLOCK_BYTES: usize = 1 << 20;
/// A file whose machine is lost is tried so many times in all.
const TRIES: usize = 3;

/// Copies everything. Returns when each file has its name and is on the disk, or has failed.
///
/// # Errors
///
/// The machine has no room for another thread.
pub fn deposit(job: &DepositJob<'_>) -> io::Result<Uploaded> {
    if job.pass == Pass::DryRun {
        return Ok(rehearse(job));
    }
    let mut done = Uploaded::default();
    let mut dirs = job.plan.parents.clone();
    let (mut states, mut blocked) = (Vec::new(), Blocked::default());
    for (path, meta) in &job.plan.dirs {
        // What is above it could not be made, which was told.
        if blocked.is_above(path) {
            states.push(None);
            continue;
        }
        let made = make_dir(job.store, path, job.dress.new_dir(meta.mode));
        states.push(made.as_ref().ok().copied());
        match made {
            Ok(_) => dirs.push(path.clone()),
            Err(error) => {
                blocked.add(path);
                done.fail(path, error);
            }
        }
    }
    for (path, link) in job.plan.links.iter().filter(|(path, _)| !blocked.is_above(path)) {
        let made = links::make(job.store, path, link, job.existing);
        made.unwrap_or_else(|error| done.fail(path, error.into()));
    }
    let files = job.plan.files.iter().filter(|file| !blocked.is_above(&file.to));
    let mut files: Vec<&File> = files.collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.seen.size));
    let (next, all, limit) = (AtomicUsize::new(0), Mutex::new(done), Limit::new(job.rate));
    let work = || {
        let mut block = vec![0; BLOCK_BYTES];
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let copied = copy_again(job, file, &limit, &mut block);
            all.lock().unwrap_or_else(PoisonError::into_inner).add(file, copied, job.meter);
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS.min(files.len()) {
            thread::Builder::new().name("deposit".to_owned()).spawn_scoped(scope, work)?;
        }
        Ok::<_, io::Error>(())
    })?;
    let mut done = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    for ((path, meta), state) in job.plan.dirs.iter().zip(states).rev() {
        let change = state.and_then(|state| job.dress.filled_dir(*meta, state));
        let change = change.filter(|_| job.store.abilities().modes);
        let set = change.map_or(Ok(()), |change| job.store.change(path, &change));
        set.unwrap_or_else(|error| done.fail(path, error.into()));
    }
    dirs.push(StorePath::ROOT);
    if let Err(error) = job.store.sync(&dirs) {
        done.fail(&StorePath::ROOT, error.into());
    }
    Ok(done)
}

impl Uploaded {
    fn fail(&mut self, path: &StorePath, error: UploadError) {
        self.failed.push((path.as_bytes().to_vec(), error));
    }

    fn add(&mut self, file: &File, copied: Result<Copied, UploadError>, meter: &Meter) {
        match copied {
            Ok(Copied::Sent) => {
                self.files += 1;
                self.bytes += file.seen.size;
                meter.add_file();
                meter.tell_file(FileStage::End, file.to.as_bytes(), file.seen.size);
            }
            Ok(Copied::Kept) => {
                self.kept += 1;
                meter.add_kept(file.seen.size);
                meter.add_file();
            }
            Err(error) => {
                meter.tell_file(FileStage::Failed, file.to.as_bytes(), file.seen.size);
                self.fail(&file.to, error);
            }
        }
    }
}

/// What became of a file.
enum Copied {
    Sent,
    Kept,
}

fn make_dir(store: &dyn Store, path: &StorePath, mode: u32) -> Result<DirState, UploadError> {
    match store.make_dir(path, mode) {
        Err(error) if error.kind == ErrorKind::Exists => match store.look(path)?.kind {
            Kind::Dir => Ok(DirState::There),
            _ => Err(UploadError::InTheWay(InTheWay::NoDirectory)),
        },
        made => Ok(made.map(|()| DirState::Made)?),
    }
}

/// What becomes of a file, and what has its name.
fn decide(job: &DepositJob<'_>, file: &File) -> Result<(Action, Option<Found>), UploadError> {
    let found = match job.store.look(&file.to) {
        Ok(found) => Some(found),
        Err(error) if error.kind == ErrorKind::NotFound => None,
        Err(error) => return Err(UploadError::Target(error)),
    };
    Ok((action(file.seen, found.as_ref(), job.existing), found))
}

/// Tells what would be written.
fn rehearse(job: &DepositJob<'_>) -> Uploaded {
    let mut told = Uploaded::default();
    let mut blocked = Blocked::default();
    for (path, _) in &job.plan.dirs {
        let is_other = || job.store.look(path).is_ok_and(|found| found.kind != Kind::Dir);
        if !blocked.is_above(path) && is_other() {
            blocked.add(path);
            told.fail(path, UploadError::InTheWay(InTheWay::NoDirectory));
        }
    }
    for (path, link) in job.plan.links.iter().filter(|(path, _)| !blocked.is_above(path)) {
        match links::decide(job.store, path, link, job.existing) {
            Ok(Some((LinkAction::Stay, _))) => {}
            Ok(None | Some((LinkAction::Make, _))) => told.would.push(path.as_bytes().to_vec()),
            Ok(Some((LinkAction::Refuse(way), _))) => told.fail(path, UploadError::InTheWay(way)),
            Err(error) => told.fail(path, error.into()),
        }
    }
    for file in job.plan.files.iter().filter(|file| !blocked.is_above(&file.to)) {
        match decide(job, file).map(|(action, _)| action) {
            Ok(Action::Write) => told.would.push(file.to.as_bytes().to_vec()),
            Ok(Action::Stay | Action::Same) => {
                told.kept += 1;
                job.meter.add_kept(file.seen.size);
            }
            Ok(Action::Refuse(way)) => told.fail(&file.to, UploadError::InTheWay(way)),
            Err(error) => told.fail(&file.to, error),
        }
    }
    told
}

/// Copies a file, again where the machine that got it was lost.
fn copy_again(
    job: &DepositJob<'_>,
    file: &File,
    limit: &Limit,
    block: &mut [u8],
) -> Result<Copied, UploadError> {
    let mut tries = 1;
    loop {
        match copy(job, file, limit, block) {
            Err(UploadError::Target(error)) if is_lost(error.kind) && tries < TRIES => tries += 1,
            copied => return copied,
        }
    }
}

const fn is_lost(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::Gone)
}

fn copy(
    job: &DepositJob<'_>,
    file: &File,
    limit: &Limit,
    block: &mut [u8],
) -> Result<Copied, UploadError> {
    let is_over = || job.stop.load(Ordering::Relaxed);
    if is_over() {
        return Err(UploadError::Stopped);
    }
    let target = UploadError::Target;
    let (action, there) = decide(job, file)?;
    match action {
        Action::Write => {}
        Action::Stay => return Ok(Copied::Kept),
        Action::Same => {
            let change = there.and_then(|there| job.dress.same_file(file.mode, &there));
            let change = change.filter(|_| job.store.abilities().modes);
            change.map_or(Ok(()), |change| job.store.change(&file.to, &change)).map_err(target)?;
            return Ok(Copied::Kept);
        }
        Action::Refuse(way) => return Err(UploadError::InTheWay(way)),
    }
    let open = job.source.open(&file.path.clone().into(), Access::Read)?;
    let changed = || StoreError::new("read", &file.path.clone().into(), ErrorKind::Changed);
    if Seen::from(&open.found()?) != file.seen {
        return Err(changed().into());
    }
    job.meter.tell_file(FileStage::Begin, file.to.as_bytes(), file.seen.size);
    let make = Make { size: Some(file.seen.size), modified: Some(file.seen.modified) };
    let draft = job.store.create(&file.to, &make).map_err(target)?;
    let mut at = 0;
    let mut write_all = || {
        while at < file.seen.size {
            if is_over() {
                return Err(UploadError::Stopped);
            }
            let length = (file.seen.size - at).min(block.len() as u64) as usize;
            if open.read_at(at, &mut block[..length])? != length {
                return Err(changed().into());
            }
            limit.wait(length as u64, is_over);
            draft.write_at(at, &block[..length]).map_err(target)?;
            at += length as u64;
            job.meter.add_written(length as u64);
        }
        match Seen::from(&open.found()?) == file.seen && open.is_unchanged()? {
            true => draft.sync().map_err(target),
            false => Err(changed().into()),
        }
    };
    let written = write_all();
    let finish = Finish {
        mode: Some(job.dress.file(file.mode, there.as_ref())),
        modified: Some(file.seen.modified),
        ..Finish::default()
    };
    let named =
        written.and_then(|()| draft.name(Naming::Replace, &finish).map(drop).map_err(target));
    if named.is_err() {
        job.meter.take_back_written(at);
    }
    named.map(|()| Copied::Sent)
}

#[cfg(test)]
mod tests;
