//! The session.

use crate::convert::{Done, Entry, HostStatus};
use crate::failure::{of_files, of_session, of_text};
use crate::setup::Words;
use crate::wait::{Progress, wait};
use hikyaku_mover::{
    Choice, Destination, Download, Existing, Meter, Modes, SessionError, Streams, Together, Upload,
    remote_path,
};
use hikyaku_store::StorePath;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Servers that are connected.
#[pyclass(frozen)]
pub(crate) struct Session {
    /// `None` after it was stopped.
    session: Mutex<Option<Arc<hikyaku_mover::Session>>>,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (hosts, *, log_dir, keys, rate, server_rate, window, streams, pause, stagger, tcp))]
    #[allow(
        clippy::too_many_arguments,
        reason = "they are the keyword arguments of the class in Python"
    )]
    fn new(
        py: Python<'_>,
        hosts: Vec<String>,
        log_dir: Option<PathBuf>,
        keys: Vec<String>,
        rate: Option<String>,
        server_rate: Option<String>,
        window: Option<u64>,
        streams: usize,
        pause: f64,
        stagger: f64,
        tcp: bool,
    ) -> PyResult<Self> {
        let words =
            Words { hosts, log_dir, keys, rate, server_rate, window, streams, pause, stagger, tcp };
        let setup = words.setup(py)?;
        let started = wait(py, None, |_| setup.start())?;
        let session = started.map_err(|error| of_session(py, &error))?;
        Ok(Self { session: Mutex::new(Some(Arc::new(session))) })
    }

    fn download(
        &self,
        py: Python<'_>,
        files: Vec<String>,
        to: PathBuf,
        progress: Option<Bound<'_, PyAny>>,
        keep_modes: bool,
    ) -> PyResult<Done> {
        let session = self.session(py)?;
        let sources = files.iter().map(|file| path(py, file)).collect::<PyResult<Vec<_>>>()?;
        let meter = Meter::new(session.met().len());
        let told = Progress { callback: progress, meter: &meter };
        let done = wait(py, Some(&told), |stop| {
            session.download(&Download {
                sources: &sources,
                target: Destination::Here(&to),
                together: Together { others: 0, claims: &Mutex::default() },
                choice: &Choice::TREES,
                modes: modes(keep_modes),
                streams: &Streams::Refused,
                meter: &meter,
                stop,
            })
        })?;
        ended(py, done)
    }

    #[allow(clippy::too_many_arguments, reason = "they are the arguments of the method in Python")]
    fn upload(
        &self,
        py: Python<'_>,
        files: Vec<PathBuf>,
        to: String,
        existing: &str,
        progress: Option<Bound<'_, PyAny>>,
        keep_modes: bool,
    ) -> PyResult<Done> {
        let session = self.session(py)?;
        let target = path(py, &to)?;
        let existing = match existing {
            "replace" => Existing::Replaced,
            "keep" => Existing::Kept,
            "newer" => Existing::KeptIfNewer,
            other => {
                let text = format!("existing='{other}': expected 'replace', 'keep' or 'newer'");
                return Err(PyValueError::new_err(text));
            }
        };
        let meter = Meter::new(session.met().len());
        let told = Progress { callback: progress, meter: &meter };
        let done = wait(py, Some(&told), |stop| {
            session.upload(&Upload {
                sources: &files,
                target: &target,
                together: Together { others: 0, claims: &Mutex::default() },
                choice: &Choice { existing, ..Choice::TREES },
                modes: modes(keep_modes),
                meter: &meter,
                stop,
            })
        })?;
        ended(py, done)
    }

    fn status(&self, py: Python<'_>) -> PyResult<Vec<HostStatus>> {
        let session = self.session(py)?;
        let all = wait(py, None, |_| session.status())?;
        Ok(all.into_iter().map(HostStatus::new).collect())
    }

    fn info(&self, py: Python<'_>, file: &str) -> PyResult<Entry> {
        let (session, path) = (self.session(py)?, path(py, file)?);
        let held = wait(py, None, |_| session.look(&path))?;
        let held = held.map_err(|error| of_session(py, &error))?;
        let name = file.trim_matches('/').rsplit('/').next().unwrap_or_default();
        Ok(Entry::new(&session, name.as_bytes(), &held))
    }

    fn ls(&self, py: Python<'_>, dir: &str) -> PyResult<Vec<Entry>> {
        let (session, path) = (self.session(py)?, path(py, dir)?);
        let names = wait(py, None, |_| session.list(&path))?;
        let names = names.map_err(|error| of_session(py, &error))?;
        Ok(names.iter().map(|(name, held)| Entry::new(&session, name, held)).collect())
    }

    fn read(&self, py: Python<'_>, file: &str, ranges: Vec<(u64, u64)>) -> PyResult<Vec<Vec<u8>>> {
        let (session, path) = (self.session(py)?, path(py, file)?);
        let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(from, to)| from..to).collect();
        let read = wait(py, None, |_| {
            let held = session.look(&path)?;
            session.read(&path, &held, &ranges)
        })?;
        read.map_err(|error| of_session(py, &error))
    }

    fn hosts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.session(py)?.met().into_iter().map(|met| met.address.to_string()).collect())
    }

    fn log_dir(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        Ok(self.session(py)?.log_dir().map(PathBuf::from))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A call of another thread ends the session when it has ended itself.
        match session.map(Arc::try_unwrap) {
            Some(Ok(session)) => wait(py, None, |_| session.stop()),
            Some(Err(_)) | None => Ok(()),
        }
    }
}

impl Session {
    fn session(&self, py: Python<'_>) -> PyResult<Arc<hikyaku_mover::Session>> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        session.ok_or_else(|| of_text(py, "the session has been stopped"))
    }
}

fn path(py: Python<'_>, text: &str) -> PyResult<StorePath> {
    remote_path(text.as_bytes()).map_err(|error| of_session(py, &error))
}

const fn modes(are_kept: bool) -> Modes {
    if are_kept { Modes::Kept } else { Modes::Usual }
}

/// What a transfer returns: files that failed are an exception.
fn ended(py: Python<'_>, done: Result<hikyaku_mover::Done, SessionError>) -> PyResult<Done> {
    let done = done.map_err(|error| of_session(py, &error))?;
    if !done.failed.is_empty() {
        return Err(of_files(py, &done.failed));
    }
    Done::new(py, &done)
}
