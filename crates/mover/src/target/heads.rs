//! Heads of segments: where a request ends within a segment, another one asks for the rest of it only. The draft has the heads
//! for the next run.

use super::{Manner, Stage, Target};
use hikyaku_store::Heads;
use hikyaku_transfer::{Head, Record, SegmentIndex};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The heads of a file.
#[derive(Default)]
pub(super) struct FileHeads {
    /// Those that requests share. They are other ones after each loss of the file.
    shared: Mutex<Arc<Heads>>,
    /// Those that the draft has.
    recorded: Mutex<BTreeMap<SegmentIndex, Head>>,
    /// The bytes of those that an earlier run has left. They count as kept.
    kept: Mutex<BTreeMap<SegmentIndex, u64>>,
}

impl FileHeads {
    /// The file begins anew: heads of the lost try are not mixed with other bytes.
    pub(super) fn forget(&self) {
        *lock(&self.shared) = Arc::default();
        lock(&self.recorded).clear();
        lock(&self.kept).clear();
    }

    /// Takes over the heads that an earlier run has left in the draft.
    pub(super) fn keep(&self, left: Vec<(Head, Vec<u8>)>) {
        for (head, bytes) in left {
            lock(&self.kept).insert(head.index, head.length());
            lock(&self.recorded).insert(head.index, head);
            lock(&self.shared).put(head.index, bytes);
        }
    }

    /// The bytes of the head of a segment that were counted as kept. They count once.
    pub(super) fn take_kept(&self, index: SegmentIndex) -> u64 {
        lock(&self.kept).remove(&index).unwrap_or(0)
    }
}

impl Target<'_> {
    /// The heads of its segments, which requests share.
    pub(crate) fn heads(&self) -> Arc<Heads> {
        lock(&self.heads.shared).clone()
    }

    /// Writes the heads to the draft and records them, so that the next run asks for the rest of their segments. A head that
    /// cannot be written is not recorded.
    pub(crate) fn record_heads(&self) {
        let Some(memo) = self.memo.filter(|_| self.is_continued()) else { return };
        let heads = self.heads();
        let (segments, is_anywhere) = (heads.segments(), matches!(self.manner, Manner::Anywhere));
        if !is_anywhere || segments.is_empty() || self.begun().is_err() {
            return;
        }
        let known = lock(&self.heads.recorded).clone();
        let written = |index| {
            let head = self.write_head(&heads, index, known.get(&index).copied())?;
            Some((index, head))
        };
        let recorded: BTreeMap<_, _> = segments.into_iter().filter_map(written).collect();
        if recorded.iter().all(|(index, head)| known.get(index) == Some(head)) {
            return;
        }
        let heads = recorded.values().copied().collect();
        memo.journal.append(&[Record::Heads { path: self.path_bytes(), heads }]);
        *lock(&self.heads.recorded) = recorded;
        self.is_unsynced.store(true, Ordering::Relaxed);
    }

    /// Bytes of the heads that the draft has for the next run, without those that an earlier run has left.
    pub(crate) fn new_head_bytes(&self) -> u64 {
        let stage = self.stage.read().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*stage, Stage::Open(_)) {
            return 0;
        }
        let (proven, kept) = (self.proven(), lock(&self.heads.kept));
        let new = |head: &Head| {
            let kept = kept.get(&head.index).copied().unwrap_or(0);
            if proven.lacks(head.index) { head.length().saturating_sub(kept) } else { 0 }
        };
        lock(&self.heads.recorded).values().map(new).sum()
    }

    /// Writes those bytes of a head that the draft does not have. Returns the head in the draft.
    fn write_head(
        &self,
        heads: &Arc<Heads>,
        index: SegmentIndex,
        known: Option<Head>,
    ) -> Option<Head> {
        let length = heads.length(index);
        if known.is_some_and(|known| known.length() == length) {
            return known;
        }
        let bytes = heads.first(index, usize::try_from(length).ok()?)?;
        let head = Head::new(index, &bytes)?;
        let at = head.range(self.geometry)?.start;
        // No other thread writes to the draft meanwhile, so that a complete segment is not written over.
        let stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        let Stage::Open(draft) = &*stage else { return None };
        if !Arc::ptr_eq(heads, &self.heads()) || !self.proven().lacks(index) {
            return None;
        }
        let known = known.map_or(0, |known| known.length()).min(length);
        draft.write_at(at + known, &bytes[known as usize..]).ok()?;
        Some(head)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
