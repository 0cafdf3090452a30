//! One question to several servers, and one answer.

use hikyaku_remote::RemoteError;
use hikyaku_store::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

/// Receives the answers of the servers that have the requested path, and the error of one that has not answered.
type Done<T> = Box<dyn FnOnce(Vec<(usize, T)>, Option<RemoteError>) + Send>;

/// Collects the answers.
pub(super) struct Gather<T> {
    state: Arc<Mutex<State<T>>>,
}

struct State<T> {
    /// Answers that are to come.
    missing: usize,
    /// The asking itself, which may not end before the first answer.
    is_asking: bool,
    found: Vec<(usize, T)>,
    error: Option<RemoteError>,
    done: Option<Done<T>>,
}

/// Whether this error means that a server does not have the requested path.
const fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotDir | ErrorKind::Link)
}

impl<T> Clone for Gather<T> {
    fn clone(&self) -> Self {
        Self { state: self.state.clone() }
    }
}

impl<T> Gather<T> {
    /// Waits for this number of answers. If a server is lost for a short time, absence on the others is no result.
    pub(super) fn new(
        servers: usize,
        is_one_away: bool,
        done: impl FnOnce(Vec<(usize, T)>, Option<RemoteError>) + Send + 'static,
    ) -> Self {
        let error = is_one_away.then_some(RemoteError::Closed(None));
        let done: Option<Done<T>> = Some(Box::new(done));
        let (missing, found) = (servers, Vec::new());
        let state = State { missing, is_asking: true, found, error, done };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// All have been asked.
    pub(super) fn start(&self) {
        self.change(|state| state.is_asking = false);
    }

    /// An answer has come.
    pub(super) fn take(&self, server: usize, answer: Result<T, RemoteError>) {
        self.change(|state| {
            state.missing = state.missing.saturating_sub(1);
            match answer {
                Ok(found) => state.found.push((server, found)),
                // Where one server has a directory, another one may have a file, or a link.
                Err(RemoteError::Refused { kind, .. }) if is_absence(kind) => {}
                Err(error) => drop(state.error.get_or_insert(error)),
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State<T>)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if state.missing > 0 || state.is_asking {
            return;
        }
        let Some(done) = state.done.take() else { return };
        let mut found = std::mem::take(&mut state.found);
        let error = state.error.take();
        drop(state);
        found.sort_by_key(|(server, _)| *server);
        done(found, error);
    }
}
