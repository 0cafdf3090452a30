//! Connections without a request, of all files of a client: the next request to a server goes over one of them.

use crate::connection::Connection;
use crate::url::Origin;
use crate::wire::Stop;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that stay open without a request, of all servers.
const IDLE_MAX: usize = 64;
/// The time for which one is kept. Servers and gateways forget an idle connection after a minute or more, some without a word.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// Idle connections, the latest one behind, and since when they are idle.
#[derive(Default)]
pub(crate) struct Idle(Mutex<Vec<(Instant, Connection)>>);

impl Idle {
    /// The latest connection to this server. `stop` ends its waits.
    pub(crate) fn take(&self, origin: &Origin, stop: &Stop, now: Instant) -> Option<Connection> {
        let mut connection = self.remove(origin, now)?;
        connection.end_with(stop);
        Some(connection)
    }

    /// Closes the latest connection to this server.
    pub(crate) fn close(&self, origin: &Origin, now: Instant) {
        drop(self.remove(origin, now));
    }

    /// Keeps a connection whose answer has been read to its end, in place of the oldest if they are too many.
    pub(crate) fn keep(&self, mut connection: Connection, now: Instant) {
        if connection.finish() {
            let mut idle = self.lock();
            if idle.len() >= IDLE_MAX {
                idle.remove(0);
            }
            idle.push((now, connection));
        }
    }

    /// Keeps the connection of an answer with an unneeded body, if the body has come with the head.
    pub(crate) fn keep_after(&self, mut connection: Connection, now: Instant) {
        connection.skip_at_hand();
        self.keep(connection, now);
    }

    fn remove(&self, origin: &Origin, now: Instant) -> Option<Connection> {
        let mut idle = self.lock();
        idle.retain(|(since, _)| now.duration_since(*since) < IDLE_TIME_MAX);
        let at = idle.iter().rposition(|(_, connection)| connection.serves(origin))?;
        Some(idle.remove(at).1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Connection)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
