//! The receiving end of a copy.

mod before;
mod budget;
mod dirs;
mod files;
mod leftovers;
mod place;
mod pour;
mod tree;

use super::disk::{Disk, Job, Next};
use super::failure::Fatal;
use super::fault::{Fault, Stopped};
use super::flush::{Active, SyncEvery, sync};
use super::gather::{Cargo, Manifest, gather};
use super::incoming::{Incoming, Lie, News};
use super::landing::{Descriptors, Landing, Making};
use super::pending::Pending;
use super::room::Room;
use super::said::Said;
use super::slots::{Slot, Slots};
use super::threads;
use super::{Ends, Options, SMALL};
use crate::error::PairError;
use budget::MOST_HELD;
use dirs::Dirs;
use hikyaku_fs::{FsError, Patience, PeerPath, Token, Volumes};
use hikyaku_job::{Allowed, Attempt, Claimant, End, JournalFile, Opened};
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_reach::Connection;
use hikyaku_reach::{In, TalkError};
use hikyaku_transfer::{
    Durable, Entry, EntryId, EntryKind, FailureKind, FromReceiver, FromSender, Layout, Pass,
    Remains, decode,
};
use pour::Pouring;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Maximum number of queued jobs for each thread that writes: 2 MB.
const JOBS: usize = 2;
/// Maximum number of files that wait for their names.
const NAMES: usize = 8192;
/// Time without data after which a copy ends in favour of a newer attempt at the same copy: the sender may have moved to
/// another network, which ssh has not noticed yet.
const STILL: Duration = Duration::from_secs(3);
/// Interval between reports of progress to the sender.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Interval between checks for a fault while the receiver waits for a place: a fault does not wake it.
const LOOK: Duration = Duration::from_millis(50);

/// Settings of the receiving end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Writing {
    pub(crate) descriptors: Descriptors,
    pub(crate) sync_every: SyncEvery,
    /// Maximum number of open files.
    pub(crate) places: usize,
}

/// Receives a copy into `target`. Returns when it is complete, or at a fault.
pub(crate) fn receive(ends: Ends<'_>, target: &Path, writing: Writing) {
    let Ends { connection, mut incoming, outgoing, fault, meter, options, allowed, claims } = ends;
    let begun = begin(connection, &mut incoming, target, options, writing.descriptors);
    let (landing, Opened { journal, remains, attempt }) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            fault.report(error);
            return;
        }
    };
    let pending = Pending::default();
    let disk = Disk {
        options,
        journal: &journal,
        meter,
        fault,
        pending: &pending,
        out: outgoing.clone(),
        active: Active::default(),
        volumes: Volumes::default(),
        base: landing.path().to_path_buf(),
        unnamed: Room::new(MOST_HELD),
        token: journal.token(),
        said: Said::default(),
    };
    let scene = Scene { landing: &landing, allowed, claims, attempt, writing };
    let finished = scoped(connection, incoming, &disk, scene, remains);
    if let Ok(sequel) = finished
        && !fault.is_there()
    {
        drop(disk);
        match sequel {
            Sequel::None => journal.remove(),
            Sequel::Wanted => {}
        }
        if outgoing.say(&FromReceiver::Finished).is_err() {
            fault.report(PairError::ended("cannot tell the sender that everything has arrived"));
        }
    }
}

/// Whether a later attempt has to continue this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sequel {
    None,
    /// Its journal stays.
    Wanted,
}

/// The destination of a copy, and the entries that are allowed there.
#[derive(Clone, Copy)]
struct Scene<'a> {
    landing: &'a Landing,
    allowed: &'a Allowed,
    claims: Claimant<'a>,
    attempt: Attempt,
    writing: Writing,
}

/// Reads the first message. Returns the destination, and the unfinished files of earlier attempts.
fn begin(
    connection: &Connection,
    incoming: &mut In,
    target: &Path,
    options: &Options,
    descriptors: Descriptors,
) -> Result<(Landing, Opened), PairError> {
    let body = incoming.hear()?.ok_or(TalkError::Cut)?;
    let (FromSender::Begin { sources, of, from }, _) = decode::<FromSender>(body)? else {
        return Err(PairError::ended("the sender does not begin as it should"));
    };
    let making = match options.rules.pass == Pass::DryRun {
        true => Making::Nothing,
        false => Making::Allowed(patience(connection)),
    };
    let landing = Landing::open(target, sources, of, (making, descriptors))?;
    let opened = match options.rules.pass == Pass::DryRun || landing.is_stream() {
        true => {
            let journal = JournalFile::none(Token::random()?);
            Opened { journal, remains: BTreeMap::new(), attempt: Attempt::First }
        }
        false => JournalFile::open(&landing.place(of), &from)?,
    };
    Ok((landing, opened))
}

fn scoped(
    connection: &Connection,
    incoming: In,
    disk: &Disk<'_>,
    scene: Scene<'_>,
    remains: BTreeMap<Vec<u8>, Remains>,
) -> Result<Sequel, Stopped> {
    let (jobs, queue) = sync_channel::<Job>(JOBS * threads::that_write());
    let (names, written) = sync_channel(NAMES);
    let queue = Mutex::new(queue);
    let manifest = Manifest::default();
    let stop = Stop::default();
    thread::scope(|scope| {
        scope.spawn(move || disk.name_all(&written));
        for _ in 0..threads::that_write() {
            let names = names.clone();
            let queue = &queue;
            scope.spawn(move || disk.work(queue, &names));
        }
        drop(names);
        let (every, until) = (scene.writing.sync_every, &stop);
        let syncer = (disk.options.rules.durable == Durable::Disk)
            .then(|| scope.spawn(move || sync(disk, every, until)));
        let teller = scope.spawn(|| tell(disk, &stop));
        let object_jobs = jobs.clone();
        let (manifest, told) = (&manifest, &stop);
        let acceptor =
            scope.spawn(move || accept(scope, connection, manifest, object_jobs, disk.fault, told));
        let mut receiver = Receiver {
            disk,
            landing: scene.landing,
            allowed: scene.allowed,
            claims: scene.claims,
            attempt: scene.attempt,
            manifest,
            jobs,
            slots: Slots::new(scene.writing.places),
            remains,
            files: HashMap::new(),
            pouring: None,
            holes: 0,
            expected: 0,
            held: 0,
            dirs: Dirs::default(),
            partials: BTreeSet::new(),
            swept: BTreeSet::new(),
            unswept: 0,
            umask: hikyaku_fs::umask(),
        };
        let done = receiver.begin().and_then(|()| receiver.all(incoming));
        stop.set();
        acceptor.thread().unpark();
        teller.thread().unpark();
        syncer.iter().for_each(|syncer| syncer.thread().unpark());
        done
    })
}

/// Reads objects, each on a thread of its own: a sender has a few open at a time.
fn accept<'scope>(
    scope: &'scope Scope<'scope, '_>,
    connection: &'scope Connection,
    manifest: &'scope Manifest,
    jobs: SyncSender<Job>,
    fault: &'scope Fault,
    stop: &'scope Stop,
) {
    loop {
        let object = match wait(connection.accept_object(), stop, None) {
            Ok(Ok(object)) => object,
            Err(_) => return,
            Ok(Err(_)) if stop.is_set() => return,
            Ok(Err(error)) => {
                fault.report(error);
                return;
            }
        };
        let jobs = jobs.clone();
        scope.spawn(move || gather(object, manifest, &jobs, (fault, stop)));
    }
}

/// Reports progress to the sender until the copy ends.
fn tell(disk: &Disk<'_>, stop: &Stop) {
    let (mut bytes, mut files, mut moved) = (0, 0, Instant::now());
    loop {
        let over = stop.is_set() || disk.fault.is_there();
        let tally = disk.meter.tally();
        let sent = tally.sent();
        if sent > bytes || tally.files > files {
            let message = FromReceiver::Progress {
                bytes: sent.saturating_sub(bytes),
                files: tally.files - files,
            };
            if disk.out.say(&message).is_err() {
                return;
            }
            (bytes, files, moved) = (sent, tally.files, Instant::now());
        } else if moved.elapsed() > STILL && disk.journal.is_wanted() {
            disk.fault.report(PairError::ended(
                "the same copy was begun again, and goes on in place of this",
            ));
            return;
        }
        if over {
            return;
        }
        stop.sleep(TELL_EVERY);
    }
}

/// The thread that follows the sender's messages.
struct Receiver<'a> {
    disk: &'a Disk<'a>,
    landing: &'a Landing,
    allowed: &'a Allowed,
    claims: Claimant<'a>,
    attempt: Attempt,
    manifest: &'a Manifest,
    jobs: SyncSender<Job>,
    slots: Arc<Slots>,
    remains: BTreeMap<Vec<u8>, Remains>,
    files: HashMap<EntryId, Arc<Incoming>>,
    /// The current file without a known length.
    pouring: Option<Pouring>,
    /// Runs of holes from the sender, of files that are not complete.
    holes: usize,
    /// Hashes from the sender since the last count of those whose segments have not arrived.
    expected: usize,
    /// Memory of files that began since the last count of those that are not complete, in bytes.
    held: usize,
    dirs: Dirs,
    /// Names of unfinished files in the journal.
    partials: BTreeSet<Vec<u8>>,
    /// Directories that were searched for leftovers.
    swept: BTreeSet<(u64, u64)>,
    /// Number of them that could not be listed.
    unswept: usize,
    umask: u32,
}

impl Receiver<'_> {
    fn say(&self, message: &FromReceiver) -> Result<(), Stopped> {
        self.disk.out.say(message).map_err(|error| self.disk.fault.report(error))
    }

    /// Takes a place for one more open file. No message of the sender is read meanwhile, so one of the open files must be
    /// able to become complete without one.
    fn slot(&self) -> Result<Slot, Stopped> {
        loop {
            if let Some(slot) = self.slots.take(LOOK) {
                return Ok(slot);
            }
            if self.disk.fault.is_there() {
                return Err(Stopped);
            }
            let limit = self.slots.limit();
            if self.files.values().filter(|file| file.awaits_a_word()).count() >= limit {
                let text = format!(
                    "the sender begins more files at once than this process may have open ({limit})"
                );
                let error = Fatal::of(FailureKind::TooManyFiles, text);
                let advice = "try: a larger limit of open files (ulimit -n) at the end that writes";
                return Err(self.disk.fault.report(error.with_remedy(advice)));
            }
        }
    }

    /// Whether a later attempt has to continue this one. Unfinished files of earlier attempts, also in directories that this
    /// attempt did not reach, are useful while anything has failed, and only the journal names them.
    fn sequel(&self) -> Sequel {
        let is_all_done = self.disk.meter.kinds().is_empty() && self.unswept == 0;
        match self.attempt {
            Attempt::Later if !is_all_done => Sequel::Wanted,
            Attempt::First | Attempt::Later | Attempt::Beside => Sequel::None,
        }
    }

    fn all(&mut self, mut incoming: In) -> Result<Sequel, Stopped> {
        let fault = self.disk.fault;
        let all_named = Stop::default();
        let mut has_ended = false;
        loop {
            let body = incoming.hear_until(&all_named).map_err(|error| fault.report(error))?;
            let Some(body) = body else {
                if has_ended && all_named.is_set() {
                    break;
                }
                return Err(fault
                    .report(PairError::ended("the sending end stopped before it had finished")));
            };
            let (message, tail) =
                decode::<FromSender>(body).map_err(|error| fault.report(error))?;
            // spec: copy-msg-2
            if message.tail() != tail.len() as u64 {
                return Err(fault
                    .report(PairError::ended("the sender sent bytes that it did not speak of")));
            }
            if fault.is_there() {
                return Err(Stopped);
            }
            match message {
                FromSender::End => {
                    if self.pouring.is_some() {
                        return Err(fault
                            .report(PairError::ended("the sender ends before its stream does")));
                    }
                    self.disk.meter.set_counted();
                    has_ended = true;
                    // Damaged segments are sent again after this message.
                    self.disk.pending.watch(&all_named);
                }
                message => self.one(message, tail)?,
            }
        }
        self.disk.pending.wait(fault)?;
        if self.sequel() == Sequel::None {
            self.discard_leftovers();
        }
        self.finish_dirs().map_err(|error| fault.report(error))?;
        if fault.is_there() { Err(Stopped) } else { Ok(self.sequel()) }
    }

    fn one(&mut self, message: FromSender, tail: &[u8]) -> Result<(), Stopped> {
        match message {
            FromSender::Same { bytes } => {
                self.disk.meter.add_kept(bytes);
                self.disk.meter.add_file();
            }
            FromSender::Total { files, bytes } => self.disk.meter.set_total(files, bytes),
            FromSender::Path(path) => self.disk.meter.set_path(path),
            FromSender::Entry(entry) => self.entry(entry)?,
            FromSender::Small { entry, hash } => self.small(&entry, hash, tail)?,
            FromSender::Stream(entry) => self.begin_stream(&entry)?,
            FromSender::Piece { id, hash, .. } => self.piece(id, hash, tail)?,
            FromSender::Last { id, size, hash } => self.end_stream(id, size, hash)?,
            FromSender::Data { id, object, ranges } => {
                let cargo = match self.files.get(&id).cloned() {
                    // The file could not be created, or the sender could not read it.
                    None => None,
                    Some(incoming) => {
                        let Some(layout) = Layout::new(incoming.file, &ranges) else {
                            let error =
                                PairError::ended("the sender speaks of ranges that are none");
                            return Err(self.disk.fault.report(error));
                        };
                        Some(Cargo { incoming, layout })
                    }
                };
                self.manifest.tell(object, cargo, self.disk.fault)?;
            }
            FromSender::Segments { id, first, hashes } => {
                self.with(id, |incoming| incoming.expect(first, &hashes))?;
                self.count_expected(hashes.len())?;
            }
            FromSender::Holes { id, holes } => self.add_holes(id, &holes)?,
            FromSender::Read { id } => self.with(id, |incoming| Ok(incoming.read()))?,
            // spec: copy-unread-1
            FromSender::Unreadable { id, failure } => {
                self.disk.meter.add_failure(End::There, &failure);
                self.drop_stream(id);
                if let Some(incoming) = id.and_then(|id| self.files.remove(&id))
                    && incoming.give_up()
                {
                    // The arrived part of it is invalid.
                    incoming.draft.discard();
                    self.disk.pending.done();
                }
            }
            // spec: copy-begin-1
            FromSender::Begin { .. } | FromSender::End => {
                return Err(self.disk.fault.report(PairError::ended("the sender begins twice")));
            }
        }
        Ok(())
    }

    fn with(
        &mut self,
        id: EntryId,
        tell: impl FnOnce(&Incoming) -> Result<News, Lie>,
    ) -> Result<(), Stopped> {
        let Some(incoming) = self.files.get(&id).cloned() else { return Ok(()) };
        let news = tell(&incoming).map_err(|lie| self.disk.caught(lie))?;
        if self.disk.on_news(&incoming, news) == Next::Finish {
            self.files.remove(&id);
            // The pool outlives this thread.
            let _ = self.jobs.send(Job::Finish(incoming));
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<(), Stopped> {
        if self.disk.options.rules.pass == Pass::DryRun {
            return self.rehearse(&entry);
        }
        match &entry.kind {
            EntryKind::File { size } => self.begin_file(&entry, *size),
            EntryKind::Dir => {
                let Some(path) = self.free_place(&entry)? else { return Ok(()) };
                if let Err(error) = self.make_dir(&entry, &path) {
                    self.not_made(&path, &error);
                    // Nothing in it can be created either, for this reason.
                    self.disk.said.is_missing(path.as_bytes());
                }
                Ok(())
            }
            EntryKind::Link(text) => {
                let Some(path) = self.free_place(&entry)? else { return Ok(()) };
                if let Err(error) = self.make_link((&entry, text), &path) {
                    self.not_made(&path, &error);
                }
                Ok(())
            }
        }
    }

    /// Reports a directory or link that cannot be made.
    fn not_made(&self, path: &PeerPath, error: &FsError) {
        self.disk.pending.add();
        self.disk.fail(path.as_bytes(), error);
    }
}

/// Patience with a FIFO while the connection is open: a process that continued after that would never end.
fn patience(connection: &Connection) -> Patience {
    let connection = connection.clone();
    Patience::new(move || connection.close_reason().is_none())
}
