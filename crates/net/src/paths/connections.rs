//! Numbers of TCP connections: those that were held between two networks without a queue, and those that servers have granted.

use super::{Document, KEEP, MAX_LINES, Memory, PathCache, PathKey, seconds};
use hikyaku_tcp::GrantMemory;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::IpAddr;
use std::time::SystemTime;

/// Octets of a server's name and port, at most.
const SERVER_BYTES_MAX: usize = 300;
/// A larger number in the file is a mistake.
const CONNECTIONS_MAX: u32 = 1024;

/// Connections that a transfer has held for some time while no queue stood.
#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Held {
    peer: String,
    local: IpAddr,
    connections: u32,
    /// Seconds since 1970.
    seen: u64,
}

/// Connections that a server has granted while it refused others.
#[derive(Serialize, Deserialize, Clone)]
pub(super) struct Granted {
    server: String,
    connections: u32,
    /// Seconds since 1970.
    seen: u64,
}

impl PathCache {
    fn held(&self, key: &PathKey, today: SystemTime) -> Option<u32> {
        let now = seconds(today);
        let document = self.document();
        let found = document.held.iter().find(|one| one.is(key) && is_fresh(one.seen, now))?;
        Some(found.connections).filter(|n| (1..=CONNECTIONS_MAX).contains(n))
    }

    fn note_held(&self, key: &PathKey, held: Option<u32>, today: SystemTime) -> io::Result<()> {
        self.change(|document| {
            let (now, all) = (seconds(today), &mut document.held);
            all.retain(|one| !one.is(key) && is_fresh(one.seen, now));
            all.truncate(MAX_LINES - 1);
            let (peer, local) = (key.peer.clone(), key.local);
            all.splice(0..0, held.map(|connections| Held { peer, local, connections, seen: now }));
        })
    }

    fn granted(&self, server: &str, today: SystemTime) -> Option<u32> {
        let now = seconds(today);
        let document = self.document();
        let mut all = document.granted.iter();
        let found = all.find(|one| one.server == server && is_fresh(one.seen, now))?;
        Some(found.connections).filter(|n| (1..=CONNECTIONS_MAX).contains(n))
    }

    fn note_granted(&self, server: &str, n: Option<u32>, today: SystemTime) -> io::Result<()> {
        self.change(|document| {
            let (now, all) = (seconds(today), &mut document.granted);
            all.retain(|one| one.server != server && is_fresh(one.seen, now));
            all.truncate(MAX_LINES - 1);
            let server = server.to_owned();
            all.splice(0..0, n.map(|connections| Granted { server, connections, seen: now }));
        })
    }

    fn change(&self, change: impl FnOnce(&mut Document)) -> io::Result<()> {
        let mut document = self.document();
        change(&mut document);
        self.write(&document)
    }
}

impl Memory {
    /// The number of connections between these networks that a transfer of the last day has held while no queue stood. Nothing is
    /// remembered of this host.
    pub fn held(&self, peer: IpAddr, local: IpAddr) -> Option<u32> {
        self.cache_of(peer)?.held(&PathKey::new(peer, local), SystemTime::now())
    }

    /// Notes it for a day; `None`: a queue stood. A file that cannot be written is not written.
    pub fn note_held(&self, peer: IpAddr, local: IpAddr, held: Option<u32>) {
        if let Some(cache) = self.cache_of(peer) {
            let _ = cache.note_held(&PathKey::new(peer, local), held, SystemTime::now());
        }
    }

    fn cache_of(&self, peer: IpAddr) -> Option<&PathCache> {
        match self {
            Self::File(cache) if !peer.to_canonical().is_loopback() => Some(cache),
            _ => None,
        }
    }
}

/// A number holds for a day. Nothing is remembered of this host.
impl GrantMemory for Memory {
    fn recall(&self, server: &str) -> Option<u32> {
        match self {
            Self::File(cache) if is_other_host(server) => cache.granted(server, SystemTime::now()),
            _ => None,
        }
    }

    fn note(&self, server: &str, granted: Option<u32>) {
        if let Self::File(cache) = self
            && is_other_host(server)
        {
            let _ = cache.note_granted(server, granted, SystemTime::now());
        }
    }
}

/// Whether `HOST:PORT` is another host than this one, and short enough.
fn is_other_host(server: &str) -> bool {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback =
        host.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback());
    server.len() <= SERVER_BYTES_MAX && !is_loopback && !host.eq_ignore_ascii_case("localhost")
}

impl Held {
    fn is(&self, key: &PathKey) -> bool {
        self.peer == key.peer && self.local == key.local
    }
}

const fn is_fresh(seen: u64, now: u64) -> bool {
    seen <= now && now - seen < KEEP.as_secs()
}

#[cfg(test)]
mod tests;
