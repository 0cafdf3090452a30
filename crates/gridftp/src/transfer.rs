//! Parts that both directions of a transfer share.

use crate::error::FtpError;
use crate::settings::Settings;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Data connections of one part. The server's word on their number is not believed beyond it.
pub(crate) const CONNECTIONS_MAX: u32 = 1024;

/// A part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    /// The file's path on the server.
    pub path: &'a [u8],
    /// Where the part begins, in bytes.
    pub offset: u64,
    /// Its bytes; not zero.
    pub length: u64,
}

/// A part that is under way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Data connections that carry it.
    pub connections: u32,
    /// Its bytes that were stored, written to a socket, or reported by the receiving server.
    pub bytes: u64,
    /// Time from sending its command, or from the end of the part before if it was asked for before that.
    pub elapsed: Duration,
    /// Share of the connections' time that was spent in the caller's function, 0 to 1.
    pub local_share: f64,
}

/// A part that was transferred completely.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transferred {
    /// Data connections that carried it.
    pub connections: u32,
    /// Time from sending its command to its completion. If it was asked for before the part before it was complete, the time
    /// from that completion to its own, so that the times of several parts do not overlap.
    pub elapsed: Duration,
    /// Share of the connections' time that was spent in the caller's function, 0 to 1.
    pub local_share: f64,
    /// Packets that this end sent again; `None` at a receiver.
    pub retransmitted: Option<u64>,
}

/// A transfer that is under way, as its threads share it.
#[derive(Debug)]
pub(crate) struct Flow<'a> {
    settings: &'a Settings,
    /// Counts the bytes that have been stored, or given to the kernel; the caller's, over many parts.
    pub(crate) counted: &'a AtomicU64,
    local_nanos: AtomicU64,
    is_over: AtomicBool,
    failed: Mutex<Option<FtpError>>,
}

impl<'a> Flow<'a> {
    pub(crate) const fn new(settings: &'a Settings, counted: &'a AtomicU64) -> Self {
        Self {
            settings,
            counted,
            local_nanos: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            failed: Mutex::new(None),
        }
    }

    /// Ends all threads of this transfer.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.settings.is_stopped()
    }

    /// The first failure counts.
    pub(crate) fn fail(&self, error: FtpError) {
        let mut failed = lock(&self.failed);
        failed.get_or_insert(error);
        self.end();
    }

    pub(crate) fn take_failure(&self) -> Option<FtpError> {
        lock(&self.failed).take()
    }

    pub(crate) fn is_failed(&self) -> bool {
        lock(&self.failed).is_some()
    }

    /// Calls the caller's function and counts its time.
    pub(crate) fn locally<T>(&self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.local_nanos.fetch_add(nanos, Ordering::Relaxed);
        result
    }

    /// Time in the caller's function until this moment, summed over all connections.
    pub(crate) fn local_time(&self) -> Duration {
        Duration::from_nanos(self.local_nanos.load(Ordering::Relaxed))
    }
}

/// The share of `local` in the time of `connections` connections, 0 to 1.
pub(crate) fn share(local: Duration, connections: u32, elapsed: Duration) -> f64 {
    let all = elapsed.as_secs_f64() * f64::from(connections.max(1));
    if all > 0.0 { (local.as_secs_f64() / all).min(1.0) } else { 0.0 }
}

/// Notices when nothing moves.
pub(crate) struct Watch {
    last: u64,
    since: Instant,
}

impl Watch {
    pub(crate) fn new(flow: &Flow<'_>) -> Self {
        Self { last: flow.counted.load(Ordering::Relaxed), since: Instant::now() }
    }

    /// A line was sent or received.
    pub(crate) fn touch(&mut self) {
        self.since = Instant::now();
    }

    pub(crate) fn check(&mut self, flow: &Flow<'_>) -> Result<(), FtpError> {
        let counted = flow.counted.load(Ordering::Relaxed);
        if counted != self.last {
            self.last = counted;
            self.touch();
        }
        if flow.settings.is_stopped() {
            return Err(FtpError::Stopped);
        }
        let patience = flow.settings.patience;
        if self.since.elapsed() >= patience { Err(FtpError::Stalled(patience)) } else { Ok(()) }
    }
}

pub(crate) fn lost() -> FtpError {
    FtpError::Data(ErrorKind::UnexpectedEof.into())
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
