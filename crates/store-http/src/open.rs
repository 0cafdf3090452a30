//! An open file: its bytes by one answer after the other.

use crate::found;
use crate::shared::{Reading, Shared, lock};
use hikyaku_http::{
    Answer, Attempts, Bytes, Connection, Fault, First, Known, Parked, Parts, Proof, Source, Stop,
    Turn,
};
use hikyaku_store::{ErrorKind, Found, Open, Result, StorePath, doing};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes that are read at once, at most.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// A file that is open for reading.
pub(crate) struct HttpOpen {
    shared: Arc<Shared>,
    path: StorePath,
    source: Source,
    known: Known,
    found: Found,
    /// The server sends no ranges, or none that are known to be of one version: each answer is the whole file.
    is_whole: AtomicBool,
    no_ranges: NoRanges,
    /// A caller has bytes of the file.
    is_begun: AtomicBool,
    /// An answer with unread bytes, at first that of the request which opened the file.
    kept: Mutex<Option<Kept>>,
}

/// An answer with unread bytes.
enum Kept {
    /// Another one may be of another version, or begin with all that has been read.
    ForCertain(Box<Reading>),
    /// If the server grants no further connection, another request takes its place. The offset of its next byte, and its end.
    ForNow(Parked, Range<u64>),
}

impl Kept {
    const fn start(&self) -> u64 {
        match self {
            Self::ForCertain(reading) => reading.rest.start,
            Self::ForNow(_, rest) => rest.start,
        }
    }

    fn take(self, stop: &Stop) -> Option<Reading> {
        match self {
            Self::ForCertain(mut reading) => {
                reading.connection.end_with(stop);
                Some(*reading)
            }
            Self::ForNow(parked, rest) => Some(Reading { connection: parked.take(stop)?, rest }),
        }
    }
}

/// The reaction to a whole file in place of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoRanges {
    /// Each answer is read from its beginning.
    Skipped,
    /// The request fails.
    Refused,
}

impl HttpOpen {
    /// The file of a first answer. `None`: the server does not send its size.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        path: &StorePath,
        source: Source,
        first: First,
    ) -> Option<Self> {
        let known = found::known(first.offer.clone());
        Self::of(shared, (path, source), known, (Some(first), NoRanges::Skipped))
    }

    /// A file that is known, and the server's own first answer. `None`: the size is not known.
    pub(crate) fn of(
        shared: &Arc<Shared>,
        (path, source): (&StorePath, Source),
        known: Known,
        (first, no_ranges): (Option<First>, NoRanges),
    ) -> Option<Self> {
        let total = known.offer.total?;
        let found = found::file(&known.offer, &source.place.current(), shared.begin);
        let is_whole = is_whole(&known);
        let open = Self {
            shared: shared.clone(),
            path: path.clone(),
            source,
            known,
            found,
            is_whole: AtomicBool::new(is_whole),
            no_ranges,
            is_begun: AtomicBool::new(false),
            kept: Mutex::default(),
        };
        if let Some(First { answer, range, .. }) = first {
            shared.note(&answer.connection);
            // A part of a file without a version is of use only if it is the whole.
            let rest = range.unwrap_or(0..total);
            if !is_whole || rest == (0..total) {
                open.put_back(Reading { connection: answer.connection, rest });
            }
        }
        Some(open)
    }

    /// Keeps the rest of an answer for the next read, or its connection for the next request.
    fn put_back(&self, reading: Reading) {
        if reading.rest.is_empty() {
            self.shared.client.keep(reading.connection);
        } else {
            let Reading { connection, rest } = reading;
            let kept = match self.is_whole.load(Ordering::Relaxed) {
                true => Kept::ForCertain(Box::new(Reading { connection, rest })),
                false => Kept::ForNow(self.shared.client.park(connection), rest),
            };
            *lock(&self.kept) = Some(kept);
        }
    }

    /// Passes the bytes of one answer to `each`, with their connection, from `at` to `end` or to the end of the answer, at most `most` at once.
    pub(crate) fn pass(
        &self,
        at: &mut u64,
        end: u64,
        (most, stop): (usize, &Stop),
        each: &mut dyn FnMut(&[u8], &Connection) -> ControlFlow<()>,
    ) -> std::result::Result<ControlFlow<()>, Fault> {
        let mut reading = self.reading(*at, end, stop)?;
        let end = end.min(reading.rest.end);
        while *at < end {
            let most = usize::try_from(end - *at).unwrap_or(most).min(most);
            let bytes = read(&mut reading, most)?;
            *at += bytes.len() as u64;
            self.is_begun.store(true, Ordering::Relaxed);
            if each(&bytes, &reading.connection).is_break() {
                // The rest of a range would occupy the connection for nothing.
                if self.is_whole.load(Ordering::Relaxed) || reading.rest.is_empty() {
                    self.put_back(reading);
                }
                return Ok(ControlFlow::Break(()));
            }
        }
        self.put_back(reading);
        Ok(ControlFlow::Continue(()))
    }

    /// An answer whose next byte is that at `at`.
    fn reading(&self, at: u64, end: u64, stop: &Stop) -> std::result::Result<Reading, Fault> {
        let client = &*self.shared.client;
        if !self.is_whole.load(Ordering::Relaxed) {
            let kept = lock(&self.kept).take_if(|kept| kept.start() == at);
            if let Some(reading) = kept.and_then(|kept| kept.take(stop)) {
                return Ok(reading);
            }
            match self.source.part(client, &(at..end), &self.known, (stop, Turn::AtOnce)) {
                Err(Fault::NoRanges) if self.no_ranges == NoRanges::Skipped => {
                    self.is_whole.store(true, Ordering::Relaxed)
                }
                part => {
                    let (Answer { connection, .. }, rest) = part?;
                    self.shared.note(&connection);
                    return Ok(Reading { connection, rest });
                }
            }
        }
        let kept = lock(&self.kept).take_if(|kept| kept.start() <= at);
        let mut reading = match kept.and_then(|kept| kept.take(stop)) {
            Some(reading) => reading,
            // Nothing would show whether another answer has the same version.
            None if self.known.proof == Proof::None && self.is_begun.load(Ordering::Relaxed) => {
                return Err(Fault::Changed);
            }
            None => {
                let (answer, offer) = self.source.whole(client, (stop, Turn::AtOnce))?;
                self.known.offer.check_whole(&offer, self.known.proof)?;
                Reading { connection: answer.connection, rest: 0..self.found.size }
            }
        };
        while reading.rest.start < at {
            let skipped = at - reading.rest.start;
            read(&mut reading, usize::try_from(skipped).unwrap_or(usize::MAX))?;
        }
        Ok(reading)
    }
}

/// Whether each answer is the whole file.
pub(crate) fn is_whole(known: &Known) -> bool {
    known.offer.parts == Parts::Refused || known.proof == Proof::None
}

/// Reads the next bytes of an answer.
fn read(reading: &mut Reading, most: usize) -> std::result::Result<Bytes, Fault> {
    let bytes = reading.connection.read(most)?;
    reading.rest.start += bytes.len() as u64;
    if bytes.is_empty() { Err(Fault::Closed) } else { Ok(bytes) }
}

impl Open for HttpOpen {
    /// The metadata with which the file was opened: every answer is compared with them.
    fn found(&self) -> Result<Found> {
        Ok(self.found)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        let end = at.saturating_add(into.len() as u64);
        let mut filled = 0;
        self.stream(at..end, &mut |bytes| {
            into[filled..filled + bytes.len()].copy_from_slice(bytes);
            filled += bytes.len();
            ControlFlow::Continue(())
        })?;
        Ok(filled)
    }

    fn stream(
        &self,
        range: Range<u64>,
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<u64> {
        let (mut at, end) = (range.start, range.end.min(self.found.size));
        let mut attempts = Attempts::new(self.shared.conduct.retry);
        while at < end {
            let before = at;
            let how = (BUFFER_BYTES, self.shared.stop());
            let fault = match self.pass(&mut at, end, how, &mut |bytes, _| each(bytes)) {
                Ok(ControlFlow::Continue(())) => continue,
                Ok(ControlFlow::Break(())) => break,
                Err(fault) => fault,
            };
            if at > before {
                attempts.succeed();
            }
            let paused = self.shared.pause(&mut attempts, &fault);
            doing("read", &self.path).or(paused.map_err(|kind| match kind {
                ErrorKind::NotFound => ErrorKind::Gone,
                kind => kind,
            }))?;
        }
        Ok(at - range.start)
    }

    fn path(&self) -> &StorePath {
        &self.path
    }
}
