//! What ends a copy early: the first cause is the one that is told.

use hikyaku_net::{Connection, code};
use std::sync::{Mutex, PoisonError};

/// The cause, once there is one. It closes the connections, which ends every wait at all ends.
pub(crate) struct Fault {
    connections: Vec<Connection>,
    cause: Mutex<Option<anyhow::Error>>,
}

/// Work stops because of a fault that somebody else has reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stopped;

/// The other end is told the reason in so many bytes.
const MOST_REASON: usize = 500;

impl Fault {
    pub(crate) const fn new(connections: Vec<Connection>) -> Self {
        Self { connections, cause: Mutex::new(None) }
    }

    /// Ends the copy.
    pub(crate) fn report(&self, cause: impl Into<anyhow::Error>) -> Stopped {
        let cause = cause.into();
        let mut kept = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            let mut reason = format!("{cause:#}");
            let end =
                (0..=MOST_REASON.min(reason.len())).rev().find(|at| reason.is_char_boundary(*at));
            reason.truncate(end.unwrap_or(0));
            for connection in &self.connections {
                connection.close(code::APPLICATION, &reason);
            }
            *kept = Some(cause);
        }
        Stopped
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The first cause.
    pub(crate) fn take(&self) -> Option<anyhow::Error> {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
