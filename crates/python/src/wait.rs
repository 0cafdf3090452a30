//! Work that takes long: the interpreter goes on meanwhile, signals are looked at, and progress is told.

use hikyaku_mover::Meter;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Signals are looked at, and progress is told, this often.
const LOOK: Duration = Duration::from_millis(100);

/// Who is told of progress.
pub(crate) struct Progress<'a, 'py> {
    pub(crate) callback: Option<Bound<'py, PyAny>>,
    pub(crate) meter: &'a Meter,
}

impl Progress<'_, '_> {
    fn tell(&self) -> PyResult<()> {
        let Some(callback) = &self.callback else { return Ok(()) };
        let done = self.meter.written() + self.meter.kept();
        callback.call1((done, self.meter.found().1)).map(drop)
    }
}

/// Does work on another thread until it ends. When a signal's handler raises, or the progress callback does, the work is
/// told to stop, and its end is waited for.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    progress: Option<&Progress<'_, '_>>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (say, done) = channel();
        // Its lock shows that one thread at a time listens.
        let (stop, done) = (&stop, Mutex::new(done));
        let named = thread::Builder::new().name("hikyaku-call".to_owned());
        named.spawn_scoped(scope, move || {
            // Somebody listens until it has come.
            let _ = say.send(work(stop));
        })?;
        let mut failure = None;
        loop {
            let heard = py
                .detach(|| done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK));
            match (heard, failure.take()) {
                (Ok(_), Some(error)) => break Err(error),
                (Ok(done), None) => {
                    progress.map_or(Ok(()), Progress::tell)?;
                    break Ok(done);
                }
                (Err(RecvTimeoutError::Disconnected), _) => {
                    break Err(PyRuntimeError::new_err("a bug in hikyaku: the call panicked"));
                }
                (Err(RecvTimeoutError::Timeout), kept) => failure = kept,
            }
            let looked = py.check_signals().and_then(|()| progress.map_or(Ok(()), Progress::tell));
            if let Err(error) = looked {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
    })
}
