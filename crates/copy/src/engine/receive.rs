//! The end that writes.

mod before;
mod files;

use super::disk::{Disk, Job};
use super::fault::{Fault, Stopped};
use super::gather::{Cargo, Layout, Manifest, gather};
use super::incoming::{Incoming, News};
use super::journal::JournalFile;
use super::landing::{Landing, Making};
use super::pending::Pending;
use super::sync::{Active, sync};
use super::talk::{In, TalkError};
use super::{Ends, Options, SMALL};
use crate::memory::open_files;
use crate::patterns::Allowed;
use anyhow::{Result, anyhow};
use hikyaku_fs::{Dir, PeerPath, Shown, sentence};
use hikyaku_net::Connection;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_transfer::{Entry, EntryId, EntryKind, FromReceiver, FromSender, Remains, decode};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Threads that hash and write. Two fill a disk; more wait for one together.
const WRITERS: usize = 4;
/// Jobs that wait for them: 8 MB.
const JOBS: usize = 8;
/// Files that wait for their names, at most.
const NAMES: usize = 8192;
/// A copy that gets nothing for so long gives way to another attempt at the same: the sender may have
/// moved to another network, and ssh not noticed yet.
const STILL: Duration = Duration::from_secs(3);
/// How often the sender is told how far we are.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Receives what comes into `target`; returns when all of it is there, or at a fault.
pub(crate) fn receive(ends: Ends<'_>, target: &Path) {
    let Ends { connection, mut incoming, outgoing, fault, meter, options, allowed } = ends;
    let opened = begin(&mut incoming, target, options);
    let (landing, of) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            fault.report(error);
            return;
        }
    };
    let (journal, remains) = match options.rehearsal {
        true => (JournalFile::none(), BTreeMap::new()),
        false => JournalFile::open(&landing.place(of)),
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
    };
    let finished = scoped(connection, incoming, &disk, (&landing, allowed), remains);
    if finished.is_ok() && !fault.is_there() {
        drop(disk);
        journal.remove();
        if outgoing.say(&FromReceiver::Finished).is_err() {
            fault.report(anyhow!("cannot tell the sender that all is there"));
        }
    }
}

/// The first message, and what the target means by it.
fn begin(incoming: &mut In, target: &Path, options: &Options) -> Result<(Landing, [u8; 32])> {
    let body = incoming.next()?.ok_or(TalkError::Cut)?;
    match decode::<FromSender>(body)? {
        (FromSender::Begin { sources, of }, _) => {
            let making = if options.rehearsal { Making::Nothing } else { Making::Allowed };
            Ok((Landing::open(target, sources, of, making)?, of))
        }
        _ => Err(anyhow!("the sender does not begin as it should")),
    }
}

fn scoped(
    connection: &Connection,
    incoming: In,
    disk: &Disk<'_>,
    (landing, allowed): (&Landing, &Allowed),
    remains: BTreeMap<Vec<u8>, Remains>,
) -> Result<(), Stopped> {
    let (jobs, queue) = sync_channel::<Job>(JOBS);
    // Each is held open.
    let (names, written) = sync_channel(NAMES.min(open_files() / 4));
    let queue = Mutex::new(queue);
    let manifest = Manifest::default();
    let stop = Stop::default();
    thread::scope(|scope| {
        scope.spawn(move || disk.name_all(&written));
        for _ in 0..WRITERS {
            let names = names.clone();
            let queue = &queue;
            scope.spawn(move || disk.work(queue, &names));
        }
        drop(names);
        let syncer = disk.options.durable.then(|| scope.spawn(|| sync(disk, &stop)));
        let teller = scope.spawn(|| tell(disk, &stop));
        let object_jobs = jobs.clone();
        let (manifest, told) = (&manifest, &stop);
        let acceptor =
            scope.spawn(move || accept(scope, connection, manifest, object_jobs, disk.fault, told));
        let mut receiver = Receiver {
            disk,
            landing,
            allowed,
            manifest,
            jobs,
            remains,
            files: HashMap::new(),
            dirs: Vec::new(),
            last_dir: None,
            umask: umask(),
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
        scope.spawn(move || gather(object, manifest, &jobs, fault));
    }
}

/// Tells the sender how far we are, until it is over.
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
            disk.fault
                .report(anyhow!("the same copy was begun again, and goes on in place of this"));
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
    manifest: &'a Manifest,
    jobs: SyncSender<Job>,
    remains: BTreeMap<Vec<u8>, Remains>,
    files: HashMap<EntryId, Arc<Incoming>>,
    /// Directories whose mode and times are set when nothing is written into them any more.
    dirs: Vec<(PeerPath, u32, (i64, u32))>,
    last_dir: Option<(Option<PeerPath>, Arc<Dir>)>,
    umask: u32,
}

impl Receiver<'_> {
    fn say(&self, message: &FromReceiver) -> Result<(), Stopped> {
        self.disk.out.say(message).map_err(|error| self.disk.fault.report(error))
    }

    fn all(&mut self, mut incoming: In) -> Result<(), Stopped> {
        let fault = self.disk.fault;
        let all_named = Stop::default();
        let mut has_ended = false;
        loop {
            let body = incoming.next_until(&all_named).map_err(|error| fault.report(error))?;
            let Some(body) = body else {
                if has_ended && all_named.is_set() {
                    break;
                }
                return Err(fault.report(anyhow!("the sending end stopped before it had finished")));
            };
            let (message, tail) =
                decode::<FromSender>(body).map_err(|error| fault.report(error))?;
            if message.tail() != tail.len() as u64 {
                return Err(fault.report(anyhow!("the sender sent bytes that it did not speak of")));
            }
            if fault.is_there() {
                return Err(Stopped);
            }
            match message {
                FromSender::End => {
                    self.disk.meter.set_counted();
                    has_ended = true;
                    // What did not arrive as it was read is sent again behind this.
                    self.disk.pending.watch(&all_named);
                }
                message => self.one(message, tail)?,
            }
        }
        self.disk.pending.wait(fault)?;
        self.discard_leftovers();
        self.finish_dirs();
        if fault.is_there() { Err(Stopped) } else { Ok(()) }
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
            FromSender::Data { id, object, ranges } => {
                let cargo = match self.files.get(&id).cloned() {
                    // It could not be made, or not be read to its end.
                    None => None,
                    Some(incoming) => {
                        let Some(layout) = Layout::new(incoming.file, &ranges) else {
                            let error = anyhow!("the sender speaks of ranges that are none");
                            return Err(self.disk.fault.report(error));
                        };
                        Some(Cargo { incoming, layout })
                    }
                };
                self.manifest.tell(object, cargo, self.disk.fault)?;
            }
            FromSender::Segments { id, first, hashes } => {
                self.with(id, |incoming| Ok(incoming.expect(first, &hashes)))?;
            }
            FromSender::Holes { id, holes } => {
                self.with(id, |incoming| incoming.add_holes(&holes))?;
            }
            FromSender::Read { id } => self.with(id, |incoming| Ok(incoming.read()))?,
            FromSender::Unreadable { id, why } => {
                self.disk.meter.add_failure(sentence(&why));
                if let Some(incoming) = id.and_then(|id| self.files.remove(&id))
                    && let Some(new) = incoming.give_up()
                {
                    // What has come of it is void.
                    let _ = new.discard(&incoming.plan.dir);
                    self.disk.pending.done();
                }
            }
            FromSender::Begin { .. } | FromSender::End => {
                return Err(self.disk.fault.report(anyhow!("the sender begins twice")));
            }
        }
        Ok(())
    }

    fn with(
        &mut self,
        id: EntryId,
        tell: impl FnOnce(&Incoming) -> Result<News>,
    ) -> Result<(), Stopped> {
        let Some(incoming) = self.files.get(&id).cloned() else { return Ok(()) };
        let news = tell(&incoming).map_err(|error| self.disk.fault.report(error))?;
        if let Some(new) = self.disk.on_news(&incoming, news) {
            self.files.remove(&id);
            // The pool lives as long as this thread.
            let _ = self.jobs.send(Job::Finish(incoming, new));
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<(), Stopped> {
        if self.disk.options.rehearsal {
            return self.rehearse(&entry);
        }
        let made = match &entry.kind {
            EntryKind::Dir => self.make_dir(&entry),
            EntryKind::Link(to) => self.make_link(&entry, to),
            EntryKind::File { size } => return self.begin_file(&entry, *size),
        };
        if let Err(error) = made {
            self.disk.pending.add();
            self.disk.fail::<()>(&entry.path, &error);
        }
        Ok(())
    }

    fn place(&self, entry: &Entry) -> Result<PeerPath, Stopped> {
        // No honest sender has such a path.
        let options = self.disk.options;
        let is_deep = entry.path.contains(&b'/') || entry.kind == EntryKind::Dir;
        let is_link = matches!(entry.kind, EntryKind::Link(_));
        let is_unasked = (is_deep && !options.recursive && options.files.is_empty())
            || (is_link && !options.keep_links);
        if is_unasked || !self.allowed.admits(&entry.path) {
            let shown = Shown::new(&entry.path);
            return Err(self
                .disk
                .fault
                .report(anyhow!("the other end sends {shown}, which was not asked for")));
        }
        self.landing.locate(&entry.path).map_err(|error| {
            let shown = Shown::new(&entry.path);
            self.disk.fault.report(anyhow!("the sender wants to write {shown}: {error}"))
        })
    }
}

/// The bits that new files do not get. It can only be read by being set, once: private files are what
/// we want until they have their modes.
fn umask() -> u32 {
    static USERS: OnceLock<u32> = OnceLock::new();
    *USERS.get_or_init(|| {
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO).bits()
    })
}
