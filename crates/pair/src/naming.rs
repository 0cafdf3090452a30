//! Giving names: files that are whole wait for each other, are brought to the disk together, and get
//! their names in groups.

use super::disk::Disk;
use super::incoming::Plan;
use super::slots::Slot;
use hikyaku_fs::{Draft, FsError, Manner, Meta, Replace};
use hikyaku_transfer::{Done, Durable, FileHash, Reached, Record, Version};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A file that only lacks its name.
pub(crate) struct Written {
    pub(crate) plan: Plan,
    pub(crate) draft: Arc<Draft>,
    /// If it is known.
    pub(crate) hash: Option<FileHash>,
    /// Its content has reached the disk.
    pub(crate) is_synced: bool,
    /// Its place among the open files.
    pub(crate) slot: Option<Slot>,
}

/// Maximum number of files in a group, which get their names together: those that arrived while the last group was synced.
const GROUP: usize = 4096;
/// Number of files from which on their whole file system is synced: one wait for the disk in place of thousands.
const SYNC_ALL: usize = 8;
/// Threads that sync files one by one: a network file system answers each after a round trip.
const SYNCERS: usize = 8;

impl Disk<'_> {
    /// Names files, group after group, until all writers have ended.
    pub(crate) fn name_all(&self, written: &Receiver<Written>) {
        while let Ok(first) = written.recv() {
            let mut group = vec![first];
            while group.len() < GROUP
                && let Ok(next) = written.try_recv()
            {
                group.push(next);
            }
            let held = group.iter().map(|written| written.plan.held()).sum();
            if !self.fault.is_there() {
                self.group(group);
            }
            self.unnamed.give(held);
        }
    }

    fn group(&self, mut group: Vec<Written>) {
        if self.options.rules.durable == Durable::Disk {
            group = self.sync_contents(group);
        }
        let (mut dirs, mut done) = (BTreeMap::new(), Vec::new());
        for Written { plan, draft, hash, slot, .. } in group {
            match draft.name(Replace::Allowed) {
                Ok(made) => {
                    dirs.entry(Arc::as_ptr(&plan.dir)).or_insert_with(|| plan.dir.clone());
                    // Its directory is open until it is synced.
                    done.push((plan, made, hash, slot));
                }
                // A directory has the name, or the file could not be stored when it was closed.
                Err(error) => self.fail(plan.path.as_bytes(), &error),
            }
        }
        if self.options.rules.durable == Durable::Disk
            && let Some(error) = dirs.values().find_map(|dir| dir.sync().err())
        {
            self.fault.report(error.about(self.base.as_os_str().as_encoded_bytes()));
            return;
        }
        let records =
            done.iter().filter_map(|(plan, made, hash, _)| self.record(plan, *made, *hash));
        self.journal.append(&records.collect::<Vec<_>>());
        self.meter.add_files(done.len() as u64);
        done.iter().for_each(|_| self.pending.done());
    }

    /// The journal's record of a complete file; `None` for a stream, or if the file's metadata could not be read.
    fn record(&self, plan: &Plan, made: Option<Meta>, hash: Option<FileHash>) -> Option<Record> {
        let made = made.filter(|_| plan.manner != Manner::Stream)?;
        Some(Record::Done(Done {
            path: plan.path.as_bytes().to_vec(),
            size: plan.size,
            version: plan.version,
            made: Version::of(&made.version()),
            hash,
            reached: if self.options.rules.durable == Durable::Disk {
                Reached::Disk
            } else {
                Reached::Kernel
            },
        }))
    }

    /// Syncs the contents of files. Returns those that are on the disk; the others have failed.
    fn sync_contents(&self, group: Vec<Written>) -> Vec<Written> {
        let mut devices: BTreeMap<u64, usize> = BTreeMap::new();
        let waits =
            |written: &Written| !written.is_synced && written.plan.manner == Manner::Renamed;
        for written in group.iter().filter(|written| waits(written)) {
            *devices.entry(written.plan.device).or_default() += 1;
        }
        // A failure is somebody's: it is looked for file by file.
        devices.retain(|device, count| {
            *count >= SYNC_ALL
                && self.volumes.get(*device).is_some_and(|volume| volume.sync().is_ok())
        });
        let is_there =
            |w: &Written| w.is_synced || (waits(w) && devices.contains_key(&w.plan.device));
        let (mut there, others): (Vec<_>, Vec<_>) = group.into_iter().partition(is_there);
        for (written, synced) in sync_each(others) {
            match synced {
                Ok(()) => there.push(written),
                Err(error) => {
                    written.draft.discard();
                    self.fail(written.plan.path.as_bytes(), &error);
                }
            }
        }
        there
    }
}

/// Syncs files one by one, a few at a time.
fn sync_each(files: Vec<Written>) -> Vec<(Written, Result<(), FsError>)> {
    let threads = SYNCERS.min(files.len());
    if threads < 2 {
        return files.into_iter().map(synced).collect();
    }
    let (left, done) = (Mutex::new(files.into_iter()), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = next() {
                    let file = synced(file);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push(file);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn synced(file: Written) -> (Written, Result<(), FsError>) {
    let synced = file.draft.sync();
    (file, synced)
}
