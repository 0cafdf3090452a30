//! Channels of a store that has none of its own: each reads one file at a time by [`Open::stream`].

use super::{
    Asked, Begins, ConnectionCount, Cut, Cutting, FetchError, Fetcher, FetcherTraits, Paced,
    Segment, Segments, Wanted,
};
use crate::abilities::{Latency, Versions};
use crate::error::{ErrorKind, Result as StoreResult};
use crate::found::Found;
use crate::path::StorePath;
use crate::store::{Access, Extent, Open, Store};
use hikyaku_transfer::{Geometry, SEGMENT};
use hikyaku_units::Rate;
use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Channels that read files of a store: its own ones, at most `count`, or else `count` channels of one request each.
///
/// # Errors
///
/// Those of [`Store::own_fetchers`].
pub fn fetchers(store: &Arc<dyn Store>, count: usize) -> StoreResult<Vec<Arc<dyn Fetcher>>> {
    let own = store.own_fetchers(count)?;
    if !own.is_empty() {
        return Ok(own);
    }
    let shared = Shared::new(store);
    let fetcher = |_| -> Arc<dyn Fetcher> {
        Arc::new(StoreFetcher::new(shared.clone(), (1, Requests::Pieces)))
    };
    Ok((0..count).map(fetcher).collect())
}

/// One channel that reads up to `requests` files of a store at once. A limit of it is for all of them together.
pub fn fetcher(store: &Arc<dyn Store>, requests: u32) -> Arc<dyn Fetcher> {
    Arc::new(StoreFetcher::new(Shared::new(store), (requests, Requests::Pieces)))
}

/// One channel that reads up to `requests` files of a store at once, each from its begin to its end by a request of its own: for
/// a target that takes the bytes of a file in order, or takes a round trip to begin one.
pub fn fetcher_by_file(store: &Arc<dyn Store>, requests: u32) -> Arc<dyn Fetcher> {
    Arc::new(StoreFetcher::new(Shared::new(store), (requests, Requests::EachFile)))
}

/// One channel that reads up to `files` files of a store at once, each from its first byte to its last: for a target that
/// carries this number of files at once.
pub fn fetcher_of_files(store: &Arc<dyn Store>, files: u32) -> Arc<dyn Fetcher> {
    Arc::new(StoreFetcher::new(Shared::new(store), (files, Requests::Files)))
}

/// One channel.
struct StoreFetcher {
    shared: Arc<Shared>,
    paced: Paced,
    /// Requests that may be under way at once.
    requests_max: u32,
    requests: Requests,
}

/// The bytes that one request reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Requests {
    /// A piece of a large file, or several small files of a store of this machine.
    Pieces,
    /// A large file, or several small files of a store of this machine.
    Files,
    /// A file of any size.
    EachFile,
}

/// The state that all channels of a store share.
struct Shared {
    store: Arc<dyn Store>,
    /// Files that were opened last, the latest one behind.
    opened: Mutex<VecDeque<(Wanted, Arc<dyn Open>)>>,
    round_trip: Mutex<Option<Duration>>,
}

impl Shared {
    fn new(store: &Arc<dyn Store>) -> Arc<Self> {
        let (store, opened, round_trip) = (store.clone(), Mutex::default(), Mutex::default());
        Arc::new(Self { store, opened, round_trip })
    }
}

/// Files that stay open: the requests of one large file share one.
const OPEN_MAX: usize = 64;
/// The bytes of one request to a store behind a network: as much as one part of an upload has (Amazon S3 user guide,
/// "Performance guidelines" has 8 to 16 MB).
const PIECE_BYTES: u64 = 8 << 20;
/// Files of a store of this machine up to this size are fetched in batches.
const SMALL_BYTES: u64 = 256 << 10;

impl Fetcher for StoreFetcher {
    fn traits(&self) -> FetcherTraits {
        let (small_bytes, connections) =
            match (self.shared.store.abilities().latency, self.requests) {
                (Latency::Local, Requests::EachFile) => (0, ConnectionCount::Own),
                (Latency::Local, _) => (SMALL_BYTES, ConnectionCount::Own),
                // A file of any size is a request.
                (Latency::RoundTrip, _) => (0, ConnectionCount::Tuned),
            };
        FetcherTraits {
            requests_max: self.requests_max,
            request_bytes: Some(match self.requests {
                Requests::Pieces => PIECE_BYTES,
                Requests::Files | Requests::EachFile => FetcherTraits::WHOLE_FILE,
            }),
            small_bytes,
            // The protocol has no message that cancels a request: the service completes it, and its owner pays for it.
            cutting: Cutting::Never,
            connections,
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
        let geometry = Geometry::new(file.size).ok_or(FetchError::File(ErrorKind::TooLarge))?;
        let mut segments = Segments::new(geometry, asked);
        let mut done = 0;
        for range in asked.ranges {
            let mut at = range.start;
            self.read(file, &*open, range.clone(), (cut, &mut done), &mut |bytes| {
                arrived(bytes.len() as u64);
                segments.add(at, bytes, each);
                at += bytes.len() as u64;
            })?;
        }
        self.check(file, &*open)?;
        segments.end(each);
        Ok(0)
    }

    fn holes(&self, file: &Wanted) -> Result<Vec<Range<u64>>, FetchError> {
        if !self.shared.store.abilities().holes {
            return Ok(Vec::new());
        }
        let open = self.open(file)?;
        let extents = open.extents(0..file.size).map_err(|error| failed(error.kind))?;
        let hole = |extent: Extent| match extent {
            Extent::Hole(hole) => Some(whole_segments(hole, file.size)),
            Extent::Data(_) => None,
        };
        let holes = extents.into_iter().filter_map(hole).filter(|hole| !hole.is_empty()).collect();
        self.check(file, &*open)?;
        Ok(holes)
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let mut done = 0;
        for (index, file) in files.iter().enumerate() {
            if cut.is_reached(done) {
                return Ok(());
            }
            let (mut content, whole) = (Vec::new(), Cut::default());
            let read = self.open_anew(file).and_then(|open| {
                self.read(file, &*open, 0..file.size, (&whole, &mut done), &mut |bytes| {
                    arrived(bytes.len() as u64);
                    content.extend_from_slice(bytes);
                })?;
                self.check(file, &*open)
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
        let known = *lock(&self.shared.round_trip);
        known.unwrap_or_else(|| {
            self.is_alive();
            lock(&self.shared.round_trip).unwrap_or_default()
        })
    }

    fn paused(&self) -> Duration {
        self.paced.paused()
    }

    fn latency(&self) -> Latency {
        self.shared.store.abilities().latency
    }

    fn is_alive(&self) -> bool {
        let begin = Instant::now();
        let listed = self.shared.store.list(&StorePath::ROOT, None, 1);
        *lock(&self.shared.round_trip) = Some(begin.elapsed());
        !listed.is_err_and(|error| error.kind.is_away())
    }

    fn close(&self, _: &str) {
        self.paced.close();
    }
}

impl StoreFetcher {
    fn new(shared: Arc<Shared>, (requests_max, requests): (u32, Requests)) -> Self {
        Self { shared, paced: Paced::default(), requests_max, requests }
    }

    /// Reads a range until its end, or until nothing more of the request is wanted.
    fn read(
        &self,
        file: &Wanted,
        open: &dyn Open,
        range: Range<u64>,
        (cut, done): (&Cut, &mut u64),
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FetchError> {
        let length = range.end - range.start;
        let mut is_cut = cut.is_reached(*done);
        if is_cut || range.is_empty() {
            return Ok(());
        }
        let read = open.stream(range, &mut |bytes| {
            self.paced.wait(bytes.len() as u64);
            *done += bytes.len() as u64;
            each(bytes);
            is_cut = cut.is_reached(*done);
            match is_cut || self.paced.is_closed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        match read {
            _ if self.paced.is_closed() => Err(FetchError::Lost("the transfer is over".to_owned())),
            Ok(read) if read == length || is_cut => Ok(()),
            Ok(_) => Err(FetchError::File(ErrorKind::Changed)),
            Err(error) => {
                self.forget(file);
                Err(failed(error.kind))
            }
        }
    }

    /// The file with the wanted content.
    fn open(&self, file: &Wanted) -> Result<Arc<dyn Open>, FetchError> {
        let is_it = |(other, _): &&(Wanted, Arc<dyn Open>)| other == file;
        if let Some((_, open)) = lock(&self.shared.opened).iter().find(is_it) {
            return Ok(open.clone());
        }
        let open: Arc<dyn Open> = Arc::from(self.open_anew(file)?);
        let mut opened = lock(&self.shared.opened);
        if opened.len() >= OPEN_MAX {
            opened.pop_front();
        }
        opened.push_back((file.clone(), open.clone()));
        Ok(open)
    }

    fn open_anew(&self, file: &Wanted) -> Result<Box<dyn Open>, FetchError> {
        let store = &self.shared.store;
        let opened = store.open(&file.path, Access::Read).and_then(|open| {
            let found = open.found()?;
            Ok((open, found))
        });
        let (open, found) = opened.map_err(|error| failed(error.kind))?;
        let is_wanted = match (&file.content, store.abilities().versions) {
            (Some(content), _) => found.version.is_some_and(|version| content.is(version)),
            (None, Versions::Strong | Versions::SizeAndTime) => {
                (found.size, found.modified) == (file.size, file.modified)
            }
            (None, Versions::Nothing) => found.size == file.size,
        };
        match is_wanted || is_unsized(file, &found) {
            true => Ok(open),
            false => Err(FetchError::File(ErrorKind::Changed)),
        }
    }

    /// Whether all bytes that were read are of one content. For a file without a size only its length is checked.
    fn check(&self, file: &Wanted, open: &dyn Open) -> Result<(), FetchError> {
        let is_local = self.shared.store.abilities().latency == Latency::Local;
        let is_unchanged = match is_local && open.found().is_ok_and(|now| is_unsized(file, &now)) {
            true => open.read_at(file.size, &mut [0]).map(|length| length == 0),
            false => open.is_unchanged(),
        };
        let is_unchanged = is_unchanged.map_err(|error| failed(error.kind));
        if is_unchanged == Ok(true) {
            return Ok(());
        }
        self.forget(file);
        is_unchanged.and(Err(FetchError::File(ErrorKind::Changed)))
    }

    fn forget(&self, file: &Wanted) {
        lock(&self.shared.opened).retain(|(other, _)| other != file);
    }
}

/// Whether a file has been measured because its store reports no size, as the kernel does for files of /proc.
const fn is_unsized(file: &Wanted, found: &Found) -> bool {
    found.size == 0 && file.size > 0
}

/// The whole segments in a hole of a file of this size.
fn whole_segments(hole: Range<u64>, size: u64) -> Range<u64> {
    let end = if hole.end < size { hole.end - hole.end % SEGMENT } else { size };
    hole.start.next_multiple_of(SEGMENT).min(end)..end
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(kind: ErrorKind) -> FetchError {
    if kind.is_away() { FetchError::Lost(kind.to_string()) } else { FetchError::File(kind) }
}

#[cfg(test)]
mod tests;
