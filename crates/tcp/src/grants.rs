//! The connections of this process to each server: how many are open, and how many the server grants.
//!
//! A [`Place`] is taken before a connection is opened, and kept as long as it is open. So the files of a command, and the mirrors
//! of a file on one host, share the number that the server has left them.

use hikyaku_tuner::Cap;
use hikyaku_units::Instant as Moment;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A server may not have noticed the end of a connection that was closed within this time.
const LAPSE: Duration = Duration::from_secs(1);
/// A server that has not answered over a connection for this time accepts no further one, unless its answers take as long.
const SILENCE_MIN: Duration = Duration::from_secs(2);
/// Multiple of the longest time that an answer has taken.
const SILENCE_FACTOR: u32 = 4;
/// The time between two checks whether a caller still waits.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Servers without connections whose refusals are remembered.
const SERVERS_MAX: usize = 256;

/// Remembers the numbers that servers grant, from one command to the next.
pub trait GrantMemory: Send + Sync {
    /// The number that a server, `HOST:PORT`, is known to grant.
    fn recall(&self, server: &str) -> Option<u32>;
    /// A server grants this number only; `None`: it grants any.
    fn note(&self, server: &str, granted: Option<u32>);
}

/// The numbers of all servers. Clones share them.
#[derive(Clone)]
pub struct Grants(Arc<Inner>);

struct Inner {
    began: Instant,
    memory: Option<Arc<dyn GrantMemory>>,
    servers: Mutex<BTreeMap<String, Server>>,
    changed: Condvar,
}

struct Server {
    cap: Cap,
    /// Connections without an answer, and those with one.
    opening: u32,
    open: u32,
    /// When the last connection was closed.
    left: Option<Instant>,
    /// The longest time from the place of a connection to its first answer.
    latency: Duration,
    /// The number in the memory.
    noted: Option<u32>,
}

/// Why there is no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPlace {
    /// There may be one soon: others are being opened, whose answers show whether the server grants more, or the server has not
    /// noticed the end of one.
    UnderWay,
    /// The server grants no more.
    Full,
}

/// Other connections to a server that has refused one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// Some are open: the server has enough of them.
    Open,
    /// There are none.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Opening,
    Open,
    Refused,
}

/// The place of a connection, until it is dropped.
pub struct Place {
    grants: Grants,
    server: String,
    begun: Instant,
    stage: Stage,
}

impl Default for Grants {
    fn default() -> Self {
        Self::with(None)
    }
}

impl Grants {
    /// With the numbers of earlier commands.
    pub fn remembering(memory: Arc<dyn GrantMemory>) -> Self {
        Self::with(Some(memory))
    }

    fn with(memory: Option<Arc<dyn GrantMemory>>) -> Self {
        let (began, servers, changed) = (Instant::now(), Mutex::default(), Condvar::new());
        Self(Arc::new(Inner { began, memory, servers, changed }))
    }

    /// A place for another connection to a server, `HOST:PORT`.
    ///
    /// # Errors
    ///
    /// There is none for now.
    pub fn place(&self, server: &str) -> Result<Place, NoPlace> {
        let now = self.now();
        let mut servers = self.servers();
        if servers.len() >= SERVERS_MAX {
            servers.retain(|_, server| server.held() > 0);
        }
        let new = || self.recalled(server, now);
        let found = servers.entry(server.to_owned()).or_insert_with(new);
        let (most, held) = (found.cap.look(now, found.open), found.held());
        let is_lapse = found.left.is_some_and(|left| left.elapsed() < LAPSE);
        let is_capped = found.cap.refused_beyond().is_some();
        if held >= found.cap.granted() {
            return Err(NoPlace::Full);
        }
        if held >= most || is_capped && is_lapse {
            return Err(NoPlace::UnderWay);
        }
        found.opening += 1;
        let (grants, server) = (self.clone(), server.to_owned());
        Ok(Place { grants, server, begun: Instant::now(), stage: Stage::Opening })
    }

    /// Waits for a change, for a short time at most.
    pub fn wait(&self) {
        drop(self.0.changed.wait_timeout(self.servers(), LOOK_EVERY));
    }

    /// The number that a server is known to grant: it has refused more.
    pub fn known(&self, server: &str) -> Option<u32> {
        self.servers().get(server)?.cap.refused_beyond()
    }

    /// A server of which the memory knows the number.
    fn recalled(&self, server: &str, now: Moment) -> Server {
        let noted = self.0.memory.as_ref().and_then(|memory| memory.recall(server));
        let mut cap = Cap::new(u32::MAX).in_waves().sparing();
        noted.into_iter().for_each(|n| cap.grant(n, now));
        Server { cap, opening: 0, open: 0, left: None, latency: Duration::ZERO, noted }
    }

    /// Brings the memory up to date.
    fn note(&self, server: &str) {
        let Some(memory) = &self.0.memory else { return };
        let mut servers = self.servers();
        let Some(found) = servers.get_mut(server) else { return };
        let known = found.cap.refused_beyond();
        if std::mem::replace(&mut found.noted, known) != known {
            drop(servers);
            memory.note(server, known);
        }
    }

    fn now(&self) -> Moment {
        Moment::ZERO + self.0.began.elapsed()
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<String, Server>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    const fn held(&self) -> u32 {
        self.opening + self.open
    }
}

impl Place {
    /// Whether no answer has come over the connection.
    pub fn is_opening(&self) -> bool {
        self.stage == Stage::Opening
    }

    /// The server has answered over the connection: it grants it.
    pub fn granted(&mut self) {
        if self.stage != Stage::Opening {
            return;
        }
        self.stage = Stage::Open;
        let now = self.grants.now();
        if let Some(server) = self.grants.servers().get_mut(&self.server) {
            server.opening -= 1;
            server.open += 1;
            server.latency = server.latency.max(self.begun.elapsed());
            server.cap.look(now, server.open);
        }
        self.grants.note(&self.server);
        self.grants.0.changed.notify_all();
    }

    /// The server has refused the connection. Waits for the answers to others that are being opened, while `goes_on`: without them
    /// it is not known whether the server grants any.
    pub fn refused(&mut self, goes_on: &dyn Fn() -> bool) -> Others {
        let others = self.others(goes_on);
        if others == Others::Open {
            self.grants.note(&self.server);
        }
        others
    }

    fn others(&mut self, goes_on: &dyn Fn() -> bool) -> Others {
        let was_open = std::mem::replace(&mut self.stage, Stage::Refused);
        let (now, mut servers) = (self.grants.now(), self.grants.servers());
        if let Some(server) = servers.get_mut(&self.server) {
            match was_open {
                Stage::Opening => server.opening -= 1,
                Stage::Open => server.open -= 1,
                Stage::Refused => return Others::None,
            }
            server.cap.refuse(server.held(), now);
        }
        self.grants.0.changed.notify_all();
        loop {
            let Some(server) = servers.get_mut(&self.server) else { return Others::None };
            match (server.open, server.opening) {
                (0, 0) => {
                    server.cap.forget();
                    return Others::None;
                }
                (0, _) if goes_on() => {}
                _ => return Others::Open,
            }
            let waited = self.grants.0.changed.wait_timeout(servers, LOOK_EVERY);
            servers = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let now = self.grants.now();
        if let Some(server) = self.grants.servers().get_mut(&self.server) {
            match self.stage {
                Stage::Opening => {
                    server.opening -= 1;
                    let silence = SILENCE_MIN.max(server.latency * SILENCE_FACTOR);
                    if server.open > 0 && self.begun.elapsed() >= silence {
                        server.cap.refuse(server.held(), now);
                    }
                }
                Stage::Open => {
                    server.open -= 1;
                    server.left = Some(Instant::now());
                }
                Stage::Refused => return,
            }
        }
        self.grants.0.changed.notify_all();
    }
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants").finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("server", &self.server).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
