//! Connections without a request, of all files of a client: the next file of a server goes over them.

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
    pub(crate) fn take(&self, origin: &Origin, stop: &Stop) -> Option<Connection> {
        let mut idle = self.lock();
        idle.retain(|(since, _)| since.elapsed() < IDLE_TIME_MAX);
        let at = idle.iter().rposition(|(_, connection)| connection.serves(origin))?;
        let (_, mut connection) = idle.remove(at);
        connection.end_with(stop);
        Some(connection)
    }

    /// Keeps a connection whose answer has been read to its end, in place of the oldest if they are too many.
    pub(crate) fn keep(&self, mut connection: Connection) {
        if connection.finish() {
            let mut idle = self.lock();
            if idle.len() >= IDLE_MAX {
                idle.remove(0);
            }
            idle.push((Instant::now(), connection));
        }
    }

    /// Keeps the connection of an answer with an unneeded body, if the body has come with the head.
    pub(crate) fn keep_after(&self, mut connection: Connection) {
        connection.skip_at_hand();
        self.keep(connection);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Connection)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
