//! Sending of large files: several threads read and hash segments ahead, and the lane sends them in order as an object of
//! the transport.

use super::buffers::Buffers;
use super::fault::{Fault, Stopped};
use super::limit::{For, Waits};
use super::read::{ReadSource, Source};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{Bytes, OpenError, WriteError};
use hikyaku_reach::{Connection, ObjectSender, Out, TalkError};
use hikyaku_transfer::{EntryId, FromSender, Geometry, Proven, SegmentHash, SegmentIndex};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A file to be sent.
pub(crate) struct Load {
    pub(crate) id: EntryId,
    pub(crate) source: Source,
    pub(crate) file: Geometry,
}

/// Why a file was not sent; all but the first end the copy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadSource),
    #[error(transparent)]
    Talk(#[from] TalkError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Write(WriteError),
    /// The receiver could not create the file, and has sent the reason.
    #[error("the other end does not want it")]
    Unwanted,
}

impl From<WriteError> for LoadError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(_) => Self::Unwanted,
            error => Self::Write(error),
        }
    }
}

/// Reads segments ahead of the sender.
pub(crate) struct Readers {
    jobs: SyncSender<Job>,
    queue: Arc<Mutex<Receiver<Job>>>,
}

pub(crate) struct Job {
    load: Arc<Load>,
    index: SegmentIndex,
    reply: SyncSender<Result<(Bytes, SegmentHash), ReadSource>>,
}

/// Segments that are read ahead: enough to keep the readers busy while one is written, and 8 MB.
const AHEAD: usize = 8;
/// Maximum number of hashes in a message.
const TOGETHER: usize = 64;
/// Maximum time until a hash is sent: a resumed copy can use only segments whose hash has arrived.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// The code of an object that is given up.
const GIVEN_UP: u64 = 1;

impl Readers {
    pub(crate) fn new() -> Self {
        let (jobs, queue) = sync_channel(AHEAD);
        Self { jobs, queue: Arc::new(Mutex::new(queue)) }
    }

    /// Runs a reading thread, until the readers are dropped.
    pub(crate) fn work(queue: &Mutex<Receiver<Job>>, buffers: &Arc<Buffers>) {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Job { load, index, reply }) = next else { return };
            let mut bytes = buffers.take();
            let read = load.source.segment(load.file, index, &mut bytes);
            let read = read.map(|hash| (buffers.lend(bytes), hash));
            // The lane may have given the file up.
            let _ = reply.send(read);
        }
    }

    /// The queue for [`Readers::work`].
    pub(crate) fn queue(&self) -> Arc<Mutex<Receiver<Job>>> {
        self.queue.clone()
    }
}

/// The end of the connection on which files leave.
pub(crate) struct Lane<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) out: Out,
    pub(crate) readers: Readers,
    pub(crate) fault: &'a Fault,
    pub(crate) waits: &'a Waits,
}

impl Lane<'_> {
    /// Sends segments of `load`, as long as they are `wanted`. Their hashes are added to those that
    /// are proven.
    pub(crate) fn send(
        &self,
        load: &Arc<Load>,
        segments: &[SegmentIndex],
        proven: &mut Proven,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<(), LoadError> {
        for portion in portions(segments) {
            self.send_portion(load, portion, proven, wanted)?;
        }
        Ok(())
    }

    fn send_portion(
        &self,
        load: &Arc<Load>,
        segments: &[SegmentIndex],
        proven: &mut Proven,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<(), LoadError> {
        let mut object = block_on(self.connection.open_object())?;
        let (id, number) = (load.id, object.id().0);
        let ranges = ranges(load.file, segments);
        self.out.say(&FromSender::Data { id, object: number, ranges })?;
        if let Err(error) = self.carry((load, segments), &mut object, proven, wanted) {
            object.reset(GIVEN_UP);
            return Err(error);
        }
        object.finish();
        Ok(())
    }

    /// Ends `load` after its last segment: an error if the file has changed.
    pub(crate) fn finish(&self, load: &Load) -> Result<(), LoadError> {
        load.source.check_end()?;
        Ok(self.out.say(&FromSender::Read { id: load.id })?)
    }

    fn carry(
        &self,
        (load, segments): (&Arc<Load>, &[SegmentIndex]),
        object: &mut ObjectSender,
        proven: &mut Proven,
        wanted: &mut dyn FnMut() -> bool,
    ) -> Result<(), LoadError> {
        let mut hashes = Hashes::new(load.id);
        let mut asked = VecDeque::new();
        let mut left = segments.iter();
        loop {
            while asked.len() < AHEAD
                && wanted()
                && let Some(&index) = left.next()
            {
                let (reply, answer) = sync_channel(1);
                // The readers outlive the lane.
                let _ = self.readers.jobs.send(Job { load: load.clone(), index, reply });
                asked.push_back((index, answer));
            }
            let Some((index, answer)) = asked.pop_front() else { break };
            let read = self.waits.during(For::Source, || answer.recv());
            let (bytes, hash) = read.map_err(|_| TalkError::Closed)??;
            hashes.push(&self.out, index, hash)?;
            proven.insert(index, hash);
            self.waits.during(For::Transport, || block_on(object.write_chunk(bytes)))?;
        }
        Ok(hashes.tell(&self.out)?)
    }

    /// Whether the copy continues after this error; if so, the failure to report.
    pub(crate) fn judge(&self, error: LoadError) -> Result<Option<ReadSource>, Stopped> {
        match error {
            LoadError::Read(error) => Ok(Some(error)),
            LoadError::Unwanted => Ok(None),
            error => Err(self.fault.report(error)),
        }
    }
}

/// Maximum number of gaps in a message.
const MOST_GAPS: usize = 8192;

/// Divides the segments into portions with at most [`MOST_GAPS`] gaps.
fn portions(segments: &[SegmentIndex]) -> impl Iterator<Item = &[SegmentIndex]> {
    let mut gaps = 0;
    let follows = move |a: &SegmentIndex, b: &SegmentIndex| {
        gaps += usize::from(a.0.checked_add(1) != Some(b.0));
        if gaps < MOST_GAPS {
            return true;
        }
        gaps = 0;
        false
    };
    segments.chunk_by(follows)
}

/// The bytes of the segments, as few ranges as there can be.
fn ranges(file: Geometry, segments: &[SegmentIndex]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for range in segments.iter().filter_map(|&index| file.range(index)) {
        match ranges.last_mut() {
            Some((_, end)) if *end == range.start => *end = range.end,
            _ => ranges.push((range.start, range.end)),
        }
    }
    ranges
}

/// Hashes of consecutive segments that were not sent yet.
struct Hashes {
    id: EntryId,
    first: SegmentIndex,
    hashes: Vec<SegmentHash>,
    told: Instant,
}

impl Hashes {
    fn new(id: EntryId) -> Self {
        Self { id, first: SegmentIndex(0), hashes: Vec::new(), told: Instant::now() }
    }

    fn push(&mut self, out: &Out, index: SegmentIndex, hash: SegmentHash) -> Result<(), TalkError> {
        let next = u64::from(self.first.0) + self.hashes.len() as u64;
        let is_due = self.hashes.len() >= TOGETHER || self.told.elapsed() >= TELL_EVERY;
        if is_due || next != u64::from(index.0) {
            self.tell(out)?;
        }
        if self.hashes.is_empty() {
            self.first = index;
        }
        self.hashes.push(hash);
        Ok(())
    }

    fn tell(&mut self, out: &Out) -> Result<(), TalkError> {
        self.told = Instant::now();
        let hashes = std::mem::take(&mut self.hashes);
        if hashes.is_empty() {
            return Ok(());
        }
        out.say(&FromSender::Segments { id: self.id, first: self.first, hashes })
    }
}
