//! Files that the next run of the same command continues: what a journal records of them, and what an earlier run has left.

use super::in_place::{self, InPlace};
use super::{Manner, Stage, Target};
use crate::fetch::Taking;
use crate::in_order::InOrder;
use hikyaku_job::{JournalFile, Remembered};
use hikyaku_store::{Draft, Found, Store, StorePath, Time, Token};
use hikyaku_transfer::{
    Done, Durable, FileRecord, Head, Proven, Reached, Record, SEGMENT, SegmentHash, SegmentIndex,
    Version, Write,
};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// A smaller file is fetched again as a whole: it is hardly larger than the part that is compared.
const CONTINUED_BYTES: u64 = 4 << 20;

/// Hashes in one record.
const HASHES_MAX: usize = 8192;

/// Where a file is recorded, and the version of its source.
#[derive(Clone, Copy)]
pub(crate) struct Memo<'a> {
    pub(crate) journal: &'a JournalFile,
    pub(crate) version: Version,
}

/// The part of a file that an earlier run has left.
pub(crate) struct Left {
    pub(crate) draft: Box<dyn Draft>,
    /// Segments that are on the disk as they were fetched.
    pub(crate) proven: Proven,
    /// The last segments: they are fetched again. If one differs, the source has other bytes now.
    pub(crate) compared: BTreeMap<SegmentIndex, SegmentHash>,
    /// The heads of other segments.
    pub(crate) heads: Vec<(Head, Vec<u8>)>,
}

impl Left {
    /// Bytes that are not fetched again.
    pub(crate) fn bytes(&self) -> u64 {
        let heads = self.heads.iter().map(|(_, bytes)| bytes.len() as u64);
        self.proven.bytes() + heads.sum::<u64>()
    }
}

impl<'a> Target<'a> {
    /// The file, recorded in a journal. Small files, files of a store whose drafts end with this process, and streams are
    /// recorded when they are complete.
    pub(crate) fn recorded(self, memo: Memo<'a>) -> Self {
        Self { memo: Some(memo), ..self }
    }

    /// Whether the next run can continue it.
    pub(crate) fn is_continued(&self) -> bool {
        self.memo.is_some()
            && matches!(self.manner, Manner::Anywhere | Manner::InOrder(_))
            && self.taking == Taking::AnyOrder
            && self.growing.is_none()
            && can_be_continued(&*self.store, self.writing.write)
            && self.geometry.size() > CONTINUED_BYTES
    }

    /// The draft that an earlier run has left, and whether another program may have written to it since.
    pub(crate) fn take_up(&self, token: &Token) -> Option<(Box<dyn Draft>, Others)> {
        match (self.writing.write, is_in_place(token, &self.path)) {
            (Write::Beside, false) => {
                Some((self.store.take_up(&self.path, token).ok()?, Others::Excluded))
            }
            (Write::InPlace, true) => {
                let open = InPlace::open(&self.store, &self.path).ok()?;
                Some((Box::new(open), Others::Possible))
            }
            // The file of the name was made, or removed, since.
            (Write::Beside, true) | (Write::InPlace, false) => None,
        }
    }

    /// The file with the part that an earlier run has left.
    pub(crate) fn continuing(self, left: Left) -> Self {
        let Left { draft, mut proven, compared, mut heads } = left;
        let manner = match self.manner {
            Manner::InOrder(_) => {
                let first = first_segments(&proven);
                (proven, heads) = (first.clone(), Vec::new());
                Manner::InOrder(InOrder::from(first.bytes()))
            }
            manner => manner,
        };
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) =
            u32::try_from(proven.bytes() / SEGMENT).unwrap_or(u32::MAX);
        let this = Self { manner, ..self };
        this.continuing_with(Left { draft, proven, compared, heads })
    }

    fn continuing_with(self, left: Left) -> Self {
        self.record_left(&left);
        self.kept.store(left.bytes(), Ordering::Relaxed);
        let Left { draft, proven, compared, heads } = left;
        self.heads.keep(heads);
        Self {
            stage: Stage::Open(draft).into(),
            proven: proven.into(),
            compared: compared.into(),
            ..self
        }
    }

    /// The runs of segments that are proven or skipped, as ranges of bytes.
    pub(crate) fn proven_ranges(&self) -> Vec<std::ops::Range<u64>> {
        let range = |(first, hashes): (SegmentIndex, Vec<SegmentHash>)| {
            let last = SegmentIndex(first.0 + (hashes.len() as u32).saturating_sub(1));
            Some(self.geometry.range(first)?.start..self.geometry.range(last)?.end)
        };
        let skipped = Some(0..self.skipped()).filter(|range| !range.is_empty());
        self.proven().runs().into_iter().filter_map(range).chain(skipped).collect()
    }

    /// Whether all of it is proven.
    pub(crate) fn is_proven(&self) -> bool {
        self.proven().is_whole()
    }

    /// Whether a segment has other bytes than an earlier run fetched. A segment that is equal is not compared again.
    pub(super) fn differs(&self, (index, hash): (SegmentIndex, SegmentHash)) -> bool {
        let mut compared = self.compared.lock().unwrap_or_else(PoisonError::into_inner);
        compared.remove(&index).is_some_and(|earlier| earlier != hash)
    }

    /// Records that the draft was begun. It then outlives this process.
    pub(super) fn record_begin(&self, draft: &dyn Draft) {
        let Some(memo) = self.memo.filter(|_| self.is_continued()) else { return };
        if memo.journal.append(&[self.file_record(draft, memo.version)]) == Remembered::Yes {
            draft.keep();
        }
    }

    /// Records a segment that was written.
    pub(super) fn record_segment(&self, (first, hash): (SegmentIndex, SegmentHash)) {
        if let Some(memo) = self.memo.filter(|_| self.is_continued()) {
            let (path, hashes) = (self.path_bytes(), vec![hash]);
            memo.journal.append(&[Record::Segments { path, first, hashes }]);
            self.is_unsynced.store(true, Ordering::Relaxed);
        }
    }

    /// Records the segments of a file in order of which the draft has taken this number of bytes.
    pub(super) fn record_taken(&self, taken: u64) {
        if !self.is_continued() {
            return;
        }
        let whole = if taken == self.geometry.size() { u64::MAX } else { taken / SEGMENT };
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        while u64::from(*recorded) < whole {
            let index = SegmentIndex(*recorded);
            let Some(hash) = self.geometry.range(index).and_then(|_| self.proven().get(index))
            else {
                break;
            };
            self.record_segment((index, hash));
            *recorded += 1;
        }
    }

    /// Records that the file is complete and has its name.
    pub(crate) fn record_end(&self, made: &Found) {
        if let Some(memo) = self.memo {
            let done = Done {
                path: self.path_bytes(),
                size: self.geometry.size(),
                version: memo.version,
                made: made_version(made),
                hash: self.hash(),
                reached: match self.writing.durable {
                    Durable::Disk => Reached::Disk,
                    Durable::Cache => Reached::Kernel,
                },
            };
            memo.journal.append(&[Record::Done(done)]);
        }
    }

    /// Nothing more of it is requested in this run, and the draft stays for the next one.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    /// Brings what was written to the disk. Returns its path and the modification time, or the error and the try of the
    /// file that has it; `None` if nothing was written since the last call.
    pub(crate) fn sync(&self) -> Option<Result<Stamp, (u32, hikyaku_store::StoreError)>> {
        let stage = self.stage.read().unwrap_or_else(PoisonError::into_inner);
        let Stage::Open(draft) = &*stage else { return None };
        if !self.is_unsynced.swap(false, Ordering::Relaxed) {
            return None;
        }
        let tried = self.tries();
        Some(draft.sync().and_then(|()| draft.modified()).map_err(|error| (tried, error)).map(
            |modified| modified.map(|Time { secs, nanos }| (self.path_bytes(), (secs, nanos))),
        ))
    }

    /// Records the segments of the file that this run has found. Records of the earlier run may name bytes that are
    /// lost.
    fn record_left(&self, left: &Left) {
        let Some(memo) = self.memo else { return };
        let mut all = left.proven.clone();
        left.compared.iter().for_each(|(index, hash)| all.insert_run(*index, &[*hash]));
        let mut records = vec![self.file_record(&*left.draft, memo.version)];
        for (first, hashes) in all.runs() {
            for (number, hashes) in hashes.chunks(HASHES_MAX).enumerate() {
                let first = SegmentIndex(first.0 + (number * HASHES_MAX) as u32);
                let (path, hashes) = (self.path_bytes(), hashes.to_vec());
                records.push(Record::Segments { path, first, hashes });
            }
        }
        if !left.heads.is_empty() {
            let heads = left.heads.iter().map(|(head, _)| *head).collect();
            records.push(Record::Heads { path: self.path_bytes(), heads });
        }
        if memo.journal.append(&records) == Remembered::Yes {
            memo.journal.synced(memo.journal.length(), Vec::new());
        }
    }

    fn file_record(&self, draft: &dyn Draft, version: Version) -> Record {
        Record::File(FileRecord {
            path: self.path_bytes(),
            partial: draft.token().0,
            size: self.geometry.size(),
            version,
        })
    }

    pub(super) fn path_bytes(&self) -> Vec<u8> {
        self.path.as_bytes().to_vec()
    }

    /// A sync failed: none of the written bytes count for the next run.
    pub(crate) fn record_void(&self) {
        if let Some(memo) = self.memo {
            memo.journal.append(&[Record::Void { path: self.path_bytes() }]);
        }
    }
}

/// The segments at the beginning of a file, up to the first one that is missing.
fn first_segments(proven: &Proven) -> Proven {
    let mut first = Proven::nothing(proven.file());
    if let Some((SegmentIndex(0), hashes)) = proven.runs().into_iter().next() {
        first.insert_run(SegmentIndex(0), &hashes);
    }
    first
}

/// Whether other programs may have written to what an earlier run has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Others {
    /// They know no name of it.
    Excluded,
    /// It has its name.
    Possible,
}

/// Whether a store keeps unfinished files that are written so.
pub(crate) fn can_be_continued(store: &dyn Store, write: Write) -> bool {
    match write {
        Write::Beside => store.abilities().take_up,
        Write::InPlace => store.abilities().update,
    }
}

/// Whether the token is that of a file that is written under its own name.
pub(crate) fn is_in_place(token: &Token, path: &StorePath) -> bool {
    *token == in_place::token(path)
}

/// The path of a file and its modification time; `None` if the store reports no modification time.
pub(crate) type Stamp = Option<(Vec<u8>, (i64, u32))>;

/// The version of a file of this program's making: its size and time. A store guarantees no version of a file as young as that.
pub(crate) fn made_version(made: &Found) -> Version {
    let Time { secs, nanos } = made.modified;
    Version::of(&[made.size, secs.cast_unsigned(), u64::from(nanos)])
}
