//! The log of a session (`Setup::log_dir`): one file, with samples of this machine and of each connection while files are
//! transferred, what the servers tell of themselves, and begins and ends of files. `hikyaku report` reads it.

use super::{Done, Session, SessionError};
use crate::meter::{Heard, Meter};
use crate::watch::{Direction, Watch};
use hikyaku_console::ExitCode;
use hikyaku_run_log::{End, LogError, Recorder};
use hikyaku_store::ErrorKind;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// The log. It ends with the session.
pub(super) struct Log {
    recorder: Arc<Recorder>,
    files: AtomicU64,
    bytes: AtomicU64,
    has_failed: AtomicBool,
}

/// It is looked this often whether a sample is due.
const LOOK: Duration = Duration::from_millis(100);

impl Log {
    /// Begins the log of a session with these servers.
    pub(super) fn create(dir: &Path, servers: &[String]) -> Result<Self, SessionError> {
        let title = format!("session with {}", servers.join(", "));
        let recorder = Recorder::create(dir, ("session", &title), None).map_err(refused)?;
        Ok(Self {
            recorder: Arc::new(recorder),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        })
    }

    fn add(&self, done: &Result<Done, SessionError>) {
        match done {
            Ok(done) => {
                self.files.fetch_add(done.files, Ordering::Relaxed);
                self.bytes.fetch_add(done.bytes, Ordering::Relaxed);
                self.has_failed.fetch_or(!done.failed.is_empty(), Ordering::Relaxed);
            }
            Err(_) => self.has_failed.store(true, Ordering::Relaxed),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let count = |counter: &AtomicU64| Some(counter.load(Ordering::Relaxed));
        let code = match self.has_failed.load(Ordering::Relaxed) {
            true => ExitCode::Failed,
            false => ExitCode::Success,
        };
        let end = End {
            exit_code: code.number(),
            files: count(&self.files),
            bytes: count(&self.bytes),
            ..End::default()
        };
        // A log that cannot be written to its end is no failure of the session.
        let _ = self.recorder.end(end);
    }
}

fn refused(error: LogError) -> SessionError {
    let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let kind = cause.map_or(ErrorKind::System(0), |cause| io::Error::from(cause.kind()).into());
    let why = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    SessionError::refused(kind, format!("{error}{why}"))
}

/// Ends the thread that samples, also where the work panics: the scope waits for it.
struct Ended<'a> {
    is_over: &'a AtomicBool,
    sampling: &'a Thread,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.sampling.unpark();
    }
}

impl Session {
    /// Does a transfer, of which the log tells if there is one.
    pub(super) fn logged(
        &self,
        direction: Direction,
        meter: &Meter,
        work: impl FnOnce() -> Result<Done, SessionError>,
    ) -> Result<Done, SessionError> {
        let Some(log) = &self.log else { return work() };
        let watch = Watch::new(Some(&log.recorder), &self.names(), Some(self), direction);
        let Some(watch) = watch else { return work() };
        let heard = meter.hear(watch.on_file());
        let is_over = AtomicBool::new(false);
        let done = thread::scope(|scope| {
            let named = thread::Builder::new().name("mover-log".to_owned());
            let sampling = named.spawn_scoped(scope, || {
                while !is_over.load(Ordering::Relaxed) {
                    watch.poll(meter);
                    thread::park_timeout(LOOK);
                }
            });
            sampling.map_err(SessionError::from).and_then(|sampling| {
                let _ended = Ended { is_over: &is_over, sampling: sampling.thread() };
                work()
            })
        });
        watch.last(meter);
        if heard == Heard::ByThis {
            meter.forget();
        }
        log.add(&done);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn the_thread_that_samples_ends_also_where_the_work_panics() {
        let is_over = AtomicBool::new(false);
        let work = || {
            thread::scope(|scope| {
                let sampling = scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        thread::park_timeout(LOOK);
                    }
                });
                let _ended = Ended { is_over: &is_over, sampling: sampling.thread() };
                panic!("the work");
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
    }
}
