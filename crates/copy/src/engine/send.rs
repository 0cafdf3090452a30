//! The end that reads.

use super::fault::{Fault, Stopped};
use super::lane::{Lane, Load, Readers};
use super::meter::Meter;
use super::read::{ReadSource, Source};
use super::talk::{In, Out};
use super::walk::{Found, FoundKind, Roots, walk};
use super::{Ends, SMALL};
use anyhow::anyhow;
use hikyaku_transfer::{
    Entry, EntryId, EntryKind, FileHash, FromReceiver, FromSender, Geometry, Kept, Proven,
    SegmentIndex, Sources, decode,
};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What is found ahead of the sender: some 10 MB of names.
const FOUND: usize = 1 << 15;
/// Small files read at once: so many wait for a disk together.
const SMALL_READERS: usize = 4;
const SEGMENT_READERS: usize = 2;
/// The other end is told how much there is after so many files.
const TELL_EVERY: u64 = 1000;

/// What the receiver said before the first byte was sent.
#[derive(Default)]
struct Before {
    kept: HashMap<Vec<u8>, (u64, (i64, u32), Kept)>,
    /// The one source's name at the target, where that is another.
    renamed: Option<Vec<u8>>,
}

impl Before {
    /// What there is at the target of the file that is `path` here, if it is of this size and time.
    fn kept(&self, path: &[u8], size: u64, modified: (i64, u32)) -> Option<&Kept> {
        let found = match &self.renamed {
            None => self.kept.get(path),
            Some(name) => {
                let below = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
                self.kept.get(&[name, &path[below..]].concat())
            }
        };
        let (then, when, kept) = found?;
        (*then == size && *when == modified).then_some(kept)
    }
}

/// A small file to be read.
struct Small {
    entry: Entry,
    here: PathBuf,
}

/// What the reader of the receiver's messages hands on.
struct Replies {
    ready: SyncSender<Before>,
    again: Sender<(EntryId, Vec<SegmentIndex>)>,
}

/// Sends everything beneath `roots`; returns when the receiver has finished, or at a fault.
pub(crate) fn send(ends: Ends<'_>, roots: &Roots) {
    let Ends { connection, incoming, outgoing, fault, meter, options, .. } = ends;
    // Complaints of the walk come behind it.
    let sources = if options.several { Sources::Several } else { roots.sources };
    if let Err(error) = outgoing.say(&FromSender::Begin { sources, of: roots.of }) {
        fault.report(error);
        return;
    }
    let (ready, is_ready) = sync_channel(1);
    let (again, is_again) = channel();
    let replies = Replies { ready, again };
    let (give, found) = sync_channel(FOUND);
    let (small, small_queue) = sync_channel(2 * SMALL_READERS);
    let small_queue = Mutex::new(small_queue);
    let readers = Readers::new();
    let segments = readers.queue();
    let lane = Lane { connection, out: outgoing.clone(), readers, fault };
    thread::scope(|scope| {
        scope.spawn(move || hear(incoming, replies, fault, meter));
        let complain = |out: Out| Complaints { out, meter, fault };
        let walk_complaints = complain(outgoing.clone());
        scope.spawn(move || walk(&roots.all, options, meter, &walk_complaints, fault, &give));
        for _ in 0..SEGMENT_READERS {
            scope.spawn(|| Readers::work(&segments));
        }
        let all_small: Vec<_> = (0..SMALL_READERS)
            .map(|_| {
                let complaints = complain(outgoing.clone());
                let queue = &small_queue;
                scope.spawn(move || read_small(queue, &complaints))
            })
            .collect();
        let mut feeder = Feeder {
            out: outgoing.clone(),
            lane,
            small,
            complaints: complain(outgoing),
            meter,
            fault,
            large: HashMap::new(),
            next: 0,
        };
        let before = is_ready.recv().map_err(|_| Stopped);
        let done = before.and_then(|before| feeder.all(&found, &before));
        drop(found);
        let Feeder { out, lane, small, large, complaints, .. } = feeder;
        drop(small);
        all_small.into_iter().for_each(|reader| drop(reader.join()));
        if done.is_ok() && out.say(&FromSender::End).is_ok() {
            repeat(&lane, &complaints, &large, &is_again);
        }
    });
}

/// Sends again what did not arrive as it was read, until the receiver has finished.
fn repeat(
    lane: &Lane<'_>,
    complaints: &Complaints<'_>,
    large: &HashMap<EntryId, PathBuf>,
    again: &Receiver<(EntryId, Vec<SegmentIndex>)>,
) {
    // The other half of the channel is dropped when the receiver has finished.
    while let Ok((id, segments)) = again.recv() {
        let Some(here) = large.get(&id) else { continue };
        let loaded =
            load(id, here.clone(), segments).map_err(Into::into).and_then(|load| lane.send(load));
        if let Err(error) = loaded
            && let Ok(error) = lane.judge(error)
        {
            complaints.say(Some(id), describe(&error));
        }
    }
}

fn load(id: EntryId, here: PathBuf, segments: Vec<SegmentIndex>) -> Result<Load, ReadSource> {
    let source = Source::open(&here)?;
    let changed = || ReadSource::Changed { path: super::walk::shown(&here) };
    let file = Geometry::new(source.meta().size).ok_or_else(changed)?;
    Ok(Load { id, here, source, file, segments })
}

/// What cannot be read: both ends are told, one of them has a user.
pub(super) struct Complaints<'a> {
    out: Out,
    meter: &'a Meter,
    fault: &'a Fault,
}

impl Complaints<'_> {
    pub(super) fn say(&self, id: Option<EntryId>, why: String) {
        self.meter.add_failure(why.clone());
        if let Err(error) = self.out.say(&FromSender::Unreadable { id, why }) {
            self.fault.report(error);
        }
    }
}

/// The thread that finds out what goes where.
struct Feeder<'a> {
    out: Out,
    lane: Lane<'a>,
    small: SyncSender<Small>,
    complaints: Complaints<'a>,
    meter: &'a Meter,
    fault: &'a Fault,
    large: HashMap<EntryId, PathBuf>,
    next: u64,
}

impl Feeder<'_> {
    fn say(&self, message: &FromSender) -> Result<(), Stopped> {
        self.out.say(message).map_err(|error| self.fault.report(error))
    }

    fn all(&mut self, found: &Receiver<Found>, before: &Before) -> Result<(), Stopped> {
        while let Ok(found) = found.recv() {
            if self.fault.is_there() {
                return Err(Stopped);
            }
            self.one(found, before)?;
            if self.next % TELL_EVERY == 1 {
                self.tell_total()?;
            }
        }
        self.tell_total()
    }

    fn one(&mut self, found: Found, before: &Before) -> Result<(), Stopped> {
        let Found { path, here, kind, mode, modified } = found;
        let id = EntryId(self.next);
        self.next += 1;
        let size = match kind {
            FoundKind::File(size) => size,
            FoundKind::Dir => {
                return self.say(&FromSender::Entry(Entry {
                    id,
                    path,
                    mode,
                    modified,
                    kind: EntryKind::Dir,
                }));
            }
            FoundKind::Link(to) => {
                let kind = EntryKind::Link(to);
                return self.say(&FromSender::Entry(Entry { id, path, mode, modified, kind }));
            }
        };
        let kept = before.kept(&path, size, modified);
        if let Some(Kept::Whole) = kept {
            self.meter.add_kept(size);
            self.meter.add_file();
            return Ok(());
        }
        let entry = Entry { id, path, mode, modified, kind: EntryKind::File { size } };
        if size <= SMALL {
            return self.small.send(Small { entry, here }).map_err(|_| Stopped);
        }
        self.large(entry, here, kept)
    }

    fn large(
        &mut self,
        mut entry: Entry,
        here: PathBuf,
        kept: Option<&Kept>,
    ) -> Result<(), Stopped> {
        let id = entry.id;
        let mut load = match load(id, here.clone(), Vec::new()) {
            Ok(load) => load,
            Err(error) => {
                self.complaints.say(None, describe(&error));
                return Ok(());
            }
        };
        // It may have grown since it was found; then nothing that was kept is of this file.
        let found = (entry.kind.clone(), entry.modified);
        entry.kind = EntryKind::File { size: load.file.size() };
        entry.modified = load.source.meta().modified;
        let kept = kept.filter(|_| found == (entry.kind.clone(), entry.modified));
        let proven = proven(load.file, kept);
        load.segments = load.file.indices().filter(|&index| proven.get(index).is_none()).collect();
        let missing = proven.gaps().iter().map(|gap| gap.end - gap.start).sum::<u64>();
        self.meter.add_kept(load.file.size() - missing);
        self.say(&FromSender::Entry(entry))?;
        self.large.insert(id, here);
        match self.lane.send(load) {
            Ok(()) => Ok(()),
            Err(error) => {
                let error = self.lane.judge(error)?;
                self.complaints.say(Some(id), describe(&error));
                Ok(())
            }
        }
    }

    fn tell_total(&self) -> Result<(), Stopped> {
        let tally = self.meter.tally();
        self.say(&FromSender::Total { files: tally.total_files, bytes: tally.total_bytes })
    }
}

/// The chain of causes in one line.
fn describe(error: &ReadSource) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// What the receiver has of a file.
fn proven(file: Geometry, kept: Option<&Kept>) -> Proven {
    let mut proven = Proven::nothing(file);
    if let Some(Kept::Segments(runs)) = kept {
        for (first, hashes) in runs {
            for (at, hash) in (u64::from(first.0)..).zip(hashes) {
                let Ok(at) = u32::try_from(at) else { break };
                proven.insert(SegmentIndex(at), *hash);
            }
        }
    }
    proven
}

fn read_small(queue: &Mutex<Receiver<Small>>, complaints: &Complaints<'_>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Small { mut entry, here }) = next else { return };
        if complaints.fault.is_there() {
            continue;
        }
        let read = Source::open(&here).and_then(|source| {
            entry.kind = EntryKind::File { size: source.meta().size };
            entry.modified = source.meta().modified;
            // It may have grown since it was found.
            if source.meta().size > SMALL {
                return Err(ReadSource::Changed { path: super::walk::shown(&here) });
            }
            source.read_all(&here)
        });
        match read {
            Ok(bytes) => {
                let hash = FileHash(*blake3::hash(&bytes).as_bytes());
                let message = FromSender::Small { entry, hash };
                if let Err(error) = complaints.out.say_with(&message, &bytes) {
                    complaints.fault.report(error);
                }
            }
            Err(error) => complaints.say(None, describe(&error)),
        }
    }
}

/// Hears the receiver out.
fn hear(mut incoming: In, replies: Replies, fault: &Fault, meter: &Meter) {
    let mut before = Some(Before::default());
    loop {
        let message = match incoming.next() {
            Ok(Some(body)) => decode::<FromReceiver>(body),
            Ok(None) => {
                fault.report(anyhow!("the receiving end stopped before it had finished"));
                return;
            }
            Err(error) => {
                fault.report(error);
                return;
            }
        };
        match message {
            Err(error) => {
                fault.report(error);
                return;
            }
            Ok((FromReceiver::Has { path, size, modified, kept }, _)) => {
                if let Some(before) = &mut before {
                    before.kept.insert(path, (size, modified, kept));
                }
            }
            Ok((FromReceiver::Ready { renamed }, _)) => {
                if let Some(mut before) = before.take() {
                    before.renamed = renamed;
                    // The sender may have met a fault.
                    let _ = replies.ready.send(before);
                }
            }
            Ok((FromReceiver::Again { id, segments }, _)) => {
                let _ = replies.again.send((id, segments));
            }
            Ok((FromReceiver::Progress { bytes, files }, _)) => {
                meter.add_bytes(bytes);
                meter.add_files(files);
            }
            Ok((FromReceiver::Skipped { bytes }, _)) => {
                meter.add_kept(bytes);
                meter.add_file();
            }
            Ok((FromReceiver::Failed { why }, _)) => meter.add_failure(why),
            Ok((FromReceiver::Finished, _)) => return,
        }
    }
}
