//! How far a transfer is.

use crate::census::ServerId;
use crate::plan::Plan;
use hikyaku_job::Meter as Progress;
use hikyaku_run_log::FileStage;
use hikyaku_transfer::{LimitedBy, PathFigures};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hears that a file begins or ends: its path, its size, and the server that it comes from or goes to first.
pub type OnFile = Arc<dyn Fn(FileStage, &[u8], u64, Option<ServerId>) + Send + Sync>;

/// Counters of a transfer, which a display reads while it runs.
pub struct Meter {
    servers: Vec<ServerMeter>,
    /// Files and bytes.
    progress: Arc<Progress>,
    /// Who hears of files.
    on_file: Mutex<Option<OnFile>>,
    /// The paths of those that have begun and not ended, if somebody hears of them.
    begun: Mutex<BTreeSet<Vec<u8>>>,
    is_new_tree: AtomicBool,
    is_continued: AtomicBool,
    is_beside: AtomicBool,
}

/// Counters of one server.
#[derive(Debug, Default)]
pub struct ServerMeter {
    bytes: AtomicU64,
    is_lost: AtomicBool,
}

impl Meter {
    /// Counters for a transfer from or to this many servers.
    pub fn new(servers: usize) -> Self {
        Self::over(servers, Arc::default())
    }

    /// The same, where files and bytes are counted by `progress`, which may count those of other transfers as well.
    pub fn over(servers: usize, progress: Arc<Progress>) -> Self {
        let servers = (0..servers).map(|_| ServerMeter::default()).collect();
        let (on_file, begun) = (Mutex::default(), Mutex::default());
        let [is_new_tree, is_continued, is_beside] = [false; 3].map(AtomicBool::new);
        Self { servers, progress, on_file, begun, is_new_tree, is_continued, is_beside }
    }

    /// The same, and `on_file` hears of begins and ends of files, from any thread.
    #[must_use]
    pub fn heard_by(self, on_file: Option<OnFile>) -> Self {
        Self { on_file: Mutex::new(on_file), ..self }
    }

    /// Lets `on_file` hear of files if nobody does; whether it does.
    pub(crate) fn hear(&self, on_file: OnFile) -> Heard {
        let mut heard = lock(&self.on_file);
        if heard.is_some() {
            return Heard::ByOthers;
        }
        *heard = Some(on_file);
        Heard::ByThis
    }

    /// Nobody hears of files any more.
    pub(crate) fn forget(&self) {
        *lock(&self.on_file) = None;
    }

    fn on_file(&self) -> Option<OnFile> {
        lock(&self.on_file).clone()
    }

    /// The first bytes of a file are asked for or sent.
    pub(crate) fn file_begins(&self, path: &[u8], size: u64, server: ServerId) {
        if let Some(on_file) = self.on_file()
            && lock(&self.begun).insert(path.to_vec())
        {
            on_file(FileStage::Begin, path, size, Some(server));
        }
    }

    /// A file has its name, or failed.
    pub(crate) fn tell_file(&self, stage: FileStage, path: &[u8], size: u64) {
        if let Some(on_file) = self.on_file() {
            lock(&self.begun).remove(path);
            on_file(stage, path, size, None);
        }
    }

    /// The servers in their order.
    pub fn servers(&self) -> &[ServerMeter] {
        &self.servers
    }

    /// Bytes that were written to the target: here, or at the servers of an upload.
    pub fn written(&self) -> u64 {
        self.progress.tally().sent()
    }

    /// Bytes of files that were there already.
    pub fn kept(&self) -> u64 {
        self.progress.tally().kept_bytes
    }

    /// Files that have their names.
    pub fn files(&self) -> u64 {
        self.progress.tally().files
    }

    /// Files that were found so far, and their bytes.
    pub fn found(&self) -> (u64, u64) {
        let tally = self.progress.tally();
        (tally.total_files, tally.total_bytes)
    }

    /// Whether all files have been found.
    pub fn is_found(&self) -> bool {
        self.progress.tally().is_counted
    }

    /// Notes the files of a plan, which are all that there are. The bytes of a stream are counted as they come.
    pub fn add_plan(&self, plan: &Plan) {
        self.add_found(plan.files.len(), plan.bytes());
        if plan.stream.is_none() {
            self.set_found();
        }
    }

    /// Notes files that were found, and their bytes.
    pub fn add_found(&self, files: usize, bytes: u64) {
        self.progress.add_total(files as u64, bytes);
    }

    /// Notes that all files have been found.
    pub fn set_found(&self) {
        self.progress.set_counted();
    }

    /// Whether the target is the new name of a directory: when a part of it is there, the same copy goes into it.
    pub fn is_new_tree(&self) -> bool {
        self.is_new_tree.load(Ordering::Relaxed)
    }

    /// Notes that the target is the new name of a directory.
    pub fn set_new_tree(&self) {
        self.is_new_tree.store(true, Ordering::Relaxed);
    }

    /// Whether the same command continues also unfinished files, if this one is stopped.
    pub fn is_continued(&self) -> bool {
        self.is_continued.load(Ordering::Relaxed)
    }

    /// Whether another process makes the same copy now, so that none continues this one.
    pub fn is_beside(&self) -> bool {
        self.is_beside.load(Ordering::Relaxed)
    }

    /// Notes the limit of the rate of the transfer.
    pub(crate) fn set_limited_by(&self, limited_by: LimitedBy) {
        self.progress.set_path(PathFigures { limited_by, ..self.progress.path() });
    }

    /// Notes that bytes of a stream were taken, which cannot be read again.
    pub(crate) fn set_spent(&self) {
        self.progress.set_spent();
    }

    pub(crate) fn set_beside(&self) {
        self.is_beside.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_continued(&self) {
        self.is_continued.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add_moved(&self, server: ServerId, bytes: u64) {
        if let Some(server) = self.servers.get(server.0) {
            server.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn add_written(&self, bytes: u64) {
        self.progress.add_bytes(bytes);
    }

    /// Bytes of an upload do not count any more: their server is gone.
    pub(crate) fn take_back(&self, server: ServerId, bytes: u64) {
        self.progress.take_back(bytes);
        if let Some(server) = self.servers.get(server.0) {
            server.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes of a file of which nothing is left do not count any more.
    pub(crate) fn take_back_written(&self, bytes: u64) {
        self.progress.take_back(bytes);
    }

    /// Bytes of an earlier run do not count any more.
    pub(crate) fn take_back_kept(&self, bytes: u64) {
        self.progress.take_back_kept(bytes);
    }

    pub(crate) fn add_kept(&self, bytes: u64) {
        self.progress.add_kept(bytes);
    }

    pub(crate) fn add_file(&self) {
        self.progress.add_file();
    }

    pub(crate) fn set_lost(&self, server: ServerId, is_lost: bool) {
        if let Some(server) = self.servers.get(server.0) {
            server.is_lost.store(is_lost, Ordering::Relaxed);
        }
    }
}

/// Who hears of the files of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// The one that has asked for it.
    ByThis,
    /// Somebody that the caller of the transfer has named.
    ByOthers,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerMeter {
    /// Bytes of files that came from it, or went to it.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether its connection was lost.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }
}
