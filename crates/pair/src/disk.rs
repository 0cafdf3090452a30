//! Writing: a pool of threads that hash and write arriving segments. Complete files wait for their names in `naming.rs`.

use super::failure::{failure, place};
use super::fault::{Fault, Stopped};
use super::flush::Active;
use super::incoming::{Incoming, Lie, News, Plan};
use super::naming::Written;
use super::pending::Pending;
use super::room::Room;
use super::said::Said;
use super::slots::Slot;
use super::{Options, SMALL};
use crate::error::PairError;
use crossbeam_queue::SegQueue;
use hikyaku_fs::Volumes;
use hikyaku_fs::{Draft, FsError, Manner, Meta, Stream, Token, Zeros, set_attribute};
use hikyaku_job::{End, JournalFile, Meter};
use hikyaku_reach::Out;
use hikyaku_transfer::{
    Durable, Failure, FailureKind, FileHash, FromReceiver, Record, SegmentHash, Verify, Whole,
};
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

/// Work for the pool.
pub(crate) enum Job {
    /// A segment of a large file; its buffer goes back there.
    Segment(Arc<Incoming>, Whole, Arc<SegQueue<Vec<u8>>>),
    /// A small file.
    Small(Small),
    /// A large file whose segments are all proven.
    Finish(Arc<Incoming>),
    /// A complete file that came as a stream.
    Poured(Poured),
}

/// A small file as it arrived.
pub(crate) struct Small {
    pub(crate) plan: Plan,
    pub(crate) bytes: Vec<u8>,
    /// The expected hash.
    pub(crate) hash: FileHash,
    /// The destination, if it is no regular file.
    pub(crate) stream: Option<Stream>,
    pub(crate) slot: Slot,
}

/// A file whose length was not known; all of it is written.
pub(crate) struct Poured {
    pub(crate) plan: Plan,
    pub(crate) draft: Arc<Draft>,
    pub(crate) size: u64,
    pub(crate) hash: FileHash,
    pub(crate) slot: Slot,
}

/// State that all writing threads share.
pub(crate) struct Disk<'a> {
    pub(crate) options: &'a Options,
    pub(crate) journal: &'a JournalFile,
    pub(crate) meter: &'a Meter,
    pub(crate) fault: &'a Fault,
    pub(crate) pending: &'a Pending,
    pub(crate) out: Out,
    pub(crate) active: Active,
    pub(crate) volumes: Volumes,
    /// The destination directory, as a user of this host writes it.
    pub(crate) base: PathBuf,
    /// For files that wait for their names.
    pub(crate) unnamed: Room,
    /// In the names of this copy's unfinished files.
    pub(crate) token: Token,
    pub(crate) said: Said,
}

impl Disk<'_> {
    /// Runs a thread of the pool until the queue of jobs is closed. Written files go to `names`.
    pub(crate) fn work(&self, queue: &Mutex<Receiver<Job>>, names: &SyncSender<Written>) {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = next else { return };
            if self.fault.is_there() {
                continue;
            }
            let written = match job {
                Job::Segment(incoming, whole, back) => self.segment(&incoming, whole, &back),
                Job::Small(small) => self.small(small),
                Job::Finish(incoming) => self.finish(&incoming),
                Job::Poured(poured) => self.poured(poured),
            };
            if let Some(written) = written {
                self.unnamed.take(written.plan.held());
                // The receiving thread outlives all senders.
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
            self.give_up(incoming, &error);
            return None;
        }
        let news =
            incoming.arrived(whole.index, hash).map_err(|lie| self.fault.report(lie)).ok()?;
        if news.is_new {
            self.meter.add_bytes(whole.bytes.len() as u64);
        }
        back.push(whole.bytes);
        if self.on_news(incoming, news) == Next::Finish { self.finish(incoming) } else { None }
    }

    /// Journals proven segments and requests damaged ones again.
    pub(crate) fn on_news(&self, incoming: &Incoming, news: News) -> Next {
        let path = incoming.plan.path.as_bytes();
        if news.is_damaged {
            if incoming.give_up() {
                // A damaged file cannot be resumed.
                incoming.draft.discard();
                let why = "does not arrive as it was read; run the same command again";
                self.lose(path, FailureKind::Damaged, why);
            }
            return Next::GoOn;
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
        if news.is_whole { Next::Finish } else { Next::GoOn }
    }

    fn finish(&self, incoming: &Incoming) -> Option<Written> {
        // If this fails, the place is released.
        let slot = incoming.take_slot();
        let (plan, draft) = (incoming.plan.clone(), incoming.draft.clone());
        // Wait for a thread that still writes a segment that was sent twice.
        drop(incoming.turn());
        let dressed = draft.set_length(plan.size).map(|()| self.dress(&plan, &draft));
        let ready = dressed.and_then(|()| {
            // A file of this size is synced by itself, while other threads write.
            if self.options.rules.durable == Durable::Disk { draft.sync() } else { Ok(()) }
        });
        if let Err(error) = ready {
            self.void(incoming, &error);
            return None;
        }
        self.check(&plan, &draft, || incoming.is_on_disk_as_it_was())?;
        let hash = incoming.hash_at_hand();
        self.meter.add_hash(plan.path.as_bytes(), || hash.or_else(|| incoming.hash()));
        self.meter.file_ends(plan.path.as_bytes(), plan.size);
        Some(Written { plan, draft, hash, is_synced: true, slot })
    }

    fn poured(&self, poured: Poured) -> Option<Written> {
        let Poured { plan, draft, size, hash, slot } = poured;
        if let Err(error) = draft.set_length(size) {
            draft.discard();
            self.fail(plan.path.as_bytes(), &error);
            return None;
        }
        self.dress(&plan, &draft);
        self.check(&plan, &draft, || Ok(hash_of(&draft, size)? == hash))?;
        Some(self.written(plan, draft, hash, slot))
    }

    /// A file that waits for its name, and is synced together with others.
    fn written(&self, plan: Plan, draft: Arc<Draft>, hash: FileHash, slot: Slot) -> Written {
        self.meter.add_hash(plan.path.as_bytes(), || Some(hash));
        let (hash, slot) = (Some(hash), Some(slot));
        Written { plan, draft, hash, is_synced: false, slot }
    }

    // spec: copy-small-1
    fn small(&self, small: Small) -> Option<Written> {
        let Small { mut plan, bytes, hash, stream, slot } = small;
        if blake3::hash(&bytes).as_bytes() != &hash.0 {
            self.fault.report(PairError::ended(format_args!(
                "{}: not the bytes that were sent",
                plan.path.shown()
            )));
            return None;
        }
        let written = self.create(&plan, stream).and_then(|draft| {
            match plan.manner {
                Manner::Stream | Manner::Renamed => draft.write_at(0, &bytes, Zeros::Written)?,
                Manner::InPlace => {
                    draft.write_at(0, &bytes, Zeros::Written)?;
                    draft.set_length(plan.size)?;
                }
            }
            self.attach(&plan, &draft);
            self.dress(&plan, &draft);
            Ok(Arc::new(draft))
        });
        // The attributes are set. The plan waits without them.
        plan.attributes = Vec::new();
        match written {
            Ok(draft) => {
                self.check(&plan, &draft, || reads_as(&draft, &bytes))?;
                self.meter.add_bytes(bytes.len() as u64);
                self.meter.file_at_once(plan.path.as_bytes(), bytes.len() as u64);
                Some(self.written(plan, draft, hash, slot))
            }
            Err(error) => {
                self.fail(plan.path.as_bytes(), &error);
                None
            }
        }
    }

    /// Begins a file. If the directory is not writable but the old file is, the error names `--inplace`.
    pub(crate) fn create(&self, plan: &Plan, stream: Option<Stream>) -> Result<Draft, FsError> {
        plan.open(&self.token, stream).map_err(|error| {
            let is_denied = error.errno() == Some(rustix::io::Errno::ACCESS);
            if is_denied && plan.manner == Manner::Renamed && plan.dir.may_write(&plan.name) {
                return FsError::OnlyInPlace { path: plan.path.shown().to_string() };
            }
            error
        })
    }

    /// Reads a file again, if the user asked for it. If the bytes differ, the disk is bad or another process writes to the
    /// file, and the file is discarded.
    fn check(
        &self,
        plan: &Plan,
        draft: &Draft,
        is_right: impl FnOnce() -> Result<bool, FsError>,
    ) -> Option<()> {
        if self.options.rules.verify == Verify::Arrived || draft.manner() == Manner::Stream {
            return Some(());
        }
        match is_right() {
            Ok(true) => return Some(()),
            Ok(false) => {
                draft.discard();
                let why = "the disk gives back other bytes than were written";
                self.lose(plan.path.as_bytes(), FailureKind::Damaged, why);
            }
            Err(error) => {
                draft.discard();
                self.fail(plan.path.as_bytes(), &error);
            }
        }
        None
    }

    /// Sets extended attributes. Without them the file is complete as well: some file systems support none.
    pub(crate) fn attach(&self, plan: &Plan, draft: &Draft) {
        if plan.manner == Manner::Stream {
            return;
        }
        for attribute in &plan.attributes {
            let set = |file: &File| set_attribute(file, &attribute.name, &attribute.value);
            if let Err(error) = draft.with(set) {
                self.undressed(plan.path.as_bytes(), &error);
            }
        }
    }

    /// Sets owner, mode and times.
    fn dress(&self, plan: &Plan, draft: &Draft) {
        if plan.manner == Manner::Stream {
            return;
        }
        let path = plan.path.as_bytes();
        if let Some(owner) = plan.owner
            && let Err(error) = draft.with(|file| Meta::set_owner(file, owner))
        {
            self.undressed(path, &error);
        }
        if plan.manner == Manner::Renamed || self.options.rules.preserve.modes() {
            let moded = draft.with(|file| Meta::set_mode(file, plan.mode));
            self.on_mode(path, moded);
        }
        if self.options.rules.preserve.times()
            && let Err(error) = draft.with(|file| Meta::set_modified(file, plan.modified))
        {
            self.undressed(path, &error);
        }
    }

    /// Reports a mode that cannot be set: as a failure if the user asked to keep modes, otherwise as a remark.
    pub(crate) fn on_mode(&self, path: &[u8], set: Result<(), FsError>) {
        match set {
            Err(error) if self.options.rules.preserve.modes() => self.undressed(path, &error),
            Err(error) if self.said.is_first_remark() => {
                let place = String::from_utf8_lossy(&place(&self.base, path)).into_owned();
                let text = format!(
                    "{place}: {}; such files have the mode that the file system gives",
                    error.reason()
                );
                self.tell(&FromReceiver::Remark { text });
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Reports a file without some of its metadata.
    pub(crate) fn undressed(&self, path: &[u8], error: &FsError) {
        let failure = failure(&self.base, path, error);
        if self.said.is_news(path, failure.kind) {
            self.meter.add_failure(End::Here, &failure);
            self.tell(&FromReceiver::Incomplete { failure });
        } else {
            self.meter.count_failure();
        }
    }

    /// Gives up a file that cannot be written. Further bytes of it are discarded.
    pub(crate) fn give_up(&self, incoming: &Incoming, error: &FsError) {
        if !incoming.give_up() {
            return;
        }
        if !error.is_fatal() {
            incoming.draft.discard();
        }
        self.fail(incoming.plan.path.as_bytes(), error);
    }

    /// Gives up a file whose sync failed: none of its written bytes can be relied on.
    pub(crate) fn void(&self, incoming: &Incoming, error: &FsError) {
        let path = incoming.plan.path.as_bytes();
        self.journal.append(&[Record::Void { path: path.to_vec() }]);
        incoming.draft.discard();
        self.fail(path, error);
    }

    /// Reports a file that cannot be written. If further files would fail for the same reason, the copy ends.
    pub(crate) fn fail(&self, path: &[u8], error: &FsError) {
        let failure = failure(&self.base, path, error);
        if error.is_fatal() {
            self.fault.report(super::failure::Fatal::new(failure));
        } else {
            self.complain(path, failure);
        }
        self.pending.done();
    }

    /// Reports a file that is lost for this reason.
    pub(crate) fn lose(&self, path: &[u8], kind: FailureKind, why: &str) {
        let place = place(&self.base, path);
        self.complain(path, Failure { place, kind, text: why.to_owned() });
        self.pending.done();
    }

    /// Reports a failure at both ends. A cause that many files of a directory share is reported once.
    pub(crate) fn complain(&self, path: &[u8], failure: Failure) {
        self.meter.remove_hash(path);
        let failure = self.said.is_news(path, failure.kind).then_some(failure);
        match &failure {
            Some(failure) => self.meter.add_failure(End::Here, failure),
            None => self.meter.count_failure(),
        }
        self.tell(&FromReceiver::Failed { path: path.to_vec(), failure });
    }

    /// Sends a message to the sender.
    pub(crate) fn tell(&self, message: &FromReceiver) {
        if let Err(error) = self.out.say(message) {
            self.fault.report(error);
        }
    }

    /// Ends the copy, because the sender breaks the protocol.
    pub(crate) fn caught(&self, lie: Lie) -> Stopped {
        self.fault.report(lie)
    }
}

/// The next step for a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Segments are missing, or the file was given up.
    GoOn,
    /// The file is complete.
    Finish,
}

/// The hash of a file's bytes on the disk.
fn hash_of(draft: &Draft, size: u64) -> Result<FileHash, FsError> {
    draft.sync()?;
    draft.forget_cache()?;
    let (mut all, mut at, mut bytes) = (blake3::Hasher::new(), 0, vec![0; SMALL as usize]);
    while at < size {
        let length = bytes.len().min(usize::try_from(size - at).unwrap_or(usize::MAX));
        draft.read_exact_at(at, &mut bytes[..length])?;
        all.update(&bytes[..length]);
        at += length as u64;
    }
    Ok(FileHash(*all.finalize().as_bytes()))
}

fn reads_as(draft: &Draft, bytes: &[u8]) -> Result<bool, FsError> {
    let mut found = vec![0; bytes.len()];
    draft.read_exact_at(0, &mut found)?;
    Ok(found == bytes)
}
