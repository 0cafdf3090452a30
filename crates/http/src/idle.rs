//! Connections without a request, of all files of a client: the next request to a server goes over one of them. And those with
//! answers that are read later, which are closed if the server grants no further connection.

use crate::connection::Connection;
use crate::url::Origin;
use crate::wire::Stop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
        lock(&self.0)
    }
}

/// A connection whose answer is read later. It may be closed until then.
pub struct Parked(Arc<Slot>);

type Slot = Mutex<Option<Connection>>;

/// The connections of answers that are read later.
#[derive(Default)]
pub(crate) struct Parking(Mutex<Vec<Weak<Slot>>>);

impl Parked {
    /// The connection, if it has not been closed. `stop` ends its waits.
    pub fn take(self, stop: &Stop) -> Option<Connection> {
        let mut connection = lock(&self.0).take()?;
        connection.end_with(stop);
        Some(connection)
    }
}

impl Parking {
    pub(crate) fn park(&self, connection: Connection) -> Parked {
        let slot = Arc::new(Mutex::new(Some(connection)));
        let mut all = lock(&self.0);
        all.retain(|one| one.upgrade().is_some_and(|slot| lock(&slot).is_some()));
        all.push(Arc::downgrade(&slot));
        Parked(slot)
    }

    /// Closes the connection to this server whose answer has waited for the longest time. Returns whether there was one.
    pub(crate) fn close_one(&self, origin: &Origin) -> bool {
        let of_server = |slot: &Arc<Slot>| {
            let mut slot = lock(slot);
            slot.take_if(|connection| connection.is_to(origin)).is_some()
        };
        lock(&self.0).iter().filter_map(Weak::upgrade).any(|slot| of_server(&slot))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
