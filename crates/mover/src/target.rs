//! The files that come of it, at the target.

mod grown;
mod heads;
mod in_place;
mod memo;
mod poured;

use grown::Compared;
pub use grown::{Growth, RESUME};
use heads::FileHeads;
use in_place::InPlace;
pub(crate) use memo::{Left, Memo, Others, Stamp, can_be_continued, is_in_place, made_version};

use crate::census::File;
use crate::dress::{FileMode, Times};
use crate::fetch::{Expected, Taking, Writing};
use crate::in_order::{InOrder, window};
use hikyaku_remote::Seen;
use hikyaku_store::{
    Draft, ErrorKind, Finish, Found, Growing, Heads, Latency, Make, Naming, Op, Put, Result, Store,
    StoreError, StorePath, Writes,
};
use hikyaku_transfer::{
    Durable, Existing, FileHash, Geometry, Proven, SEGMENT, SegmentHash, SegmentIndex, Verify,
    Write,
};
use hikyaku_units::{DataSize, Rate};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// A file that is being written. Several threads may write to it.
pub(crate) struct Target<'a> {
    store: Arc<dyn Store>,
    path: StorePath,
    finish: Finish,
    geometry: Geometry,
    /// About how many of its bytes are in no holes.
    data: u64,
    taking: Taking,
    manner: Manner,
    /// Read by who writes bytes, written by who begins, names or discards it.
    stage: RwLock<Stage>,
    proven: Mutex<Proven>,
    /// Bytes that count as written.
    written: AtomicU64,
    tries: AtomicU32,
    writing: Writing,
    naming: Naming,
    /// The treatment of its existing bytes, if it is written under its own name.
    growing: Option<Growing>,
    /// Where it is recorded for the next run.
    memo: Option<Memo<'a>>,
    /// Bytes that an earlier run has left.
    kept: AtomicU64,
    heads: FileHeads,
    /// Segments of an earlier run that are compared with the source.
    compared: Mutex<BTreeMap<SegmentIndex, SegmentHash>>,
    /// Whether bytes were written since the last sync.
    is_unsynced: AtomicBool,
    /// Whether the draft stays for the next run.
    is_left: AtomicBool,
    /// The number of the first segments of a file in order that were recorded.
    recorded: Mutex<u32>,
}

/// How the store takes the bytes.
enum Manner {
    /// In any order.
    Anywhere,
    /// One after the other.
    InOrder(InOrder),
    /// All at once, with the name: a small file.
    Whole(Mutex<Vec<u8>>),
}

/// A file of at most this size goes whole into the store, with others by one call, unless the store has a larger size for
/// that.
const WHOLE_BYTES: u64 = 64 << 10;

/// How far the file has come.
enum Stage {
    /// No byte of it has come.
    Awaited,
    /// It is being written.
    Open(Box<dyn Draft>),
    /// It has its name, or was given up.
    Over,
}

/// What follows from a segment that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Others are missing.
    GoOn,
    /// It was there already, or nothing of the file is wanted any more.
    Unwanted,
    /// It is whole.
    Whole,
    /// The source has other bytes than an earlier run fetched: the file begins anew.
    Differs,
    /// Its first bytes are those of a lost try.
    Outdated,
}

/// A segment that has come.
pub(crate) struct Come<'s> {
    pub(crate) index: SegmentIndex,
    pub(crate) hash: SegmentHash,
    pub(crate) bytes: &'s [u8],
    /// The heads of the request, if one of them is the beginning of this segment.
    pub(crate) upon: Option<&'s Arc<Heads>>,
}

impl<'a> Target<'a> {
    /// The file at `path` with these permission bits; `None` if it is larger than any file.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        path: StorePath,
        (seen, mode): (Seen, FileMode),
        (taking, writing): (Taking, Writing),
    ) -> Option<Self> {
        let geometry = Geometry::new(seen.size)?;
        let (mode, made) = match mode {
            FileMode::Exact(mode) => (Some(mode), None),
            FileMode::Made(mode) => (None, Some(mode)),
        };
        let abilities = store.abilities();
        // A store refuses a time that it cannot set.
        let modified = abilities.clock.kept(seen.modified).map(|_| seen.modified);
        let finish = Finish { mode, made, modified, ..Finish::default() };
        let manner = match (taking, abilities.writes) {
            (Taking::AnyOrder, _)
                if seen.size <= abilities.put_bytes.clamp(WHOLE_BYTES, SEGMENT)
                    && writing == Writing { durable: writing.durable, ..Writing::default() } =>
            {
                Manner::Whole(Mutex::default())
            }
            (Taking::AnyOrder, Writes::Anywhere) => Manner::Anywhere,
            // Runs in order are runs, and what is in order is within any window.
            _ => Manner::InOrder(InOrder::default()),
        };
        Some(Self {
            store,
            path,
            finish,
            geometry,
            data: geometry.size(),
            taking,
            manner,
            stage: RwLock::new(Stage::Awaited),
            proven: Mutex::new(Proven::nothing(geometry)),
            written: AtomicU64::new(0),
            tries: AtomicU32::new(1),
            writing,
            naming: Naming::Replace,
            growing: None,
            memo: None,
            kept: AtomicU64::new(0),
            heads: FileHeads::default(),
            compared: Mutex::default(),
            is_unsynced: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
            recorded: Mutex::default(),
        })
    }

    /// The file, which may be as old as this copy.
    pub(crate) fn with_times(mut self, times: Times) -> Self {
        if times == Times::New {
            self.finish.modified = None;
        }
        self
    }

    /// The file, which takes the place of another one only if `existing` allows that, as far as the store can tell.
    pub(crate) fn with_existing(mut self, existing: Existing) -> Self {
        if existing == Existing::Refused && self.store.abilities().name_if_absent {
            self.naming = Naming::IfAbsent;
        }
        self
    }

    /// The file, of which about `data` bytes are in no holes.
    pub(crate) fn with_data(self, data: u64) -> Self {
        Self { data, ..self }
    }

    /// Whether the target can have the modification time of the source, and gets it.
    pub(crate) const fn keeps_time(&self) -> bool {
        self.finish.modified.is_some()
    }

    /// Its name at the target.
    pub(crate) const fn path(&self) -> &StorePath {
        &self.path
    }

    fn proven(&self) -> MutexGuard<'_, Proven> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its bytes wait in memory until all have come.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self.manner, Manner::Whole(_))
    }

    /// How far ahead of its first missing byte it takes others at this limit of the rate; `None` if that does not matter.
    pub(crate) fn window(&self, rate: Option<Rate>) -> Option<DataSize> {
        let window = window(rate);
        let is_far = self.geometry.size() > window.bytes();
        (matches!(self.manner, Manner::InOrder(_)) && is_far).then_some(window)
    }

    /// The stage, for reading, after the draft was created.
    fn begun(&self) -> Result<RwLockReadGuard<'_, Stage>> {
        loop {
            let stage = self.stage.read().unwrap_or_else(PoisonError::into_inner);
            if !matches!(*stage, Stage::Awaited) {
                return Ok(stage);
            }
            drop(stage);
            let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
            if matches!(*stage, Stage::Awaited) {
                let make = Make {
                    size: Some(self.geometry.size()),
                    data: Some(self.data),
                    modified: self.finish.modified,
                    mode: self.finish.made,
                };
                let draft: Box<dyn Draft> = match (self.growing, self.writing.write) {
                    (Some(growing), _) => {
                        let draft = self.store.grow(&self.path, &make, growing)?;
                        Box::new(Compared::new(draft, self.path.clone(), growing))
                    }
                    (None, Write::Beside) => self.store.create(&self.path, &make)?,
                    (None, Write::InPlace) => Box::new(InPlace::open(&self.store, &self.path)?),
                };
                self.record_begin(&*draft);
                *stage = Stage::Open(draft);
            }
        }
    }

    /// Writes a proven segment. Returns the try of the file that it was written in, and the result. `on_written` is called with
    /// each number of bytes that the store has taken and that were not counted before: where it takes them in order, those of
    /// segments that came before are among them.
    pub(crate) fn write(
        &self,
        segment: &Come<'_>,
        on_written: &dyn Fn(u64),
    ) -> (u32, Result<Next>) {
        let Come { index, hash, bytes, .. } = *segment;
        let count = |bytes: u64| {
            self.written.fetch_add(bytes, Ordering::Relaxed);
            on_written(bytes);
        };
        if let Manner::Whole(content) = &self.manner {
            let mut content = content.lock().unwrap_or_else(PoisonError::into_inner);
            if self.proven().lacks(index) {
                *content = bytes.to_vec();
            }
            let next = self.note((index, hash));
            count(self.new_bytes(segment, next));
            return (self.tries(), Ok(next));
        }
        let tried = self.tries();
        match self.begun() {
            // The file cannot begin anew while the stage is held.
            Ok(stage) => (self.tries(), self.write_to(&stage, segment, &count)),
            Err(error) => (tried, Err(error)),
        }
    }

    fn write_to(&self, stage: &Stage, segment: &Come<'_>, count: &dyn Fn(u64)) -> Result<Next> {
        let Come { index, hash, bytes, upon } = *segment;
        let (Stage::Open(draft), Some(range)) = (stage, self.geometry.range(index)) else {
            return Ok(Next::Unwanted);
        };
        // A segment that is complete after all is kept for the next run, if it need not wait for others.
        let is_left = self.is_left();
        if is_left && !matches!(self.manner, Manner::Anywhere) {
            return Ok(Next::Unwanted);
        }
        if upon.is_some_and(|upon| !Arc::ptr_eq(upon, &self.heads())) {
            return Ok(Next::Outdated);
        }
        if self.differs((index, hash)) {
            return Ok(Next::Differs);
        }
        if let Manner::InOrder(order) = &self.manner {
            if self.note((index, hash)) == Next::Unwanted {
                return Ok(Next::Unwanted);
            }
            self.heads().remove(index);
            let on_taken = |piece, taken| {
                self.record_taken(taken);
                count(piece);
            };
            order.write(&**draft, (range.start, bytes), &on_taken)?;
            let is_written = order.progress().0 == self.geometry.size();
            return Ok(if is_written { Next::Whole } else { Next::GoOn });
        }
        if self.proven().lacks(index) {
            draft.write_at(range.start, bytes)?;
        }
        let next = self.note((index, hash));
        count(self.new_bytes(segment, next));
        if next != Next::Unwanted {
            self.record_segment((index, hash));
        }
        Ok(if is_left && next == Next::Whole { Next::GoOn } else { next })
    }

    /// The bytes of a segment that were not counted before. One that is there has no head.
    fn new_bytes(&self, segment: &Come<'_>, next: Next) -> u64 {
        if !self.proven().lacks(segment.index) {
            self.heads().remove(segment.index);
        }
        match next {
            Next::GoOn | Next::Whole => {
                (segment.bytes.len() as u64).saturating_sub(self.heads.take_kept(segment.index))
            }
            Next::Unwanted | Next::Differs | Next::Outdated => 0,
        }
    }

    /// Notes that a segment has come, unless another channel has brought the same one.
    fn note(&self, (index, hash): (SegmentIndex, SegmentHash)) -> Next {
        let mut proven = self.proven();
        if !proven.lacks(index) {
            return Next::Unwanted;
        }
        proven.insert(index, hash);
        if proven.is_whole() { Next::Whole } else { Next::GoOn }
    }

    /// Bytes that a target has taken which takes them in order.
    pub(crate) fn taken(&self) -> Option<u64> {
        match &self.manner {
            Manner::InOrder(order) => Some(order.progress().0),
            Manner::Anywhere | Manner::Whole(_) => None,
        }
    }

    /// The content of a small file that has come whole.
    pub(crate) fn content(&self) -> Option<MutexGuard<'_, Vec<u8>>> {
        match &self.manner {
            Manner::Whole(content) => Some(content.lock().unwrap_or_else(PoisonError::into_inner)),
            Manner::Anywhere | Manner::InOrder(_) => None,
        }
    }

    /// The operation that makes a small file.
    pub(crate) fn put<'b>(&'b self, bytes: &'b [u8]) -> Op<'b> {
        let (path, finish, durable) = (&self.path, &self.finish, self.writing.durable);
        Op::Put(Put { path, bytes, naming: self.naming, finish, durable })
    }

    /// Whether all of it, which has come, is what is expected.
    pub(crate) fn meets(&self, expected: &dyn Expected, file: &File) -> Result<bool> {
        match &*self.begun()? {
            Stage::Open(draft) if self.taking == Taking::AnyOrder => {
                expected.is_met(file, &|at, into| draft.read_at(at, into))
            }
            _ => Ok(true),
        }
    }

    /// Brings it to the disk and gives it its name. This makes an empty file. A stream has its name.
    pub(crate) fn finish(&self) -> Result<Option<Found>> {
        if self.is_left() {
            return Ok(None);
        }
        if let Stage::Open(draft) = &*self.begun()? {
            let is_in_order = matches!(self.manner, Manner::InOrder(_));
            if let Manner::InOrder(order) = &self.manner {
                order.wait()?;
            }
            // A file that is written in place may have been longer.
            if !is_in_order || self.writing.write == Write::InPlace {
                draft.set_len(self.geometry.size())?;
            }
            self.bring_to_disk(&**draft)?;
        }
        match self.end() {
            Some(draft) if self.taking == Taking::AnyOrder => {
                draft.name(self.naming, &self.finish).map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Brings all of the file to the disk, and reads it again if its user wants that.
    fn bring_to_disk(&self, draft: &dyn Draft) -> Result<()> {
        let is_stream = self.taking == Taking::InOrder;
        let is_read = self.writing.verify == Verify::ReadBack && !is_stream;
        // Bytes of a stream may be on their way to a store behind a network: its sync fails if they do not get there.
        let is_ahead = is_stream && self.store.abilities().latency == Latency::RoundTrip;
        if is_read || is_ahead || self.writing.durable == Durable::Disk {
            draft.sync()?;
        }
        if !is_read {
            return Ok(());
        }
        draft.forget_cache()?;
        let (proven, mut bytes) = (self.proven().clone(), Vec::new());
        for index in self.geometry.indices() {
            let range = self.geometry.range(index).unwrap_or_default();
            bytes.resize((range.end - range.start) as usize, 0);
            let is_read = draft.read_at(range.start, &mut bytes)? == bytes.len();
            let hash = SegmentHash::new(self.geometry, index, &bytes);
            if !is_read || hash.is_none() || hash != proven.get(index) {
                return Err(StoreError::new("read back", &self.path, ErrorKind::Damaged));
            }
        }
        Ok(())
    }

    /// The hash of its content, after all of it has come.
    pub(crate) fn hash(&self) -> Option<FileHash> {
        self.proven().hash()
    }

    /// The number of the present try. An error of an earlier one means nothing.
    pub(crate) fn tries(&self) -> u32 {
        self.tries.load(Ordering::Relaxed)
    }

    /// Whether the file begins anew after this error of the present try: its place is lost, and it may get another one.
    /// Nothing of it is proven then. Returns the bytes of the lost try.
    pub(crate) fn begins_anew(&self, error: &StoreError, tries_max: u32) -> Option<u64> {
        let is_lost = error.kind.is_away() || error.kind == ErrorKind::Gone;
        let is_stream = self.taking == Taking::InOrder || self.growing.is_some();
        if !is_lost || is_stream || self.tries() >= tries_max {
            return None;
        }
        Some(self.anew())
    }

    /// The file begins anew. Returns the bytes of the lost attempt.
    pub(crate) fn anew(&self) -> u64 {
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        self.tries.fetch_add(1, Ordering::Relaxed);
        let lost = std::mem::replace(&mut *stage, Stage::Awaited);
        *self.proven() = Proven::nothing(self.geometry);
        self.compared.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.heads.forget();
        if let Manner::InOrder(order) = &self.manner {
            order.reset();
        }
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        // No thread writes while the stage is locked: these are the bytes of the lost attempt.
        let bytes = self.take_back();
        drop(stage);
        if let Stage::Open(draft) = lost {
            draft.discard();
        }
        bytes
    }

    /// Bytes of an earlier run that do not count any more.
    pub(crate) fn take_back_kept(&self) -> u64 {
        self.kept.swap(0, Ordering::Relaxed)
    }

    /// Bytes that were written and do not count any more.
    pub(crate) fn take_back(&self) -> u64 {
        self.written.swap(0, Ordering::Relaxed)
    }

    /// Removes what was written: nothing of it is wanted any more.
    pub(crate) fn give_up(&self) {
        if let (Manner::InOrder(order), Taking::InOrder) = (&self.manner, self.taking) {
            // Whoever writes to it may be held up by its reader.
            order.fail(StoreError::new("write", &self.path, ErrorKind::Gone));
        } else if let Some(draft) = self.end() {
            draft.discard();
        }
    }

    fn end(&self) -> Option<Box<dyn Draft>> {
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Open(draft) => Some(draft),
            Stage::Awaited | Stage::Over => None,
        }
    }
}
