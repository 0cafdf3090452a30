//! A session as a channel of requests for bytes of files.
//!
//! Ranges of a request go as parts over the same data connections. With extended block mode the next part is asked for
//! before the last one is complete; in stream mode consecutive parts come by one command.

use crate::convert::{kind, reason};
use crate::ftp::Ftp;
use hikyaku_gridftp::{
    Channel, FtpError, Mode, Part, Plan, Progress, Settings, Store, Transferred,
    Wanted as WantedPart,
};
use hikyaku_store::{
    Cut, Cutting, ErrorKind, FetchError, Fetcher, FetcherTraits, Kind, Paced, Segment, Segments,
    Wanted,
};
use hikyaku_transfer::{Geometry, SEGMENT};
use hikyaku_units::Rate;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Data connections of a session with extended block mode.
const CONNECTIONS: u32 = 4;
/// Bytes of a part with extended block mode: a cut is followed at its end.
const PART_BYTES: u64 = 16 << 20;
/// Pieces that wait to be put together into segments.
const PIECES_MAX: usize = 64;

/// A session that reads files.
pub(crate) struct FtpFetcher {
    ftp: Ftp,
    settings: Settings,
    /// Opened with the first request, and after a failure.
    channel: Mutex<Option<Channel>>,
    is_closed: Arc<AtomicBool>,
    pace: Paced,
}

impl FtpFetcher {
    pub(crate) fn new(ftp: &Ftp) -> Self {
        let is_closed: Arc<AtomicBool> = Arc::default();
        let settings = Settings { stop: Arc::clone(&is_closed), ..ftp.settings().clone() };
        let (channel, pace) = (Mutex::default(), Paced::default());
        Self { ftp: ftp.clone(), settings, channel, is_closed, pace }
    }

    fn channel(&self) -> MutexGuard<'_, Option<Channel>> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something in the session.
    fn with<T>(
        &self,
        what: impl FnOnce(&mut Channel) -> Result<T, FtpError>,
    ) -> Result<T, FtpError> {
        let mut open = self.channel();
        let mut channel = match open.take() {
            Some(channel) => channel,
            None => Channel::open(self.ftp.server(), &self.settings)?,
        };
        let done = what(&mut channel);
        let is_usable = done.as_ref().err().is_none_or(FtpError::leaves_channel);
        *open = (is_usable && channel.is_in_step()).then_some(channel);
        done
    }

    /// Checks that a file is the one that a walk has found.
    fn check(&self, file: &Wanted) -> Result<(), FetchError> {
        let full = self.ftp.full(&file.path);
        let facts = self.with(|channel| channel.facts(&full)).map_err(|error| fate(&error))?;
        let facts = facts.ok_or(FetchError::File(ErrorKind::NotFound))?;
        let is_same_time = facts.time().is_none_or(|(secs, _)| secs == file.modified.secs);
        let is_same = kind(&facts) == Kind::File && facts.size == Some(file.size) && is_same_time;
        if is_same { Ok(()) } else { Err(FetchError::File(ErrorKind::Changed)) }
    }
}

/// The effect of a failure on the channel.
fn fate(error: &FtpError) -> FetchError {
    match error {
        FtpError::Refused { code: 500.., .. } | FtpError::BadPath | FtpError::LosesName { .. } => {
            FetchError::File(reason(error))
        }
        _ => FetchError::Lost(error.to_string()),
    }
}

impl Fetcher for FtpFetcher {
    fn traits(&self) -> FetcherTraits {
        FetcherTraits {
            requests_max: 1,
            request_bytes: None,
            small_bytes: 0,
            cutting: Cutting::ClosesConnection,
        }
    }

    fn ranges(
        &self,
        file: &Wanted,
        ranges: &[Range<u64>],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, FetchError> {
        self.check(file)?;
        let geometry = Geometry::new(file.size).ok_or(FetchError::File(ErrorKind::TooLarge))?;
        let mut segments = Segments::new(geometry);
        let full = self.ftp.full(&file.path);
        let (pieces, from) = sync_channel::<(u64, Vec<u8>)>(PIECES_MAX);
        let moved = thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                let pieces = Mutex::new(pieces);
                let store = |at: u64, bytes: &[u8]| {
                    arrived(bytes.len() as u64);
                    self.pace.wait(bytes.len() as u64);
                    let pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
                    let sent = pieces.send((at, bytes.to_vec()));
                    sent.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
                };
                let mode = self.ftp.traits().mode;
                let mut plan = Parts::new((&full, ranges), mode, cut, Arc::new(store));
                self.with(|channel| channel.download(&mut plan, &AtomicU64::new(0)))
            });
            for (at, piece) in from {
                segments.add(at, &piece, each);
            }
            transfer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        moved.map_err(|error| fate(&error))?;
        // Bytes that were read after a change belong to another file.
        self.check(file)?;
        segments.end(each);
        Ok(0)
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let mut before = 0;
        for (index, file) in files.iter().enumerate() {
            if cut.is_reached(before) {
                break;
            }
            before += file.size;
            let content = Mutex::new(vec![0; usize::try_from(file.size).unwrap_or(0)]);
            let full = self.ftp.full(&file.path);
            let part = Part { path: &full, offset: 0, length: file.size };
            let store = |at: u64, bytes: &[u8]| {
                arrived(bytes.len() as u64);
                self.pace.wait(bytes.len() as u64);
                let mut content = content.lock().unwrap_or_else(PoisonError::into_inner);
                content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                Ok(())
            };
            let get = |channel: &mut Channel| channel.get(&part, 1, &AtomicU64::new(0), store);
            let got = match file.size {
                0 => Ok(()),
                _ => self.with(get).map(drop).map_err(|error| fate(&error)),
            };
            match got.and_then(|()| self.check(file)) {
                Ok(()) => each(index, Ok(content.into_inner().unwrap_or_default())),
                Err(FetchError::File(kind)) => each(index, Err(kind)),
                Err(lost) => return Err(lost),
            }
        }
        Ok(())
    }

    fn limit(&self, rate: Option<Rate>) {
        self.pace.limit(rate);
    }

    fn round_trip(&self) -> Duration {
        self.ftp.traits().rtt
    }

    fn is_alive(&self) -> bool {
        // A session that is busy is watched by its request.
        let is_busy = self.channel.try_lock().is_err();
        is_busy || self.with(Channel::measure_rtt).is_ok()
    }

    fn close(&self, _: &str) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.pace.close();
        if let Ok(mut open) = self.channel.try_lock()
            && let Some(channel) = open.take()
        {
            channel.quit();
        }
    }
}

/// The parts of the ranges of a request, up to a cut.
struct Parts<'p> {
    path: &'p [u8],
    /// In reverse order.
    left: Vec<Range<u64>>,
    /// Bytes of the request before the next part.
    before: u64,
    mode: Mode,
    cut: &'p Cut,
    store: Arc<Store<'p>>,
    under_way: usize,
}

impl<'p> Parts<'p> {
    fn new(
        (path, ranges): (&'p [u8], &[Range<u64>]),
        mode: Mode,
        cut: &'p Cut,
        store: Arc<Store<'p>>,
    ) -> Self {
        let left = ranges.iter().rev().filter(|range| !range.is_empty()).cloned().collect();
        Self { path, left, before: 0, mode, cut, store, under_way: 0 }
    }
}

impl<'p> Plan<'p, Arc<Store<'p>>> for Parts<'p> {
    fn next(&mut self, _: Option<&Progress>) -> Option<WantedPart<'p, Arc<Store<'p>>>> {
        if self.under_way > 1 || self.cut.is_reached(self.before) {
            return None;
        }
        let range = self.left.last_mut()?;
        let (most, connections) = match self.mode {
            Mode::Extended => (PART_BYTES, CONNECTIONS),
            Mode::Stream => (SEGMENT, 1),
        };
        let length = most.min(range.end - range.start);
        let part = Part { path: self.path, offset: range.start, length };
        range.start += length;
        if range.is_empty() {
            self.left.pop();
        }
        self.before += length;
        self.under_way += 1;
        Some(WantedPart { part, connections, with: Arc::clone(&self.store) })
    }

    fn done(&mut self, _: &Transferred) {
        self.under_way -= 1;
    }
}
