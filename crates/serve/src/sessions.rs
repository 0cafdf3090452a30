//! The sessions that are there.

use hikyaku_reach::Connection;
use hikyaku_reach::daemon::codes::ENDS;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The connections of all sessions.
#[derive(Default)]
pub(crate) struct Sessions {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    all: HashMap<u64, (Connection, String)>,
}

/// The place of one session. Dropping it gives the place back.
pub(crate) struct Place {
    sessions: Arc<Sessions>,
    number: u64,
}

/// After the connections were closed, their threads end within this.
const LAST: Duration = Duration::from_secs(2);

impl Sessions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more, of the client `name`; `None` if there are `most`.
    pub(crate) fn enter(
        self: &Arc<Self>,
        (connection, name): (Connection, String),
        most: usize,
    ) -> Option<Place> {
        let mut state = self.state();
        if state.all.len() >= most {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.all.insert(number, (connection, name));
        Some(Place { sessions: self.clone(), number })
    }

    /// The sessions that are there: their numbers, the names of their clients, and their connections.
    pub(crate) fn list(&self) -> Vec<(u64, String, Connection)> {
        let state = self.state();
        let listed = state.all.iter().map(|(number, (connection, name))| {
            let (name, connection) = (name.clone(), connection.clone());
            (*number, name, connection)
        });
        listed.collect()
    }

    /// Waits until all sessions have ended, at most `time`; then it ends them.
    pub(crate) fn drain(&self, time: Duration) {
        self.wait(Instant::now() + time);
        for (connection, _) in self.state().all.values() {
            connection.close(ENDS, "this server ends: try another, or this one later");
        }
        self.wait(Instant::now() + LAST);
    }

    fn wait(&self, until: Instant) {
        let mut state = self.state();
        while !state.all.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.left.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.state().all.remove(&self.number);
        self.sessions.left.notify_all();
    }
}
