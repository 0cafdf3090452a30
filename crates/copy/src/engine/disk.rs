//! Writing: a pool that hashes and writes what arrives, and one thread that gives names to groups of
//! files that are whole.

use super::Options;
use super::fault::Fault;
use super::incoming::{Incoming, News, Plan};
use super::journal::JournalFile;
use super::meter::Meter;
use super::pending::Pending;
use super::sync::Active;
use super::talk::Out;
use crate::memory::open_files;
use anyhow::{Context, anyhow};
use crossbeam_queue::SegQueue;
use hikyaku_fs::{FsError, Manner, Meta, NewFile, Replace, set_attribute};
use hikyaku_transfer::{FileHash, FromReceiver, Record, SegmentHash, Whole};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

/// Work for the pool.
pub(crate) enum Job {
    /// A segment of a large file; its buffer goes back there.
    Segment(Arc<Incoming>, Whole, Arc<SegQueue<Vec<u8>>>),
    /// A small file, the hash it must have, and what to write into if that is no plain file.
    Small(Plan, Vec<u8>, FileHash, Option<File>),
    /// A large file that is all there.
    Finish(Arc<Incoming>, NewFile),
}

/// A file that only lacks its name.
pub(crate) struct Written {
    plan: Plan,
    new: NewFile,
    /// If it is known.
    hash: Option<FileHash>,
    /// Its content has reached the disk.
    is_synced: bool,
}

/// What all who write share.
pub(crate) struct Disk<'a> {
    pub(crate) options: &'a Options,
    pub(crate) journal: &'a JournalFile,
    pub(crate) meter: &'a Meter,
    pub(crate) fault: &'a Fault,
    pub(crate) pending: &'a Pending,
    pub(crate) out: Out,
    pub(crate) active: Active,
}

/// Files that get their names together, at most: a group is what has come while the last one was
/// synced.
const GROUP: usize = 4096;
/// From so many files on, all of the file system is synced at once: one wait for the disk in place of
/// thousands.
const SYNC_ALL: usize = 8;

impl Disk<'_> {
    /// What a thread of the pool does, until nobody can give it work. What it has written waits at
    /// `names` for its name.
    pub(crate) fn work(&self, queue: &Mutex<Receiver<Job>>, names: &SyncSender<Written>) {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = next else { return };
            if self.fault.is_there() {
                continue;
            }
            let written = match job {
                Job::Segment(incoming, whole, back) => self.segment(&incoming, whole, &back),
                Job::Small(plan, bytes, hash, stream) => self.small(plan, &bytes, hash, stream),
                Job::Finish(incoming, new) => self.finish(&incoming, new),
            };
            if let Some(written) = written {
                // The thread that takes these lives as long as anybody who gives them.
                let _ = names.send(written);
            }
        }
    }

    fn segment(
        &self,
        incoming: &Incoming,
        whole: Whole,
        back: &SegQueue<Vec<u8>>,
    ) -> Option<Written> {
        let hash = SegmentHash::new(incoming.file, whole.index, &whole.bytes)?;
        if let Err(error) = incoming.write(whole.index, &whole.bytes) {
            self.fault.report(FsError::io("write", incoming.plan.path.as_bytes(), &error));
            return None;
        }
        let news = incoming.arrived(whole.index, hash);
        if news.is_new {
            self.meter.add_bytes(whole.bytes.len() as u64);
        }
        back.push(whole.bytes);
        let new = self.on_news(incoming, news)?;
        self.finish(incoming, new)
    }

    /// Journals what is proven and asks for what is wrong; gives the file if it is whole.
    pub(crate) fn on_news(&self, incoming: &Incoming, news: News) -> Option<NewFile> {
        let path = incoming.plan.path.as_bytes();
        if news.is_damaged {
            let shown = incoming.plan.path.shown();
            let why = "does not arrive as it was read; run the same command again";
            if let Some(new) = incoming.give_up() {
                // It is of no use to anybody.
                let _ = new.discard(&incoming.plan.dir);
                self.complain(path, format!("{shown}: {why}"));
                self.pending.done();
            }
            return None;
        }
        let records: Vec<Record> = news
            .proven
            .iter()
            .map(|&(first, hash)| Record::Segments {
                path: path.to_vec(),
                first,
                hashes: vec![hash],
            })
            .collect();
        if !records.is_empty() {
            self.journal.append(&records);
        }
        if !news.again.is_empty() {
            let again = FromReceiver::Again { id: incoming.id, segments: news.again };
            if let Err(error) = self.out.say(&again) {
                self.fault.report(error);
            }
        }
        news.whole
    }

    fn finish(&self, incoming: &Incoming, new: NewFile) -> Option<Written> {
        let plan = incoming.plan.clone();
        // Who still writes the same bytes again has done so by now.
        drop(incoming.turn());
        let dressed = new.set_length(plan.size).and_then(|()| self.dress(&plan, &new));
        let ready = dressed.and_then(|()| {
            // Each file of this size is worth a wait of its own, beside others that are written.
            if self.options.durable { new.sync() } else { Ok(()) }
        });
        incoming.close();
        if let Err(error) = ready {
            return self.fail(plan.path.as_bytes(), &error);
        }
        if self.can_verify(&new) && !incoming.is_on_disk_as_it_was(new.file()) {
            return self.damaged(&plan, new);
        }
        let hash = incoming.hash_at_hand();
        self.meter.add_hash(plan.path.as_bytes(), || hash.or_else(|| incoming.hash()));
        Some(Written { plan, new, hash, is_synced: true })
    }

    fn small(
        &self,
        plan: Plan,
        bytes: &[u8],
        hash: FileHash,
        stream: Option<File>,
    ) -> Option<Written> {
        if blake3::hash(bytes).as_bytes() != &hash.0 {
            self.fault.report(anyhow!("{}: not the bytes that were sent", plan.path.shown()));
            return None;
        }
        let new = plan.open(stream).and_then(|new| {
            new.file()
                .write_all(bytes)
                .map_err(|error| FsError::io("write", plan.path.as_bytes(), &error))?;
            if plan.manner == Manner::InPlace {
                new.set_length(plan.size)?;
            }
            self.dress(&plan, &new)?;
            Ok(new)
        });
        match new {
            Ok(new) if self.can_verify(&new) && !reads_as(&new, bytes) => self.damaged(&plan, new),
            Ok(new) => {
                self.meter.add_bytes(bytes.len() as u64);
                self.meter.add_hash(plan.path.as_bytes(), || Some(hash));
                Some(Written { plan, new, hash: Some(hash), is_synced: false })
            }
            Err(error) => self.fail(plan.path.as_bytes(), &error),
        }
    }

    /// Whether it is to be read again, and can be.
    fn can_verify(&self, new: &NewFile) -> bool {
        self.options.verify && new.manner() != Manner::Stream
    }

    /// What was written reads otherwise: a bad disk, or somebody else who writes to the file.
    fn damaged(&self, plan: &Plan, new: NewFile) -> Option<Written> {
        // It is of no use to anybody.
        let _ = new.discard(&plan.dir);
        let shown = plan.path.shown();
        self.complain(
            plan.path.as_bytes(),
            format!("{shown}: the disk gives back other bytes than were written"),
        );
        self.pending.done();
        None
    }

    /// Mode, times and attributes, by the open file.
    fn dress(&self, plan: &Plan, new: &NewFile) -> Result<(), FsError> {
        if plan.manner == Manner::Stream {
            return Ok(());
        }
        let path = plan.path.as_bytes();
        for attribute in &plan.attributes {
            if let Err(error) = set_attribute(new.file(), &attribute.name, &attribute.value) {
                self.complain(path, format!("{}: {error}", plan.path.shown()));
            }
        }
        if plan.manner == Manner::Renamed || self.options.preserve {
            Meta::set_mode(new.file(), plan.mode)?;
        }
        if self.options.preserve {
            Meta::set_modified(new.file(), plan.modified)?;
        }
        Ok(())
    }

    /// One file cannot be made; where the next would meet the same it is the end of all.
    pub(crate) fn fail<T>(&self, path: &[u8], error: &FsError) -> Option<T> {
        if error.is_fatal() {
            self.fault.report(anyhow!("{error}"));
        } else {
            self.complain(path, error.to_string());
        }
        self.pending.done();
        None
    }

    /// Tells both ends.
    pub(crate) fn complain(&self, path: &[u8], why: String) {
        self.meter.add_failure(why.clone());
        self.meter.remove_hash(path);
        if let Err(error) = self.out.say(&FromReceiver::Failed { path: path.to_vec(), why }) {
            self.fault.report(error);
        }
    }

    /// Names files, group after group, until nobody writes any more.
    pub(crate) fn name_all(&self, written: &Receiver<Written>) {
        while let Ok(first) = written.recv() {
            let mut group = vec![first];
            while group.len() < GROUP.min(open_files() / 4)
                && let Ok(next) = written.try_recv()
            {
                group.push(next);
            }
            if !self.fault.is_there() {
                self.group(group);
            }
        }
    }

    fn group(&self, group: Vec<Written>) {
        if self.options.durable
            && let Err(error) = sync_contents(&group)
        {
            self.fault.report(error);
            return;
        }
        let mut dirs = BTreeMap::new();
        let mut done = Vec::new();
        for Written { plan, new, hash, .. } in group {
            let partial = new.partial().clone();
            match new.commit(&plan.dir, &plan.name, Replace::Allowed) {
                Ok(_) => {
                    dirs.entry(Arc::as_ptr(&plan.dir)).or_insert_with(|| plan.dir.clone());
                    done.push((plan, hash));
                }
                Err(error) => {
                    // A directory has the name, or somebody took the file away.
                    let _ = plan.dir.remove_file(&partial);
                    self.complain(plan.path.as_bytes(), error.to_string());
                    self.pending.done();
                }
            }
        }
        if self.options.durable
            && let Some(error) = dirs.values().find_map(|dir| dir.sync().err())
        {
            self.fault.report(error);
            return;
        }
        let records: Vec<Record> = done
            .iter()
            .map(|(plan, hash)| Record::Done {
                path: plan.path.as_bytes().to_vec(),
                size: plan.size,
                modified: plan.modified,
                hash: *hash,
            })
            .collect();
        self.journal.append(&records);
        self.meter.add_files(done.len() as u64);
        done.iter().for_each(|_| self.pending.done());
    }
}

fn reads_as(new: &NewFile, bytes: &[u8]) -> bool {
    let mut found = vec![0; bytes.len()];
    new.file().read_exact_at(&mut found, 0).is_ok() && found == bytes
}

fn sync_contents(group: &[Written]) -> anyhow::Result<()> {
    let mut unsynced = group.iter().filter(|written| !written.is_synced);
    if unsynced.clone().count() < SYNC_ALL {
        return Ok(unsynced.try_for_each(|written| written.new.sync())?);
    }
    // One call for each file system; a tree may span some.
    let mut devices = Vec::new();
    for written in unsynced {
        let device = Meta::of(written.new.file())?.identity.0;
        if !devices.contains(&device) {
            devices.push(device);
            rustix::fs::syncfs(written.new.file().as_fd())
                .context("cannot sync the file system")?;
        }
    }
    Ok(())
}
