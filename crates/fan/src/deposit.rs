//! Uploads into a store that this machine writes to itself, such as a Gfarm file system.
//!
//! Several threads copy whole files at once, the largest first; the store chooses the machine that gets a file.

use crate::choice::{Action, LinkAction, Older, Pass, action, action_of_link};
use crate::dress::{DirState, Dress};
use crate::meter::Meter;
use crate::upload::{Pace, UploadError, UploadFile, UploadPlan, Uploaded};
use hikyaku_remote::Seen;
use hikyaku_run_log::FileStage;
use hikyaku_store::{
    Access, ErrorKind, Finish, Found, Kind, Make, Naming, Store, StoreError, StorePath,
};
use hikyaku_units::Rate;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

/// What is to be copied into a store.
pub struct DepositJob<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// Files, directories and links.
    pub plan: &'a UploadPlan,
    /// What happens to files of the same name.
    pub older: Older,
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
    if job.pass == Pass::Rehearsal {
        return Ok(rehearse(job));
    }
    let mut done = Uploaded::default();
    let mut dirs = job.plan.parents.clone();
    dirs.extend(job.plan.dirs.iter().map(|(path, _)| path.clone()));
    let mut states = Vec::new();
    for (path, meta) in &job.plan.dirs {
        let made = make_dir(job.store, path, job.dress.new_dir(meta.mode));
        states.push(made.unwrap_or_else(|error| {
            done.fail(path, error);
            DirState::There
        }));
    }
    for (path, text) in &job.plan.links {
        make_link(job, path, text).unwrap_or_else(|error| done.fail(path, error));
    }
    let mut files: Vec<&UploadFile> = job.plan.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.seen.size));
    let (next, all, pace) = (AtomicUsize::new(0), Mutex::new(done), Pace::new(job.rate));
    let work = || {
        let mut block = vec![0; BLOCK_BYTES];
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let copied = copy_again(job, file, &pace, &mut block);
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
        let change = job.dress.filled_dir(*meta, state).filter(|_| job.store.abilities().modes);
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

    fn add(&mut self, file: &UploadFile, copied: Result<Copied, UploadError>, meter: &Meter) {
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
            _ => Err(StoreError::new("make the directory", path, ErrorKind::NotDir).into()),
        },
        made => Ok(made.map(|()| DirState::Made)?),
    }
}

fn make_link(job: &DepositJob<'_>, path: &StorePath, text: &[u8]) -> Result<(), UploadError> {
    let (store, made) = (job.store, job.store.make_link(path, text));
    if made.as_ref().is_err_and(|error| error.kind == ErrorKind::Exists) {
        let kind = store.look(path)?.kind;
        let is_same = kind == Kind::Link && store.read_link(path)? == text;
        match action_of_link(job.older, is_same) {
            LinkAction::Stay => return Ok(()),
            LinkAction::Refuse => {}
            LinkAction::Replace => {
                store.remove(path, if kind == Kind::Dir { Kind::File } else { kind })?;
                return Ok(store.make_link(path, text)?);
            }
        }
    }
    Ok(made?)
}

/// What becomes of a file, and what has its name.
fn decide(job: &DepositJob<'_>, file: &UploadFile) -> Result<(Action, Option<Found>), UploadError> {
    let found = match job.store.look(&file.to) {
        Ok(found) => Some(found),
        Err(error) if error.kind == ErrorKind::NotFound => None,
        Err(error) => return Err(UploadError::Target(error)),
    };
    Ok((action(file.seen, found.as_ref(), job.older), found))
}

/// Tells what would be written.
fn rehearse(job: &DepositJob<'_>) -> Uploaded {
    let mut told = Uploaded::default();
    for (link, text) in &job.plan.links {
        let is_same = job.store.read_link(link).is_ok_and(|there| there == *text);
        match (job.store.look(link), action_of_link(job.older, is_same)) {
            (Ok(_), LinkAction::Stay) => continue,
            (Ok(_), LinkAction::Refuse) => {
                told.fail(link, StoreError::new("create", link, ErrorKind::Exists).into());
                continue;
            }
            (Err(_), _) | (_, LinkAction::Replace) => {}
        }
        told.would.push(link.as_bytes().to_vec());
    }
    for file in &job.plan.files {
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
    file: &UploadFile,
    pace: &Pace,
    block: &mut [u8],
) -> Result<Copied, UploadError> {
    let mut tries = 1;
    loop {
        match copy(job, file, pace, block) {
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
    file: &UploadFile,
    pace: &Pace,
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
    let open = file.source.open(&file.from, Access::Read)?;
    let changed = || StoreError::new("read", &file.from, ErrorKind::Changed);
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
            pace.wait(length as u64, is_over);
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
