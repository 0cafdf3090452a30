//! The parts that a store and its open files share: the client, and the URLs of paths.

use crate::error::kind_of;
use crate::store::Conduct;
use hikyaku_http::{Attempts, Client, Connection, Fault, First, Place, Source, Stop, Turn, Url};
use hikyaku_net::LeastRoundTrip;
use hikyaku_store::{ErrorKind, StorePath, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Files whose redirects are remembered.
const PLACES_MAX: usize = 1024;

pub(crate) struct Shared {
    pub(crate) client: Arc<Client>,
    pub(crate) conduct: Conduct,
    /// The root.
    pub(crate) dir: Url,
    /// The file of the URL with which the store was opened.
    pub(crate) file: (StorePath, Place),
    /// The time when the store was opened: files without a date have it, so that a copy of one is not from 1970.
    pub(crate) begin: Time,
    places: Mutex<BTreeMap<StorePath, Place>>,
    /// That of the handshakes of TCP.
    round_trip: Mutex<LeastRoundTrip>,
    /// The addresses of the server and of this end, of the first connection.
    addresses: OnceLock<(IpAddr, IpAddr)>,
}

/// An answer of which a part has been read.
pub(crate) struct Reading {
    pub(crate) connection: Connection,
    /// The offset of the next byte, and the end of the answer.
    pub(crate) rest: Range<u64>,
}

impl Shared {
    pub(crate) fn new(
        client: Arc<Client>,
        conduct: Conduct,
        dir: Url,
        file: (StorePath, Place),
    ) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let secs = i64::try_from(since.as_secs()).unwrap_or_default();
        let (begin, places) = (Time { secs, nanos: 0 }, Mutex::default());
        let round_trip = Mutex::new(LeastRoundTrip::new(conduct.memory.clone()));
        let addresses = OnceLock::new();
        Self { client, conduct, dir, file, begin, places, round_trip, addresses }
    }

    pub(crate) const fn stop(&self) -> &Stop {
        &self.conduct.stop
    }

    /// The URL of a path, with the redirects that earlier requests were given.
    pub(crate) fn place(&self, path: &StorePath) -> Place {
        if *path == self.file.0 {
            return self.file.1.clone();
        }
        let mut places = lock(&self.places);
        if let Some(place) = places.get(path) {
            return place.clone();
        }
        if places.len() >= PLACES_MAX {
            places.clear();
        }
        let place = self.file.1.beside(self.dir.below(path.as_bytes()));
        places.insert(path.clone(), place.clone());
        place
    }

    /// Closes an idle connection to the server.
    pub(crate) fn close_idle(&self) {
        self.client.close_idle(&self.file.1.current().origin);
    }

    /// Notes the round-trip time of a connection.
    pub(crate) fn note(&self, connection: &Connection) {
        lock(&self.round_trip).note(connection.rtt(), || connection.addresses());
        if self.addresses.get().is_none()
            && let Some(addresses) = connection.addresses()
        {
            // Another thread may have been first.
            let _ = self.addresses.set(addresses);
        }
    }

    /// The connections that an earlier transfer has held without a queue.
    pub(crate) fn held_before(&self) -> Option<u32> {
        let (peer, local) = *self.addresses.get()?;
        self.conduct.memory.held(peer, local)
    }

    /// Remembers the connections that were held.
    pub(crate) fn note_held(&self, held: Option<u32>) {
        if let Some((peer, local)) = self.addresses.get() {
            self.conduct.memory.note_held(*peer, *local, held);
        }
    }

    /// The shortest round-trip time of its connections.
    pub(crate) fn round_trip(&self) -> Duration {
        lock(&self.round_trip).get()
    }

    /// Keeps the connection of an answer of one byte at most.
    pub(crate) fn keep_after(&self, first: First) {
        let mut connection = first.answer.connection;
        if first.range.is_none() || connection.read(2).is_ok() {
            // A connection whose answer has more bytes is closed.
            self.client.keep(connection);
        }
    }

    /// Requests the first `bytes` bytes of a file.
    pub(crate) fn first(&self, path: &StorePath, bytes: u64) -> Result<(Source, First), ErrorKind> {
        let first = self.first_or_full(path, bytes, Turn::Waits)?;
        first.ok_or(ErrorKind::Unreachable)
    }

    /// Requests the first `bytes` bytes of a file. `None`: the server accepts no further connection.
    pub(crate) fn first_or_full(
        &self,
        path: &StorePath,
        bytes: u64,
        turn: Turn,
    ) -> Result<Option<(Source, First)>, ErrorKind> {
        let source = Source::new(self.place(path));
        let mut attempts = Attempts::new(self.conduct.retry);
        loop {
            match source.first(&self.client, bytes, (self.stop(), turn)) {
                Ok(first) => return Ok(Some((source, first))),
                Err(Fault::Full) => return Ok(None),
                Err(fault) => self.pause(&mut attempts, &fault)?,
            }
        }
    }

    /// Waits for the next attempt after a fault.
    ///
    /// # Errors
    ///
    /// There is no next attempt.
    pub(crate) fn pause(&self, attempts: &mut Attempts, fault: &Fault) -> Result<(), ErrorKind> {
        let Some(wait) = attempts.next(fault, self.conduct.retries) else {
            return Err(kind_of(fault));
        };
        self.stop().sleep(wait);
        self.stop().check().map_err(|fault| kind_of(&fault))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
