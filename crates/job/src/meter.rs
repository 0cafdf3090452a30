//! How far a copy is: counters that every thread adds to and the display reads.

mod messages;

use hikyaku_fs::{Shown, brief, cut};
use hikyaku_run_log::{FileStage, Recorder};
use hikyaku_transfer::{Failure, FailureKind, FileHash, PathFigures};
use messages::{Listing, Messages, Quota, Telling};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counters of one copy.
#[derive(Default)]
pub struct Meter {
    total_files: AtomicU64,
    total_bytes: AtomicU64,
    is_counted: AtomicBool,
    /// The totals that the other end reported last.
    told_total: Mutex<Option<(u64, u64)>>,
    files: AtomicU64,
    bytes: AtomicU64,
    kept_bytes: AtomicU64,
    quota: Quota,
    failures: Messages<Told>,
    kinds: Mutex<BTreeSet<FailureKind>>,
    /// Failures that are counted only: their reason was reported before, or there were too many.
    more_failures: AtomicU64,
    /// The destination is a FIFO, a device or an open descriptor.
    is_stream: AtomicBool,
    /// A source is a stream, and some of it may have been read.
    is_spent: AtomicBool,
    notes: Listing,
    /// Files and links of a dry run: those announced to the receiver, and those that the receiver answered.
    rehearsed: AtomicU64,
    noted: AtomicU64,
    remarks: Messages<String>,
    path: Mutex<PathFigures>,
    /// The log for begins and ends of files.
    recorder: Option<Arc<Recorder>>,
    /// Files at the destination with their hashes, if the caller asked for them.
    hashes: Option<Mutex<BTreeMap<Vec<u8>, FileHash>>>,
}

/// Where something failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// On this machine.
    Here,
    /// On the other one.
    There,
    /// Between two others, on the host that sends.
    From,
    /// Between two others, on the host that writes.
    To,
}

/// A failure as it is shown to the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The host of the failure.
    pub end: End,
    /// Its kind.
    pub kind: FailureKind,
    /// Its path there, if it is about one.
    pub place: String,
    /// The failure, without the path.
    pub text: String,
}

impl Told {
    /// In one line, on `host`, if that is another machine.
    pub fn line(&self, host: Option<&str>) -> String {
        let Self { place, text, .. } = self;
        match (host, place.as_str()) {
            (Some(host), "") => format!("{host}: {text}"),
            (Some(host), place) => format!("{host}:{place}: {text}"),
            (None, "") => text.clone(),
            (None, place) => format!("{place}: {text}"),
        }
    }
}

/// The values of all counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Files to be copied, as far as they are known.
    pub total_files: u64,
    /// Bytes to be copied, as far as they are known.
    pub total_bytes: u64,
    /// Whether these are all.
    pub is_counted: bool,
    /// Files that have their names.
    pub files: u64,
    /// Bytes that are written.
    pub bytes: u64,
    /// Of these, bytes that did not need to be sent.
    pub kept_bytes: u64,
}

/// The receiver speaks of more than was to be copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the receiving end speaks of more than was to be copied")]
pub struct TooMany;

impl Tally {
    /// Counts what another copy of the same run has done.
    pub fn add(&mut self, other: &Self) {
        let is_first = self.total_files == 0 && self.files == 0;
        self.is_counted = other.is_counted && (self.is_counted || is_first);
        // Some of the numbers come from other ends, which may send any value.
        self.total_files = self.total_files.saturating_add(other.total_files);
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.kept_bytes = self.kept_bytes.saturating_add(other.kept_bytes);
    }

    /// Bytes that were sent.
    pub const fn sent(&self) -> u64 {
        self.bytes.saturating_sub(self.kept_bytes)
    }
}

impl Meter {
    /// A meter that keeps the hashes of files too.
    pub fn with_hashes() -> Self {
        Self { hashes: Some(Mutex::default()), ..Self::default() }
    }

    /// This meter, with a log for begins and ends of files.
    pub fn recorded(self, recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..self }
    }

    /// The first bytes of a file are read or come.
    pub fn file_begins(&self, path: &[u8], size: u64) {
        self.tell_file(FileStage::Begin, path, size);
    }

    /// All bytes of a file have been sent, or written.
    pub fn file_ends(&self, path: &[u8], size: u64) {
        self.tell_file(FileStage::End, path, size);
    }

    /// A small file is sent, or written, as a whole.
    pub fn file_at_once(&self, path: &[u8], size: u64) {
        self.tell_file(FileStage::Begin, path, size);
        self.tell_file(FileStage::End, path, size);
    }

    fn tell_file(&self, stage: FileStage, path: &[u8], size: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.file(stage, path, Some(size), None);
        }
    }

    /// Whether it keeps them.
    pub const fn wants_hashes(&self) -> bool {
        self.hashes.is_some()
    }

    /// A file had another size than the one that was counted.
    pub fn correct_total(&self, counted: u64, size: u64) {
        self.total_bytes.fetch_add(size.wrapping_sub(counted), Ordering::Relaxed);
    }

    /// Adds the hash of a file at the destination, by its path there.
    pub fn add_hash(&self, path: &[u8], hash: impl FnOnce() -> Option<FileHash>) {
        if let Some(hashes) = &self.hashes
            && let Some(hash) = hash()
        {
            lock(hashes).insert(path.to_vec(), hash);
        }
    }

    /// Removes the hash of a file that was not completed.
    pub fn remove_hash(&self, path: &[u8]) {
        if let Some(hashes) = &self.hashes {
            lock(hashes).remove(path);
        }
    }

    /// All hashes, by path.
    pub fn take_hashes(&self) -> BTreeMap<Vec<u8>, FileHash> {
        self.hashes.as_ref().map(|hashes| std::mem::take(&mut *lock(hashes))).unwrap_or_default()
    }

    /// Adds a message that the user asked for, such as a name of a dry run.
    pub fn add_note(&self, note: String) {
        self.notes.add(note);
    }

    /// Counts a file or link of a dry run that the receiver may answer.
    pub fn add_rehearsed(&self) {
        self.rehearsed.fetch_add(1, Ordering::Relaxed);
    }

    /// The receiver would create `path`: adds a note.
    ///
    /// # Errors
    ///
    /// The receiver has answered more names than were announced to it.
    pub fn add_would(&self, path: &[u8]) -> Result<(), TooMany> {
        if self.noted.fetch_add(1, Ordering::Relaxed) >= self.rehearsed.load(Ordering::Relaxed) {
            return Err(TooMany);
        }
        self.add_note(Shown::new(path).to_string());
        Ok(())
    }

    /// Adds a message that is no failure.
    pub fn add_remark(&self, text: &str) {
        match self.quota.next() {
            Telling::Told => self.remarks.add(brief(text)),
            Telling::FirstUntold => self.end_telling(),
            Telling::Untold => {}
        }
    }

    /// Takes the remarks that were not shown yet.
    pub fn take_remarks(&self) -> Vec<String> {
        self.remarks.take()
    }

    /// Takes the notes that were not shown yet.
    pub fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    /// Sets the figures of the path.
    pub fn set_path(&self, path: PathFigures) {
        *lock(&self.path) = path;
    }

    /// Figures of the path, from the sending end.
    pub fn path(&self) -> PathFigures {
        *lock(&self.path)
    }

    /// Adds to what is to be copied.
    pub fn add_total(&self, files: u64, bytes: u64) {
        self.total_files.fetch_add(files, Ordering::Relaxed);
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the totals that the other end reports. It repeats them once when they are final.
    pub fn set_total(&self, files: u64, bytes: u64) {
        // spec: copy-total-1
        let before = lock(&self.told_total).replace((files, bytes));
        if before == Some((files, bytes)) {
            self.set_counted();
        }
        self.total_files.store(files, Ordering::Relaxed);
        self.total_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The totals are final.
    pub fn set_counted(&self) {
        self.is_counted.store(true, Ordering::Relaxed);
    }

    /// One file has its name.
    pub fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Several files have their names.
    pub fn add_files(&self, files: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
    }

    /// Bytes were written.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were written do not count any more.
    pub fn take_back(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes did not need to be sent.
    pub fn add_kept(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of an earlier run do not count any more.
    pub fn take_back_kept(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// One file or directory could not be copied; the others go on.
    pub fn add_failure(&self, end: End, failure: &Failure) {
        lock(&self.kinds).insert(failure.kind);
        match self.quota.next() {
            Telling::Told => {
                let place = cut(Shown::new(&failure.place).to_string());
                let text = brief(&failure.text);
                self.failures.add(Told { end, kind: failure.kind, place, text });
            }
            Telling::Untold => self.count_failure(),
            Telling::FirstUntold => {
                self.end_telling();
                self.count_failure();
            }
        }
    }

    fn end_telling(&self) {
        self.remarks.add("further failures are counted and not told".to_owned());
    }

    /// Counts a failure whose reason was reported before.
    pub fn count_failure(&self) {
        self.more_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The kinds of all failures.
    pub fn kinds(&self) -> BTreeSet<FailureKind> {
        lock(&self.kinds).clone()
    }

    /// The number of failures that are counted only.
    pub fn more_failures(&self) -> u64 {
        self.more_failures.load(Ordering::Relaxed)
    }

    /// Marks the destination as a stream: written bytes cannot be revoked, so the copy must not start again.
    pub fn set_stream(&self) {
        self.is_stream.store(true, Ordering::Relaxed);
    }

    /// Whether the target is a stream that something may have been written to.
    pub fn has_streamed(&self) -> bool {
        self.is_stream.load(Ordering::Relaxed) && self.bytes.load(Ordering::Relaxed) > 0
    }

    /// Marks a source as a stream: read bytes cannot be read again, so the copy must not start again.
    pub fn set_spent(&self) {
        self.is_spent.store(true, Ordering::Relaxed);
    }

    /// Whether a source is such a stream.
    pub fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Takes the failures that were not shown yet.
    pub fn take_failures(&self) -> Vec<Told> {
        self.failures.take()
    }

    /// The values of all counters.
    pub fn tally(&self) -> Tally {
        Tally {
            total_files: self.total_files.load(Ordering::Relaxed),
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
            is_counted: self.is_counted.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            kept_bytes: self.kept_bytes.load(Ordering::Relaxed),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
