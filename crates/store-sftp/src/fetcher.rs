//! The session as a channel of requests for bytes of files.
//!
//! Small files are opened together, then read and closed together. The ranges of a large file share one handle, and each
//! range is read with a window of requests. All requests go over one connection, so that one channel is enough.

use crate::convert::{kind, reason};
use crate::reading::{Files, Reading};
use crate::store::Sftp;
use hikyaku_sftp::{Answer, Attributes, Failed, Handle, Request, Ticket};
use hikyaku_store::{
    Asked, Begins, ConnectionCount, Cut, Cutting, ErrorKind, FetchError, Fetcher, FetcherTraits,
    Kind, Paced, Segment, Segments, StorePath, Wanted,
};
use hikyaku_transfer::Geometry;
use hikyaku_units::Rate;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Requests of the scheduler that are under way at once. Each holds at most the window of one file in memory.
const REQUESTS_MAX: u32 = 32;
/// Bytes of one request for a large file, and of the small files that are fetched by one request.
const PIECE_BYTES: u64 = 32 << 20;
/// Large files that are read at once where each is read in order.
const FILES: u32 = 6;
/// The largest file that is fetched together with others.
const SMALL_BYTES: u64 = 64 << 10;
/// Small files that are open at the server at once.
const GROUP_FILES: usize = 64;
/// Large files that stay open between two requests.
const OPEN_MAX: usize = 64;
/// The largest content of a file that the server reports to be empty, as files of /proc are.
const UNSIZED_BYTES_MAX: usize = SMALL_BYTES as usize;

/// The session as a channel.
pub(crate) struct SftpFetcher {
    store: Sftp,
    paced: Paced,
    opened: Mutex<VecDeque<Arc<Opened>>>,
}

/// A large file that is being read.
struct Opened {
    store: Sftp,
    file: Wanted,
    /// The thread that needs it first opens it.
    handle: OnceLock<Result<Handle, FetchError>>,
    /// Bytes that were passed on.
    given: Mutex<u64>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(Ok(handle)) = self.handle.get() {
            // Nothing was written, so the answer is not awaited.
            drop(self.store.inner.client.ask(&Request::Close(handle.bytes())));
        }
    }
}

/// A small file, and the requests that read it.
struct Small<'a> {
    index: usize,
    file: &'a Wanted,
    at: Vec<u8>,
}

impl SftpFetcher {
    pub(crate) fn new(store: &Sftp) -> Self {
        Self { store: store.clone(), paced: Paced::default(), opened: Mutex::default() }
    }

    fn opened(&self) -> MutexGuard<'_, VecDeque<Arc<Opened>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The large file, open.
    fn open(&self, file: &Wanted) -> Result<Arc<Opened>, FetchError> {
        let mut all = self.opened();
        let known = all.iter().find(|open| open.file == *file).cloned();
        let open = known.unwrap_or_else(|| {
            let (store, file, handle) = (self.store.clone(), file.clone(), OnceLock::new());
            let open = Arc::new(Opened { store, file, handle, given: Mutex::default() });
            if all.len() >= OPEN_MAX {
                all.pop_front();
            }
            all.push_back(open.clone());
            open
        });
        drop(all);
        match open.handle() {
            Ok(_) => Ok(open),
            Err(error) => {
                self.forget(file);
                Err(error)
            }
        }
    }

    /// A file, for reads.
    fn reading<'a>(&'a self, handle: &'a Handle) -> Reading<'a> {
        let (blocks, inner) = (self.store.block(), &self.store.inner);
        Reading { client: &inner.client, handle, blocks, held: &inner.held }
    }

    fn forget(&self, file: &Wanted) {
        self.opened().retain(|open| open.file != *file);
    }

    fn failed(&self, file: &Wanted, failed: &Failed) -> FetchError {
        match failed.is_end() {
            true => FetchError::Lost(failed.to_string()),
            false => FetchError::File(self.store.why_not_used(&file.path, failed)),
        }
    }

    /// Reads a group of small files. All of them are opened before the first is read.
    fn group(
        &self,
        group: &[Small<'_>],
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let client = &self.store.inner.client;
        let (flags, attributes) = (Request::READ, Attributes::default());
        let requests: Vec<_> = group
            .iter()
            .map(|small| Request::Open { path: &small.at, flags, attributes })
            .collect();
        let mut reading = Vec::new();
        for (small, answer) in group.iter().zip(client.all(&requests)) {
            match answer.handle() {
                Ok(handle) => {
                    self.paced.wait(small.file.size);
                    reading.push((small, handle));
                }
                Err(failed) => match self.failed(small.file, &failed) {
                    FetchError::File(kind) => each(small.index, Err(kind)),
                    lost => return Err(lost),
                },
            }
        }
        let block = self.store.block().read;
        let requests: Vec<Vec<Request<'_>>> =
            reading.iter().map(|(small, handle)| reads(small.file.size, handle, block)).collect();
        let all: Vec<_> = requests.iter().flatten().copied().collect();
        let mut answers = client.all(&all).into_iter();
        for ((small, _), requests) in reading.iter().zip(&requests) {
            let answers: Vec<_> = answers.by_ref().take(requests.len()).collect();
            match self.content(small, answers, block) {
                Ok(bytes) => {
                    arrived(bytes.len() as u64);
                    each(small.index, Ok(bytes));
                }
                Err(FetchError::File(kind)) => each(small.index, Err(kind)),
                Err(lost) => return Err(lost),
            }
        }
        Ok(())
    }

    /// The content of a small file, by the answers to its requests.
    fn content(
        &self,
        small: &Small<'_>,
        answers: Vec<Answer>,
        block: usize,
    ) -> Result<Vec<u8>, FetchError> {
        let size = usize::try_from(small.file.size).unwrap_or(usize::MAX);
        let (mut bytes, mut is_short) = (Vec::with_capacity(size), false);
        // The last answer is that of the request which closes the file.
        let reads = answers.len().saturating_sub(1);
        for answer in answers.into_iter().take(reads) {
            let data = answer.data(block).map_err(|failed| self.failed(small.file, &failed))?;
            is_short |= data.len() < block && bytes.len() + data.len() < size;
            if !is_short {
                bytes.extend_from_slice(&data);
            }
        }
        if is_short {
            // A server may send fewer bytes than it was asked for before the end of the file.
            bytes = self.read_again(small)?;
        }
        match bytes.len() {
            length if length == size => Ok(bytes),
            // A file of /proc.
            length if size == 0 && length <= UNSIZED_BYTES_MAX => Ok(bytes),
            _ => Err(FetchError::File(ErrorKind::Changed)),
        }
    }

    /// Reads a small file by itself, up to one byte behind its size.
    fn read_again(&self, small: &Small<'_>) -> Result<Vec<u8>, FetchError> {
        let client = &self.store.inner.client;
        let (flags, attributes) = (Request::READ, Attributes::default());
        let opened = client.open(&Request::Open { path: &small.at, flags, attributes });
        let handle = opened.map_err(|failed| self.failed(small.file, &failed))?;
        let mut bytes = Vec::new();
        let mut add = |data: &[u8]| {
            bytes.extend_from_slice(data);
            ControlFlow::Continue(())
        };
        let range = 0..small.file.size + 1;
        let done = self.reading(&handle).read(range, &mut add);
        drop(client.ask(&Request::Close(handle.bytes())));
        done.map_err(|failed| self.failed(small.file, &failed))?;
        Ok(bytes)
    }
}

/// The requests that read a small file and close it. One byte more than its size shows whether the file has grown; a file
/// of /proc is reported to be empty.
fn reads(size: u64, handle: &Handle, block: usize) -> Vec<Request<'_>> {
    let (end, block) = (size + 1, block as u64);
    let reads = (0..end.div_ceil(block)).map(|number| {
        let offset = number * block;
        let length = if size == 0 { block } else { (end - offset).min(block) };
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Request::Read { handle: handle.bytes(), offset, length }
    });
    reads.chain([Request::Close(handle.bytes())]).collect()
}

impl Opened {
    fn handle(&self) -> Result<&Handle, FetchError> {
        let opened = self.handle.get_or_init(|| {
            let at = self.store.at(&self.file.path);
            let (flags, attributes) = (Request::READ, Attributes::default());
            let open = Request::Open { path: &at, flags, attributes };
            self.store.inner.client.open(&open).map_err(|failed| match failed.is_end() {
                true => FetchError::Lost(failed.to_string()),
                false => FetchError::File(self.store.why_not_used(&self.file.path, &failed)),
            })
        });
        opened.as_ref().map_err(Clone::clone)
    }

    /// Checks that the file has the size and the time with which it was found. The server may have been asked for them before.
    fn check(&self, handle: &Handle, asked: Option<Ticket>) -> Result<(), FetchError> {
        let client = &self.store.inner.client;
        let asked = asked.unwrap_or_else(|| client.ask(&Request::FStat(handle.bytes())));
        let now = client.answer(asked).attributes().map_err(|failed| match failed.is_end() {
            true => FetchError::Lost(failed.to_string()),
            false => FetchError::File(reason(&failed)),
        })?;
        let is_kind = kind(&now).is_none_or(|kind| kind == Kind::File);
        let is_size = now.size.is_none_or(|size| size == self.file.size);
        // Version 3 has the lower 32 bits of a time.
        let is_time = now.times.is_none_or(|(_, time)| time == self.file.modified.secs as u32);
        match is_kind && is_size && is_time {
            true => Ok(()),
            false => Err(FetchError::File(ErrorKind::Changed)),
        }
    }
}

impl Fetcher for SftpFetcher {
    fn traits(&self) -> FetcherTraits {
        let (requests_max, piece) = match self.store.known_block().and_then(|it| it.files()) {
            None => (REQUESTS_MAX, PIECE_BYTES),
            Some(Files::One) => (1, FetcherTraits::WHOLE_FILE),
            Some(Files::Several) => (FILES, FetcherTraits::WHOLE_FILE),
        };
        FetcherTraits {
            requests_max,
            request_bytes: Some(piece),
            small_bytes: SMALL_BYTES,
            // The protocol has no message that cancels a request; what is not requested yet is left out.
            cutting: Cutting::Never,
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
        let open = self.open(file)?;
        let handle = open.handle()?;
        let reading = self.reading(handle);
        let geometry = Geometry::new(file.size).ok_or(FetchError::File(ErrorKind::TooLarge))?;
        let mut segments = Segments::new(geometry, asked);
        let (mut done, mut given, mut behind) = (0, 0, None);
        let look = Request::FStat(handle.bytes());
        let mut each = |segment: Segment<'_>| {
            given += segment.bytes.len() as u64;
            each(segment);
        };
        for (number, range) in (1..).zip(asked.ranges) {
            if cut.is_reached(done) || range.is_empty() {
                break;
            }
            let (mut at, mut is_cut) = (range.start, false);
            let then = (number == asked.ranges.len()).then_some(&look);
            let got = reading.read_then(range.clone(), then, &mut |bytes| {
                self.paced.wait(bytes.len() as u64);
                done += bytes.len() as u64;
                arrived(bytes.len() as u64);
                segments.add(at, bytes, &mut each);
                at += bytes.len() as u64;
                is_cut = cut.is_reached(done);
                match is_cut || self.paced.is_closed() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            let (got, ticket) = got.map_err(|failed| self.failed(file, &failed))?;
            behind = ticket;
            if self.paced.is_closed() {
                return Err(FetchError::Lost("the transfer is over".to_owned()));
            }
            if got < range.end - range.start && !is_cut {
                self.forget(file);
                return Err(FetchError::File(ErrorKind::Changed));
            }
        }
        open.check(handle, behind).inspect_err(|_| self.forget(file))?;
        segments.end(&mut each);
        let mut all = open.given.lock().unwrap_or_else(PoisonError::into_inner);
        *all += given;
        if *all >= file.size {
            self.forget(file);
        }
        Ok(0)
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let mut done = 0;
        for (number, group) in files.chunks(GROUP_FILES).enumerate() {
            if cut.is_reached(done) {
                return Ok(());
            }
            if self.paced.is_closed() {
                return Err(FetchError::Lost("the transfer is over".to_owned()));
            }
            let group: Vec<_> = (number * GROUP_FILES..)
                .zip(group)
                .map(|(index, file)| Small { index, file, at: self.store.at(&file.path) })
                .collect();
            self.group(&group, arrived, each)?;
            done += group.iter().map(|small| small.file.size).sum::<u64>();
        }
        Ok(())
    }

    fn limit(&self, rate: Option<Rate>) {
        self.paced.limit(rate);
    }

    fn round_trip(&self) -> Duration {
        let known = || self.store.inner.round_trip.get().copied();
        known().unwrap_or_else(|| {
            drop(self.store.looked([&StorePath::ROOT]));
            known().unwrap_or_default()
        })
    }

    fn is_alive(&self) -> bool {
        let known = self.store.inner.client.attributes(&Request::Stat(&self.store.inner.root));
        !known.is_err_and(|failed| failed.is_end())
    }

    fn close(&self, _: &str) {
        self.paced.close();
    }
}
