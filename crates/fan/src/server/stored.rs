//! A store that this machine reads by itself, such as a bucket, as several servers: one for each request at a time.

use super::paced::Paced;
use super::{Segment, remote_error};
use crate::census::File;
use hikyaku_remote::RemoteError;
use hikyaku_store::{Access, Cursor, ErrorKind, Open, Store, StorePath, Version};
use hikyaku_transfer::{Geometry, SegmentHash};
use hikyaku_units::Rate;
use std::collections::{HashMap, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One of the requests that a store is asked at once. Clones share it.
#[derive(Clone)]
pub struct StoreServer {
    shared: Arc<Shared>,
    /// Held while a request runs.
    turn: Arc<Mutex<()>>,
    paced: Paced,
}

/// What all requests of one store have in common.
struct Shared {
    store: Arc<dyn Store>,
    /// The content that each file had when the store was surveyed.
    versions: HashMap<Vec<u8>, Version>,
    /// Files that were opened last, the latest one behind.
    opened: Mutex<VecDeque<Opened>>,
    round_trip: Mutex<Duration>,
}

/// A file by its name in the store, and what reads it.
type Opened = (Vec<u8>, Arc<dyn Open>);

/// Files that stay open: the requests of one large file share one.
const OPEN_MAX: usize = 64;

/// Ends a request early from another thread.
#[derive(Clone, Debug)]
pub(crate) struct StoreCut(Arc<AtomicU64>);

impl StoreCut {
    /// Bytes from `from` on, counted over all ranges or files of the request, are not wanted.
    pub(crate) fn at(&self, from: u64) {
        self.0.store(from, Ordering::Relaxed);
    }

    fn is_reached(&self, done: u64) -> bool {
        done >= self.0.load(Ordering::Relaxed)
    }
}

impl Default for StoreCut {
    /// The request goes on to its end.
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl StoreServer {
    /// As many servers of one store as requests are to run at once. `versions` has the content of each file that is going
    /// to be asked for; a file that has another one is refused as changed.
    pub fn several(
        store: &Arc<dyn Store>,
        versions: HashMap<Vec<u8>, Version>,
        requests: usize,
    ) -> Vec<Self> {
        let shared = Arc::new(Shared {
            store: store.clone(),
            versions,
            opened: Mutex::default(),
            round_trip: Mutex::default(),
        });
        let server =
            |_| Self { shared: shared.clone(), turn: Arc::default(), paced: Paced::default() };
        (0..requests).map(server).collect()
    }

    pub(super) fn is_alive(&self) -> bool {
        let begin = Instant::now();
        let listed = self.shared.store.list(&StorePath::ROOT, None::<&Cursor>, 1);
        *lock(&self.shared.round_trip) = begin.elapsed();
        !listed.is_err_and(|error| is_away(error.kind))
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        let known = *lock(&self.shared.round_trip);
        if known.is_zero() && self.is_alive() {
            return Some(*lock(&self.shared.round_trip));
        }
        Some(known)
    }

    pub(super) fn close(&self) {
        self.paced.close();
    }

    pub(super) fn cap(&self, rate: Option<Rate>) {
        self.paced.cap(rate);
    }

    pub(super) fn ranges(
        &self,
        file: &File,
        ranges: &[Range<u64>],
        cut: &StoreCut,
        mut arrived: impl FnMut(u64),
        mut each: impl FnMut(Segment<'_>),
    ) -> Result<(), RemoteError> {
        let _turn = lock(&self.turn);
        let (open, geometry) = (self.open(file)?, Geometry::new(file.seen.size));
        let mut done = 0;
        for range in ranges {
            let (mut segment, mut at) = (Vec::new(), range.start);
            self.stream(file, &*open, range.clone(), (cut, &mut done), &mut |mut bytes| {
                arrived(bytes.len() as u64);
                while let Some((geometry, index)) =
                    geometry.and_then(|all| Some((all, all.at(at)?)))
                    && let Some(whole) = geometry.range(index)
                    && !bytes.is_empty()
                {
                    let lacks = (whole.end - whole.start) as usize - segment.len();
                    let (here, rest) = bytes.split_at(lacks.min(bytes.len()));
                    segment.extend_from_slice(here);
                    bytes = rest;
                    if here.len() == lacks {
                        if let Some(hash) = SegmentHash::new(geometry, index, &segment) {
                            each(Segment { index, hash, bytes: &segment });
                        }
                        segment.clear();
                        at = whole.end;
                    }
                }
            })?;
        }
        Ok(())
    }

    pub(super) fn many(
        &self,
        files: &[&File],
        cut: &StoreCut,
        arrived: impl Fn(u64),
        mut each: impl FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), RemoteError> {
        let _turn = lock(&self.turn);
        let mut done = 0;
        for (index, file) in files.iter().enumerate() {
            if cut.is_reached(done) {
                return Ok(());
            }
            let (mut content, uncut) = (Vec::new(), StoreCut::default());
            let whole = 0..file.seen.size;
            let read = self.open(file).and_then(|open| {
                self.stream(file, &*open, whole, (&uncut, &mut done), &mut |bytes| {
                    arrived(bytes.len() as u64);
                    content.extend_from_slice(bytes);
                })
            });
            match read {
                Ok(()) => each(index, Ok(content)),
                Err(RemoteError::Refused { kind, .. }) => each(index, Err(kind)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads a range until its end, or until nothing more of the request is wanted.
    fn stream(
        &self,
        file: &File,
        open: &dyn Open,
        range: Range<u64>,
        (cut, done): (&StoreCut, &mut u64),
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), RemoteError> {
        let is_closed = || self.paced.is_closed();
        let pace = self.paced.pace();
        let length = range.end - range.start;
        let mut is_cut = cut.is_reached(*done);
        if is_cut || range.is_empty() {
            return Ok(());
        }
        let told = open.stream(range, &mut |bytes| {
            self.paced.wait(&pace, bytes.len() as u64);
            *done += bytes.len() as u64;
            each(bytes);
            is_cut = cut.is_reached(*done);
            if is_cut || is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match told {
            _ if is_closed() => Err(RemoteError::Closed(None)),
            Ok(told) if told == length || is_cut => Ok(()),
            Ok(_) => Err(refused(file, ErrorKind::Changed)),
            Err(error) => {
                self.forget(file);
                Err(refused(file, error.kind))
            }
        }
    }

    /// The file as it was surveyed.
    fn open(&self, file: &File) -> Result<Arc<dyn Open>, RemoteError> {
        let path = file.path.as_bytes();
        if let Some((_, open)) = lock(&self.shared.opened).iter().find(|(other, _)| other == path) {
            return Ok(open.clone());
        }
        let at = StorePath::from(file.path.clone());
        let opened = self.shared.store.open(&at, Access::Read).and_then(|open| {
            let version = open.found()?.version;
            Ok((open, version))
        });
        let (open, version) = opened.map_err(|error| refused(file, error.kind))?;
        let surveyed = self.shared.versions.get(path).copied();
        if surveyed.is_some() && version != surveyed {
            return Err(refused(file, ErrorKind::Changed));
        }
        let open: Arc<dyn Open> = Arc::from(open);
        let mut opened = lock(&self.shared.opened);
        if opened.len() >= OPEN_MAX {
            opened.pop_front();
        }
        opened.push_back((path.to_vec(), open.clone()));
        Ok(open)
    }

    fn forget(&self, file: &File) {
        lock(&self.shared.opened).retain(|(path, _)| path != file.path.as_bytes());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the store itself is out of reach, and not only a file.
const fn is_away(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unreachable | ErrorKind::TimedOut)
}

fn refused(file: &File, kind: ErrorKind) -> RemoteError {
    match kind {
        kind if is_away(kind) => RemoteError::Closed(None),
        kind => remote_error(file.path.as_bytes(), kind),
    }
}

#[cfg(test)]
mod tests;
