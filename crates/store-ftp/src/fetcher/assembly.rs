//! Bytes of several data connections become segments. Each connection's thread puts its bytes into place and hashes the
//! segments that it completes, so that the fetcher's own thread only passes them on.

use hikyaku_store::{Asked, Heads, Incomplete};
use hikyaku_transfer::{Geometry, SEGMENT, SegmentHash, SegmentIndex};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Segments that wait for the fetcher's thread. Their bytes are in memory.
pub(super) const WHOLE_MAX: usize = 16;

/// A segment all of whose bytes have come.
pub(super) struct Whole {
    pub(super) index: SegmentIndex,
    pub(super) hash: SegmentHash,
    pub(super) bytes: Vec<u8>,
}

/// Memory of segments that were passed on. A fresh allocation of a segment's size costs a page fault for each page.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Takes a buffer of this length. Its content is of no meaning.
    fn take(&self, length: usize) -> Vec<u8> {
        let kept = lock(&self.0).pop();
        kept.map_or_else(
            || vec![0; length],
            |mut kept| {
                kept.resize(length, 0);
                kept
            },
        )
    }

    /// Returns a buffer.
    pub(super) fn put(&self, buffer: Vec<u8>) {
        let mut kept = lock(&self.0);
        if kept.len() < WHOLE_MAX {
            kept.push(buffer);
        }
    }
}

/// The segments of a file of which bytes are missing.
pub(super) struct Assembly<'b> {
    geometry: Geometry,
    buffers: &'b Buffers,
    parts: Mutex<BTreeMap<SegmentIndex, Arc<Incoming>>>,
    heads: Option<&'b Heads>,
    whole: SyncSender<Whole>,
}

/// A segment of which bytes are missing, as several connections share it.
#[derive(Default)]
struct Incoming(Mutex<Part>);

/// A segment of which bytes are missing.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    /// The ranges that have come, in order. They do not touch. A server that fails sends some bytes a second time.
    filled: Vec<Range<usize>>,
}

impl<'b> Assembly<'b> {
    /// Those of a request for ranges of a file. Each segment is sent to `whole`.
    pub(super) fn new(
        geometry: Geometry,
        buffers: &'b Buffers,
        whole: SyncSender<Whole>,
        asked: &Asked<'b>,
    ) -> Self {
        let (parts, heads) = (Mutex::new(BTreeMap::new()), asked.heads);
        let assembly = Self { geometry, buffers, parts, heads, whole };
        asked.ranges.iter().for_each(|range| assembly.begin_within(range.start));
        assembly
    }

    /// Begins with the head of the segment that has the byte at `start`. If the head does not exist any more, the segment
    /// stays incomplete.
    fn begin_within(&self, start: u64) {
        let (Some(heads), Some(index)) = (self.heads, self.geometry.at(start)) else { return };
        let length = (start % SEGMENT) as usize;
        let Some(range) = self.geometry.range(index).filter(|_| length > 0) else { return };
        let part = Incoming::default();
        if let Some(head) = heads.first(index, length) {
            let segment = (range.end - range.start) as usize;
            lock(&part.0).add(0, &head, || self.buffers.take(segment));
        }
        let part = Arc::new(part);
        heads.replace(index, part.clone());
        lock(&self.parts).insert(index, part);
    }

    /// The segment of which bytes are missing.
    fn part(&self, index: SegmentIndex) -> Arc<Incoming> {
        let new = || {
            let part = Arc::<Incoming>::default();
            self.heads.iter().for_each(|heads| heads.add(index, part.clone()));
            part
        };
        Arc::clone(lock(&self.parts).entry(index).or_insert_with(new))
    }

    /// Adds bytes at an offset of the file, from any thread. Bytes behind the end of the file are ignored.
    ///
    /// # Errors
    /// No thread takes segments any more.
    pub(super) fn add(&self, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty()
            && let Some(index) = self.geometry.at(at)
            && let Some(range) = self.geometry.range(index)
        {
            let (length, start) = ((range.end - range.start) as usize, (at - range.start) as usize);
            let (first, rest) = bytes.split_at(bytes.len().min(length - start));
            let part = self.part(index);
            let whole = lock(&part.0).add(start, first, || self.buffers.take(length));
            if let Some(bytes) = whole {
                lock(&self.parts).remove(&index);
                if let Some(hash) = SegmentHash::new(self.geometry, index, &bytes) {
                    let sent = self.whole.send(Whole { index, hash, bytes });
                    sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
                }
            }
            at += first.len() as u64;
            bytes = rest;
        }
        Ok(())
    }
}

impl Part {
    /// Adds bytes of the segment. Returns all of them when the last one has come.
    fn add(
        &mut self,
        start: usize,
        bytes: &[u8],
        buffer: impl FnOnce() -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        if self.bytes.is_empty() {
            self.bytes = buffer();
        }
        let mut range = start..start + bytes.len();
        self.bytes.get_mut(range.clone())?.copy_from_slice(bytes);
        self.filled.retain(|other| {
            let touches = other.start <= range.end && range.start <= other.end;
            if touches {
                range = range.start.min(other.start)..range.end.max(other.end);
            }
            !touches
        });
        let is_whole = range == (0..self.bytes.len());
        self.filled.push(range);
        is_whole.then(|| std::mem::take(self).bytes)
    }

    /// Its bytes up to the first missing one.
    fn head(&self) -> &[u8] {
        let first = self.filled.iter().find(|range| range.start == 0);
        first.map_or(&[], |range| &self.bytes[range.clone()])
    }
}

impl Incomplete for Incoming {
    fn head_length(&self) -> usize {
        lock(&self.0).head().len()
    }

    fn head(&self, length_max: usize) -> Vec<u8> {
        let part = lock(&self.0);
        let head = part.head();
        head[..head.len().min(length_max)].to_vec()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
