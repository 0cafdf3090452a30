//! The current sessions.

use crate::authorized::Permit;
use hikyaku_crypto::Fingerprint;
use hikyaku_reach::Connection;
use hikyaku_reach::daemon::codes::{ENDS, FULL, NOT_AUTHORISED};
use hikyaku_units::DataSize;
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
    all: HashMap<u64, Guest>,
}

/// An admitted client.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) connection: Connection,
    pub(crate) key: Fingerprint,
    /// Its rights at admission.
    pub(crate) permit: Permit,
}

/// The place of one session. Dropping it gives the place back.
pub(crate) struct Place {
    sessions: Arc<Sessions>,
    number: u64,
}

/// Why there is no place for one more session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Full {
    #[error("this server has as many sessions as it may have: try later")]
    Server,
    #[error(
        "the key {key} has as many sessions as it may have, which are {most}: end one, or let the \
         server's list say max-sessions={} for it",
        most + 1
    )]
    Key { key: Fingerprint, most: usize },
}

/// Time within which the threads of closed connections end.
const LAST: Duration = Duration::from_secs(2);
/// Why a session ends that holds most of what is not read.
const MEMORY_EXHAUSTED: &str =
    "the memory of this server was exhausted, and this session held most of what was not read";
/// One key may have the number of places divided by this, unless its line in the list has `max-sessions`.
const SHARE_OF_KEY: usize = 4;
/// Minimum of sessions that one key may have, if a place remains for other keys: a mount, and a command beside it.
const SESSIONS_OF_KEY_MIN: usize = 2;
/// Places for each allowed session: threads of a session whose connection has ended may still wait for the disk.
const PLACES_OF_SESSION: usize = 2;

impl Sessions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a session, if there are fewer than `most` sessions, and fewer of its key than the key may have. A
    /// session counts while its connection is open.
    pub(crate) fn enter(self: &Arc<Self>, guest: Guest, most: usize) -> Result<Place, Full> {
        let mut state = self.state();
        let of_key = guest.permit.max_sessions.unwrap_or_else(|| share_of_key(most));
        if is_full(state.all.values().filter(|other| other.key == guest.key), of_key) {
            return Err(Full::Key { key: guest.key, most: of_key });
        }
        if is_full(state.all.values(), most) {
            return Err(Full::Server);
        }
        let number = state.next;
        state.next += 1;
        state.all.insert(number, guest);
        Ok(Place { sessions: self.clone(), number })
    }

    /// The current sessions, and their numbers.
    pub(crate) fn list(&self) -> Vec<(u64, Guest)> {
        self.state().all.iter().map(|(number, guest)| (*number, guest.clone())).collect()
    }

    /// Closes the sessions of keys that are no longer admitted, or whose rights have changed.
    pub(crate) fn review(&self, permitted: impl Fn(&Fingerprint) -> Option<Permit>) {
        for (_, Guest { connection, key, permit }) in self.list() {
            match permitted(&key) {
                None => connection.close(NOT_AUTHORISED, &not_authorised(&key)),
                Some(now) if now != permit => {
                    let text = "what this key may do here was changed: connect again";
                    connection.close(ENDS, text);
                }
                Some(_) => {}
            }
        }
    }

    /// Closes the sessions with most unread bytes, until the others hold at most `most`.
    pub(crate) fn relieve(&self, most: DataSize, unread: impl Fn(&Guest) -> DataSize) {
        let mut all: Vec<(DataSize, Guest)> =
            self.list().into_iter().map(|(_, guest)| (unread(&guest), guest)).collect();
        all.sort_by_key(|(held, _)| std::cmp::Reverse(*held));
        let mut left: u64 = all.iter().map(|(held, _)| held.bytes()).sum();
        for (held, guest) in all {
            if left <= most.bytes() {
                return;
            }
            left -= held.bytes();
            guest.connection.close(FULL, MEMORY_EXHAUSTED);
        }
    }

    /// Waits at most `time` until all sessions have ended, then closes them.
    pub(crate) fn drain(&self, time: Duration) {
        self.wait(Instant::now() + time);
        for guest in self.state().all.values() {
            guest.connection.close(ENDS, "this server ends: try another, or this one later");
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

/// Maximum number of sessions of one key without `max-sessions` in the list, if the daemon allows `most`.
fn share_of_key(most: usize) -> usize {
    let for_others = most.saturating_sub(1).max(1);
    (most / SHARE_OF_KEY).max(SESSIONS_OF_KEY_MIN).min(for_others)
}

/// Whether there are `most` of these sessions.
fn is_full<'a>(guests: impl Iterator<Item = &'a Guest>, most: usize) -> bool {
    let (mut connected, mut places) = (0, 0);
    for guest in guests {
        places += 1;
        connected += usize::from(guest.connection.close_reason().is_none());
    }
    connected >= most || places >= most.saturating_mul(PLACES_OF_SESSION)
}

/// The reason for the holder of a key that is not in the list.
pub(crate) fn not_authorised(key: &Fingerprint) -> String {
    format!("the key {key} is not authorised")
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sessions.state().all.remove(&self.number);
        self.sessions.left.notify_all();
    }
}

#[cfg(test)]
mod tests;
