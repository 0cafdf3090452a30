//! Bytes of several data connections become segments. Each connection's thread puts its bytes into place and hashes the
//! segments that it completes, so that the fetcher's own thread only passes them on.

use hikyaku_transfer::{Geometry, SegmentHash, SegmentIndex};
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
    parts: Mutex<BTreeMap<SegmentIndex, Arc<Mutex<Part>>>>,
    whole: SyncSender<Whole>,
}

/// A segment of which bytes are missing.
#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    /// The ranges that have come, in order. They do not touch. A server that fails sends some bytes a second time.
    filled: Vec<Range<usize>>,
}

impl<'b> Assembly<'b> {
    /// Those of a file. Each segment is sent to `whole`.
    pub(super) const fn new(
        geometry: Geometry,
        buffers: &'b Buffers,
        whole: SyncSender<Whole>,
    ) -> Self {
        Self { geometry, buffers, parts: Mutex::new(BTreeMap::new()), whole }
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
            let part = Arc::clone(lock(&self.parts).entry(index).or_default());
            let whole = lock(&part).add(start, first, || self.buffers.take(length));
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
        is_whole.then(|| std::mem::take(&mut self.bytes))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_transfer::SEGMENT;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn a_segment_is_whole_when_each_of_its_bytes_has_come() {
        let size = 2 * SEGMENT + 100;
        let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let pieces = |from: u64, to: u64, length: u64| {
            (from..to).step_by(length as usize).map(move |at| at..to.min(at + length))
        };
        let in_order: Vec<_> = pieces(0, size, 100_000).collect();
        let backwards: Vec<_> =
            pieces(0, size, 300_000).collect::<Vec<_>>().into_iter().rev().collect();
        // A failure: more than half of a segment came, and comes again.
        let twice: Vec<_> = pieces(0, 700_000, 100_000).chain(pieces(0, size, 100_000)).collect();
        for order in [in_order, backwards, twice] {
            let (whole, from) = sync_channel(WHOLE_MAX);
            let (geometry, buffers) = (Geometry::new(size).unwrap(), Buffers::default());
            let assembly = Assembly::new(geometry, &buffers, whole);
            for piece in &order {
                let bytes = &content[piece.start as usize..piece.end as usize];
                assembly.add(piece.start, bytes).unwrap();
            }
            assembly.add(size, b"x").unwrap();
            drop(assembly);
            let mut passed = Vec::new();
            for Whole { index, hash, bytes } in from {
                let range = geometry.range(index).unwrap();
                assert!(bytes == content[range.start as usize..range.end as usize], "{index:?}");
                assert_eq!(SegmentHash::new(geometry, index, &bytes), Some(hash));
                passed.push(index.0);
            }
            passed.sort_unstable();
            assert_eq!(passed, [0, 1, 2]);
        }
    }
}
