//! A session as a channel of requests for bytes of files.
//!
//! Ranges of a request go in chunks over data connections whose number the tuner searches. In stream mode consecutive parts
//! come by one command.

mod assembly;
mod small;

use crate::chunker::{Attempt, Chunker, Counters, Moving, Others, parts_from};
use crate::chunks::{Foresight, Parts};
use crate::convert::{kind_behind, reason};
use crate::ftp::Ftp;
use crate::missing::Missing;
use crate::reading::{Observer, Reading};
use crate::steering::Steering;
use assembly::{Assembly, Buffers, WHOLE_MAX, Whole};
use hikyaku_gridftp::{
    Channel, Facts, FtpError, Mode, Plan, Progress, Settings, Store, Stripes, Transferred,
    Wanted as WantedPart,
};
use hikyaku_store::{
    Asked, Begins, ConnectionCount, Cut, Cutting, ErrorKind, FetchError, Fetcher, FetcherTraits,
    Kind, Paced, Segment, StorePath, Wanted,
};
use hikyaku_transfer::{Geometry, Links};
use hikyaku_tuner::{Decision, Measured};
use hikyaku_units::Rate;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a request in extended block mode. Its channels have room in it for many pieces, and it rarely ends for all of them.
const REQUEST_BYTES: u64 = 16 << 30;
/// Bytes of a request in stream mode: several sessions share a large file.
const STREAM_REQUEST_BYTES: u64 = 64 << 20;

/// How often a wait checks whether the channel is closed.
const LOOK: Duration = Duration::from_millis(100);

/// A session that reads files.
pub(crate) struct FtpFetcher {
    pub(crate) ftp: Ftp,
    settings: Settings,
    session: Mutex<Session>,
    is_closed: Arc<AtomicBool>,
    pub(crate) pace: Paced,
    buffers: Buffers,
    pub(crate) reading: Reading,
}

struct Session {
    /// Opened with the first request, and after a failure.
    channel: Option<Channel>,
    chunker: Chunker,
}

impl FtpFetcher {
    pub(crate) fn new(ftp: &Ftp, reading: Reading, steering: Option<Steering>) -> Self {
        let is_closed: Arc<AtomicBool> = Arc::default();
        let settings = Settings { stop: Arc::clone(&is_closed), ..ftp.settings().clone() };
        let chunker = Chunker::steered(reading.connections, steering);
        let session = Session { channel: None, chunker };
        let (session, pace) = (Mutex::new(session), Paced::default());
        let buffers = Buffers::default();
        Self { ftp: ftp.clone(), settings, session, is_closed, pace, buffers, reading }
    }

    /// Does something in the session.
    pub(crate) fn with<T>(
        &self,
        what: impl FnOnce(&mut Channel, &mut Chunker) -> Result<T, FtpError>,
    ) -> Result<T, FtpError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let Session { channel: open, chunker } = &mut *session;
        let mut channel = match open.take() {
            Some(channel) => channel,
            None => self.open()?,
        };
        let done = what(&mut channel, chunker);
        let is_usable = done.as_ref().err().is_none_or(FtpError::leaves_channel);
        *open = (is_usable && channel.is_in_step()).then_some(channel);
        done
    }

    /// A session of the store that waits for work, or a new one.
    fn open(&self) -> Result<Channel, FtpError> {
        if let Some(mut channel) = self.ftp.take_alive() {
            channel.stopped_by(&self.is_closed);
            return Ok(channel);
        }
        let mut channel = Channel::open(self.ftp.server(), &self.settings)?;
        channel.measure_rtt()?;
        Ok(channel)
    }

    /// Does something in the session, and again after failures that may pass.
    fn with_retries<T>(
        &self,
        mut what: impl FnMut(&mut Channel) -> Result<T, FtpError>,
    ) -> Result<T, FtpError> {
        let mut left = self.reading.retry.attempts;
        loop {
            match self.with(|channel, _| what(channel)) {
                Err(error) => self.retry(error, &mut left)?,
                done => return done,
            }
        }
    }

    /// Waits before another attempt. Returns the error if none is left.
    fn retry(&self, error: FtpError, left: &mut u32) -> Result<(), FtpError> {
        if *left == 0 || !error.may_pass() || self.is_closed.load(Ordering::Relaxed) {
            return Err(error);
        }
        *left -= 1;
        self.observer(|observer| observer.retries(&error));
        let begin = Instant::now();
        while begin.elapsed() < self.reading.retry.interval {
            if self.is_closed.load(Ordering::Relaxed) {
                return Err(FtpError::Stopped);
            }
            thread::sleep(LOOK.min(self.reading.retry.interval));
        }
        Ok(())
    }

    fn observer(&self, tell: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = self.reading.observer.as_deref() {
            tell(observer);
        }
    }

    /// The effect of a failure about a file. The observer receives the failure.
    pub(crate) fn failed(&self, path: &StorePath, error: FtpError) -> FetchError {
        let fate = fate(&error);
        let path = matches!(fate, FetchError::File(_)).then_some(path);
        self.observer(|observer| observer.failed(path, error));
        fate
    }

    /// Moves ranges of a file, up to a cut.
    fn move_ranges<'p>(
        &self,
        moving: &Moving<'p, Arc<Store<'p>>>,
        ranges: &[Range<u64>],
        cut: &Cut,
    ) -> Result<(), FtpError> {
        let mut missing = Missing::of(ranges);
        let all = missing.bytes();
        let counted = AtomicU64::new(0);
        let report = |asked: &Decision, bytes: u64, done: &Transferred| {
            self.observer(|observer| observer.chunk(asked, bytes, done));
        };
        let on_epoch = |measured: &Measured, phase| {
            self.observer(|observer| observer.epoch(measured, phase));
        };
        let counters = Counters { bytes: &counted, report: &report, on_epoch: &on_epoch };
        let open = || Channel::open(self.ftp.server(), &self.settings);
        let mut left = self.reading.retry.attempts;
        loop {
            let before = all - missing.bytes();
            let by = |channel: &mut Channel, plan: &mut dyn Plan<'p, _>, counted: &AtomicU64| {
                channel.download(&mut UpTo { plan, cut, before }, counted)
            };
            let is_cut = |asked| cut.is_reached(before + asked);
            let others = Others { open: &open, is_cut: &is_cut };
            let attempt = self.with(|channel, chunker| {
                let file = (moving, &mut missing);
                if let Some(attempt) =
                    chunker.download(channel, file, others, &counters, &mut |_| ())
                {
                    return attempt;
                }
                chunker.attempt(channel, (moving, &mut missing), &by, &counters, &mut |_| ())
            });
            if all - missing.bytes() > before {
                left = self.reading.retry.attempts;
            }
            match attempt {
                Ok(Attempt::Whole) => return Ok(()),
                Ok(Attempt::OneByOne) => {}
                Err(error) => self.retry(error, &mut left)?,
            }
        }
    }

    /// Checks that a file is the one that a walk has found.
    fn check(&self, file: &Wanted) -> Result<(), FetchError> {
        let full = self.ftp.full(&file.path);
        let facts = self.with_retries(|channel| channel.facts(&full));
        let facts = facts.map_err(|error| self.failed(&file.path, error))?;
        compare(file, facts.as_ref(), self.reading.links).map_err(FetchError::File)
    }
}

/// Compares the facts of a path with the file that a walk has found.
pub(crate) fn compare(file: &Wanted, facts: Option<&Facts>, links: Links) -> Result<(), ErrorKind> {
    let facts = facts.ok_or(ErrorKind::NotFound)?;
    let is_same_time = facts.time().is_none_or(|(secs, _)| secs == file.modified.secs);
    let is_same =
        kind_behind(facts, links) == Kind::File && facts.size == Some(file.size) && is_same_time;
    if is_same { Ok(()) } else { Err(ErrorKind::Changed) }
}

/// The effect of a failure on the channel.
pub(crate) fn fate(error: &FtpError) -> FetchError {
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
            request_bytes: Some(match (self.ftp.traits().mode, self.settings.stripes) {
                // Its data nodes send whole files only.
                (Mode::Extended, Stripes::All) => u64::MAX,
                (Mode::Extended, _) => REQUEST_BYTES,
                (Mode::Stream, _) => STREAM_REQUEST_BYTES,
            }),
            small_bytes: small::SMALL_BYTES,
            cutting: Cutting::ClosesConnection,
            connections: ConnectionCount::Own,
            begins: Begins::Anywhere,
        }
    }

    fn ranges(
        &self,
        file: &Wanted,
        asked: &Asked<'_>,
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, FetchError> {
        let geometry = Geometry::new(file.size).ok_or(FetchError::File(ErrorKind::TooLarge))?;
        let full = self.ftp.full(&file.path);
        let (whole, from) = sync_channel(WHOLE_MAX);
        // Segments that are whole are passed on, but for the last one: the protocol proves a file only by its metadata after
        // the last byte.
        let mut held: Option<Whole> = None;
        let mut pass = |next: Option<Whole>| {
            if let Some(Whole { index, hash, bytes }) = std::mem::replace(&mut held, next) {
                each(Segment { index, hash, bytes: &bytes });
                self.buffers.put(bytes);
            }
        };
        let moved = thread::scope(|scope| {
            let transfer = scope.spawn(|| {
                let assembly = Assembly::new(geometry, &self.buffers, whole, asked);
                let store = |at: u64, bytes: &[u8]| {
                    arrived(bytes.len() as u64);
                    self.pace.wait(bytes.len() as u64);
                    assembly.add(at, bytes)
                };
                let (mode, stripes) = (self.ftp.traits().mode, self.settings.stripes);
                let parts = match mode {
                    Mode::Extended => parts_from(mode, stripes),
                    Mode::Stream => Parts::Segments,
                };
                let with: Arc<Store<'_>> = Arc::new(store);
                let moving = Moving { path: &full, with, foresight: Foresight::Measured, parts };
                self.move_ranges(&moving, asked.ranges, cut)
            });
            from.into_iter().for_each(|next| pass(Some(next)));
            transfer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // Bytes that were read after a change belong to another file, and a transfer may fail by it.
        let checked = self.check(file);
        if let (Err(error), false) = (moved, matches!(checked, Err(FetchError::File(_)))) {
            return Err(self.failed(&file.path, error));
        }
        checked?;
        pass(None);
        Ok(0)
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let (mut first, mut before) = (0, 0);
        while first < files.len() && !cut.is_reached(before) {
            let count = small::batch_of(&files[first..]);
            let batch = &files[first..first + count];
            self.batch(batch, (cut, &mut before), arrived, &mut |at, content| {
                each(first + at, content);
            })?;
            first += count;
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
        let is_busy = self.session.try_lock().is_err();
        is_busy || self.with(|channel, _| channel.measure_rtt()).is_ok()
    }

    fn close(&self, _: &str) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.pace.close();
        if let Ok(mut session) = self.session.try_lock()
            && let Some(channel) = session.channel.take()
        {
            channel.quit();
        }
    }
}

/// A plan up to a cut.
struct UpTo<'c, 'p, F> {
    plan: &'c mut dyn Plan<'p, F>,
    cut: &'c Cut,
    /// Bytes of the request before the next part.
    before: u64,
}

impl<'p, F> Plan<'p, F> for UpTo<'_, 'p, F> {
    fn next(&mut self, under_way: Option<&Progress>) -> Option<WantedPart<'p, F>> {
        let is_over = self.cut.is_reached(self.before);
        let wanted = if is_over { None } else { self.plan.next(under_way) };
        self.before += wanted.as_ref().map_or(0, |wanted| wanted.part.length);
        wanted
    }

    fn done(&mut self, done: &Transferred) {
        self.plan.done(done);
    }
}
