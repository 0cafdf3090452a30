//! Connections to a server as channels: each carries one range after the other.
//!
//! A request that fails for a reason that may pass is sent again for the bytes that are missing, after the wait that all
//! connections of the server keep to ([`Replicas`]). A server that refuses a further connection keeps those that it has.

use crate::error::kind_of;
use crate::mirrors::{Failed, Next, Replicas, What};
use crate::open::{BUFFER_BYTES, HttpOpen, is_whole};
use crate::opened::{OpenFiles, State};
use crate::shared::{Shared, lock};
use hikyaku_http::{Connection, First, Known, Source, Stop, Turn};
use hikyaku_store::{
    Asked, Begins, ConnectionCount, Cut, Cutting, ErrorKind, FetchError, Fetcher, FetcherTraits,
    Open, Paced, Segment, Segments, Wanted,
};
use hikyaku_transfer::Geometry;
use hikyaku_units::Rate;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often the kernel is asked for the round-trip time.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Why a request ends at the end of a transfer.
const OVER: &str = "the transfer is over";
/// Time between two looks whether another thread has opened a file.
const OPENING_LOOK: Duration = Duration::from_millis(5);

/// A server, as its connections share it.
pub(crate) struct Server {
    shared: Arc<Shared>,
    files: Files,
    answers: Answers,
    /// The servers with the same files, and the number of this one.
    replicas: Arc<Replicas>,
    at: usize,
}

/// The files that are fetched.
enum Files {
    /// The one that is open.
    One(Arc<HttpOpen>),
    /// Any of the server's.
    Any(OpenFiles),
}

/// The content of one answer of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answers {
    /// The range that was asked for.
    Ranges,
    /// The whole file.
    Whole,
}

impl Answers {
    /// Those of the server of a file.
    pub(crate) fn of(known: &Known) -> Self {
        if is_whole(known) { Self::Whole } else { Self::Ranges }
    }
}

impl Server {
    /// The server of a store, with all of its files.
    pub(crate) fn of_store(shared: &Arc<Shared>, answers: Answers) -> Self {
        let replicas =
            Replicas::new(&shared.conduct, vec![shared.file.1.first.clone()], What::AnyFile);
        let (files, shared) = (Files::Any(OpenFiles::default()), shared.clone());
        Self { shared, files, answers, replicas: Arc::new(replicas), at: 0 }
    }

    /// One of the servers of a file.
    pub(crate) fn of_file(
        shared: Arc<Shared>,
        open: HttpOpen,
        answers: Answers,
        (replicas, at): (&Arc<Replicas>, usize),
    ) -> Self {
        let files = Files::One(Arc::new(open));
        Self { shared, files, answers, replicas: replicas.clone(), at }
    }

    /// Connections, `count` of them. A file that comes by one answer has one.
    pub(crate) fn fetchers(self: &Arc<Self>, count: usize) -> Vec<Arc<dyn Fetcher>> {
        let count = if self.answers == Answers::Whole { count.min(1) } else { count };
        let fetcher = |_| -> Arc<dyn Fetcher> { Arc::new(HttpFetcher::new(self.clone())) };
        (0..count).map(fetcher).collect()
    }

    /// The file with the wanted content.
    fn open(&self, file: &Wanted, is_over: &dyn Fn() -> bool) -> Result<Arc<HttpOpen>, FetchError> {
        let slot = match &self.files {
            Files::One(open) => return Ok(open.clone()),
            Files::Any(files) => files.slot(file),
        };
        loop {
            match slot.state() {
                State::Open(open) => return Ok(open),
                State::Closed(mut slot) => {
                    if let Some(first) = self.first(file)? {
                        return Ok(slot.insert(self.opened(file, first)?).clone());
                    }
                    drop(slot);
                    self.replicas.wait_for_place(self.at)?;
                }
                State::UnderWay => sleep(OPENING_LOOK),
            }
            if is_over() {
                return Err(FetchError::Lost(OVER.to_owned()));
            }
        }
    }

    /// The file of a first answer, if it has the wanted content.
    fn opened(
        &self,
        file: &Wanted,
        (source, first): (Source, First),
    ) -> Result<Arc<HttpOpen>, FetchError> {
        let open = HttpOpen::new(&self.shared, &file.path, source, first);
        let open = Arc::new(open.ok_or(FetchError::File(ErrorKind::SPECIAL))?);
        let found = open.found().map_err(|error| FetchError::File(error.kind))?;
        let is_wanted = match &file.content {
            Some(content) => found.version.is_some_and(|version| content.is(version)),
            None => (found.size, found.modified) == (file.size, file.modified),
        };
        if !is_wanted {
            return Err(FetchError::File(ErrorKind::Changed));
        }
        Ok(open)
    }

    /// Requests the beginning of a file. `None`: the server accepts no further connection.
    fn first(&self, file: &Wanted) -> Result<Option<(Source, First)>, FetchError> {
        let bytes = BUFFER_BYTES as u64 * 4;
        let first = self.shared.first_or_full(&file.path, bytes, Turn::AtOnce);
        first.map_err(FetchError::File)
    }

    fn forget(&self, file: &Wanted) {
        if let Files::Any(files) = &self.files {
            files.forget(file);
        }
    }
}

/// One connection.
struct HttpFetcher {
    server: Arc<Server>,
    paced: Paced,
    /// Ends the request under way.
    stop: Mutex<Option<Stop>>,
    is_flowing: AtomicBool,
    is_resting: AtomicBool,
    gauge: Mutex<Gauge>,
}

/// The round-trip time of the request under way.
#[derive(Default)]
struct Gauge {
    looked: Option<Instant>,
    round_trip: Option<Duration>,
}

impl Gauge {
    /// Bytes have come over this connection.
    fn look(&mut self, connection: &Connection) {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            *self = Self { looked: Some(Instant::now()), round_trip: connection.receive_rtt() };
        }
    }
}

/// A request under way.
struct Request<'a> {
    cut: &'a Cut,
    done: Arc<AtomicU64>,
    stop: Stop,
}

impl<'a> Request<'a> {
    /// A cut of what has been delivered already ends the wait for further bytes.
    fn new(cut: &'a Cut) -> Self {
        let (done, stop) = (Arc::<AtomicU64>::default(), Stop::default());
        let (so_far, ends) = (done.clone(), stop.clone());
        cut.on_cut(move |from| {
            if from <= so_far.load(Ordering::Relaxed) {
                ends.set();
            }
        });
        Self { cut, done, stop }
    }

    fn add(&self, bytes: usize) {
        self.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn is_cut(&self) -> bool {
        self.cut.is_reached(self.done.load(Ordering::Relaxed))
    }
}

impl HttpFetcher {
    fn new(server: Arc<Server>) -> Self {
        let (is_flowing, is_resting) = (AtomicBool::new(false), AtomicBool::new(false));
        let (paced, stop, gauge) = (Paced::default(), Mutex::default(), Mutex::default());
        Self { server, paced, stop, is_flowing, is_resting, gauge }
    }

    /// Notes whether bytes come over this connection.
    fn set_flowing(&self, is_flowing: bool) {
        if self.is_flowing.swap(is_flowing, Ordering::Relaxed) != is_flowing {
            self.server.replicas.count_flowing(self.server.at, is_flowing);
        }
    }

    /// Reads a range to its end, or until nothing more of the request is wanted.
    fn read(
        &self,
        open: &HttpOpen,
        range: Range<u64>,
        request: &Request<'_>,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FetchError> {
        let (replicas, server) = (&self.server.replicas, self.server.at);
        let (mut at, mut unanswered) = (range.start, 0);
        while at < range.end && !request.is_cut() {
            let is_over = || request.stop.is_set() || self.paced.is_closed();
            replicas.wait(server, is_over)?;
            if self.paced.is_closed() {
                return Err(FetchError::Lost(OVER.to_owned()));
            }
            let (begun, first) = (Instant::now(), at);
            let most = replicas.piece_bytes(BUFFER_BYTES);
            let passed =
                open.pass(&mut at, range.end, (most, &request.stop), &mut |bytes, over| {
                    self.set_flowing(true);
                    lock(&self.gauge).look(over);
                    replicas.succeed(server);
                    request.add(bytes.len());
                    each(bytes);
                    self.paced.wait(bytes.len() as u64);
                    self.paced.pausing(|| replicas.pace(bytes.len() as u64, is_over));
                    match request.is_cut() || self.paced.is_closed() {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                });
            let Err(fault) = passed else { continue };
            self.set_flowing(false);
            if request.is_cut() {
                break;
            }
            let failed = Failed { begun, has_sent: at > first, unanswered };
            unanswered += u32::from(fault.is_connect_timeout());
            match replicas.judge(server, &failed, fault) {
                Next::Again => {}
                Next::WithPlace => replicas.wait_for_place(server)?,
                Next::Failed(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The request is over, and its connection idle.
    fn end(&self) {
        *lock(&self.stop) = None;
        *lock(&self.gauge) = Gauge::default();
        if self.is_resting.load(Ordering::Relaxed) {
            self.set_flowing(false);
            self.server.shared.close_idle();
        }
    }
}

impl Fetcher for HttpFetcher {
    fn traits(&self) -> FetcherTraits {
        let (request_bytes, cutting, begins) = match self.server.answers {
            Answers::Ranges => (None, Cutting::ClosesConnection, Begins::Anywhere),
            Answers::Whole => {
                (Some(FetcherTraits::WHOLE_FILE), Cutting::Never, Begins::WithSegment)
            }
        };
        FetcherTraits {
            requests_max: 1,
            request_bytes,
            small_bytes: 0,
            cutting,
            connections: ConnectionCount::Tuned,
            begins,
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
        self.is_resting.store(false, Ordering::Relaxed);
        let geometry = Geometry::new(file.size).ok_or(FetchError::File(ErrorKind::TooLarge))?;
        let request = Request::new(cut);
        let open = self.server.open(file, &|| request.is_cut() || self.paced.is_closed())?;
        *lock(&self.stop) = Some(request.stop.clone());
        let (mut segments, server) = (Segments::new(geometry, asked), self.server.at);
        let mut note = |segment: Segment<'_>| {
            // The head of a segment may be from another server, or older.
            if !asked.has_head(segment.index) {
                self.server.replicas.note(server, segment.index);
            }
            each(segment);
        };
        let mut done = Ok(());
        for range in asked.ranges {
            let mut at = range.start;
            done = self.read(&open, range.clone(), &request, &mut |bytes| {
                arrived(bytes.len() as u64);
                segments.add(at, bytes, &mut note);
                at += bytes.len() as u64;
            });
            if done.is_err() {
                break;
            }
        }
        match &done {
            // The bytes before and after the change do not belong together.
            Err(FetchError::File(ErrorKind::Changed)) => self.server.forget(file),
            // Each answer was checked before a byte of it was used.
            _ => segments.end(&mut note),
        }
        self.end();
        done.map(|()| 0)
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let request = Request::new(cut);
        for (index, file) in files.iter().enumerate() {
            if request.is_cut() {
                return Ok(());
            }
            let mut content = Vec::new();
            let is_over = || request.is_cut() || self.paced.is_closed();
            let read = self.server.open(file, &is_over).and_then(|open| {
                self.read(&open, 0..file.size, &request, &mut |bytes| {
                    arrived(bytes.len() as u64);
                    content.extend_from_slice(bytes);
                })
            });
            match read {
                Ok(()) => each(index, Ok(content)),
                Err(FetchError::File(kind)) => each(index, Err(kind)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn limit(&self, rate: Option<Rate>) {
        self.paced.limit(rate);
    }

    fn round_trip(&self) -> Duration {
        self.server.shared.round_trip()
    }

    fn latest_round_trip(&self) -> Option<Duration> {
        lock(&self.gauge).round_trip
    }

    fn held_before(&self) -> Option<u32> {
        self.server.shared.held_before()
    }

    fn note_held(&self, held: Option<u32>) {
        self.server.shared.note_held(held);
    }

    fn paused(&self) -> Duration {
        self.paced.paused()
    }

    fn is_alive(&self) -> bool {
        self.server.replicas.may_be_asked(self.server.at)
    }

    fn rest(&self) {
        self.set_flowing(false);
        self.is_resting.store(true, Ordering::Relaxed);
        if lock(&self.stop).is_none() {
            self.server.shared.close_idle();
        }
    }

    fn close(&self, _: &str) {
        self.paced.close();
        if let Some(stop) = &*lock(&self.stop) {
            stop.set();
        }
    }
}

impl Drop for HttpFetcher {
    fn drop(&mut self) {
        self.set_flowing(false);
    }
}

/// The error of a fault that ends the use of a server.
pub(crate) fn error_of(fault: &hikyaku_http::Fault) -> FetchError {
    FetchError::File(kind_of(fault))
}
