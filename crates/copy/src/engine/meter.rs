//! How far a copy is: counters that every thread adds to and the display reads.

use hikyaku_transfer::{FileHash, PathFigures};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counters of one copy.
#[derive(Default)]
pub(crate) struct Meter {
    total_files: AtomicU64,
    total_bytes: AtomicU64,
    is_counted: AtomicBool,
    files: AtomicU64,
    bytes: AtomicU64,
    kept_bytes: AtomicU64,
    failures: Mutex<Vec<String>>,
    notes: Mutex<Vec<String>>,
    path: Mutex<PathFigures>,
    /// Files that are at the target now, with their hashes; if anybody wants to know.
    hashes: Option<Mutex<BTreeMap<Vec<u8>, FileHash>>>,
}

/// What they say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    /// Files and bytes to be copied, as far as they are known.
    pub(crate) total_files: u64,
    pub(crate) total_bytes: u64,
    /// Whether these are all.
    pub(crate) is_counted: bool,
    /// Files that have their names.
    pub(crate) files: u64,
    /// Bytes that are written.
    pub(crate) bytes: u64,
    /// Of these, bytes that needed not be sent.
    pub(crate) kept_bytes: u64,
}

impl Tally {
    /// Bytes that were sent.
    pub(crate) const fn sent(&self) -> u64 {
        self.bytes.saturating_sub(self.kept_bytes)
    }
}

impl Meter {
    /// A meter that keeps the hashes of files too.
    pub(crate) fn with_hashes() -> Self {
        Self { hashes: Some(Mutex::default()), ..Self::default() }
    }

    /// Whether it keeps them.
    pub(crate) const fn wants_hashes(&self) -> bool {
        self.hashes.is_some()
    }

    /// What need not be copied: the total was too large by it.
    pub(crate) fn sub_total(&self, bytes: u64) {
        self.total_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A file that is at the target, by its path there.
    pub(crate) fn add_hash(&self, path: &[u8], hash: impl FnOnce() -> Option<FileHash>) {
        if let Some(hashes) = &self.hashes
            && let Some(hash) = hash()
        {
            lock(hashes).insert(path.to_vec(), hash);
        }
    }

    /// It is not there after all.
    pub(crate) fn remove_hash(&self, path: &[u8]) {
        if let Some(hashes) = &self.hashes {
            lock(hashes).remove(path);
        }
    }

    /// All hashes, by path.
    pub(crate) fn take_hashes(&self) -> BTreeMap<Vec<u8>, FileHash> {
        self.hashes.as_ref().map(|hashes| std::mem::take(&mut *lock(hashes))).unwrap_or_default()
    }

    /// Something that its user asked to be told.
    pub(crate) fn add_note(&self, note: String) {
        lock(&self.notes).push(note);
    }

    /// Notes that nobody has been told of yet.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notes))
    }

    pub(crate) fn set_path(&self, path: PathFigures) {
        *lock(&self.path) = path;
    }

    /// What the sending end knows of the path.
    pub(crate) fn path(&self) -> PathFigures {
        *lock(&self.path)
    }

    pub(crate) fn add_total(&self, files: u64, bytes: u64) {
        self.total_files.fetch_add(files, Ordering::Relaxed);
        self.total_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The other end has counted.
    pub(crate) fn set_total(&self, files: u64, bytes: u64) {
        self.total_files.store(files, Ordering::Relaxed);
        self.total_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_counted(&self) {
        self.is_counted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_files(&self, files: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_kept(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// One file or directory could not be copied; the others go on.
    pub(crate) fn add_failure(&self, why: String) {
        lock(&self.failures).push(why);
    }

    /// Failures that nobody has been told of yet.
    pub(crate) fn take_failures(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.failures))
    }

    pub(crate) fn tally(&self) -> Tally {
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
