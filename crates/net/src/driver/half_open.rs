//! Handshakes under way at a listener: how many there are, of whom, and of which first packet.

use hikyaku_proto::ConnectionId;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Half-open handshakes of one host: about 300 new connections a second at a round-trip time of 200 ms. A client that
/// proves its address and then sends no more takes at most a sixteenth of all.
const HALF_OPEN_PER_HOST_MAX: usize = 64;
/// Half-open handshakes of one first packet: an honest client's address may change while it waits for the answer. A
/// client that repeats a captured first packet from 1,000 addresses causes no more signatures than this.
const HALF_OPEN_PER_ID_MAX: usize = 4;

/// Handshakes that have begun and not ended, of all drivers of a port.
#[derive(Default)]
pub(super) struct HalfOpen {
    all: AtomicUsize,
    by: Mutex<By>,
}

/// Their numbers. Trees, since strangers choose the keys.
#[derive(Default)]
struct By {
    hosts: BTreeMap<Host, usize>,
    ids: BTreeMap<ConnectionId, usize>,
}

/// Whether a handshake may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begun {
    Yes,
    No,
}

/// The unit of the limit: an IPv4 address, or an IPv6 network, of which one owner usually has all addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Host {
    V4(Ipv4Addr),
    /// The network of an IPv6 address.
    V6([u8; 8]),
}

impl HalfOpen {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// Counts a new handshake, by its source address and by the connection id in its first packet, if one more may begin.
    #[must_use]
    pub(super) fn begin(&self, from: SocketAddr, id: ConnectionId) -> Begun {
        let (host, mut by) = (Host::of(from), self.by());
        let of_host = by.hosts.get(&host).copied().unwrap_or(0);
        let of_id = by.ids.get(&id).copied().unwrap_or(0);
        if of_host >= HALF_OPEN_PER_HOST_MAX || of_id >= HALF_OPEN_PER_ID_MAX {
            return Begun::No;
        }
        self.all.fetch_add(1, Ordering::Relaxed);
        by.hosts.insert(host, of_host + 1);
        by.ids.insert(id, of_id + 1);
        Begun::Yes
    }

    /// One that has begun is over, whatever came of it.
    pub(super) fn end(&self, from: SocketAddr, id: ConnectionId) {
        self.all.fetch_sub(1, Ordering::Relaxed);
        let mut by = self.by();
        less(&mut by.hosts, Host::of(from));
        less(&mut by.ids, id);
    }

    fn by(&self) -> MutexGuard<'_, By> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    fn of(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Self::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

fn less<K: Ord + Copy>(counts: &mut BTreeMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_makes_room_and_leaves_nothing_behind() {
        let half_open = HalfOpen::default();
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let one = at("[2001:db8::1]:1");
        for id in 0..HALF_OPEN_PER_HOST_MAX as u64 {
            assert_eq!(half_open.begin(one, ConnectionId(id)), Begun::Yes);
        }
        let new = ConnectionId(1000);
        assert_eq!(half_open.begin(at("[2001:db8::2]:9"), new), Begun::No, "the same network");
        for other in ["[2001:db8:0:1::1]:1", "192.0.2.1:1"].map(at) {
            assert_eq!(half_open.begin(other, new), Begun::Yes, "another");
            half_open.end(other, new);
        }
        (0..HALF_OPEN_PER_HOST_MAX as u64).for_each(|id| half_open.end(one, ConnectionId(id)));
        assert_eq!(half_open.begin(one, new), Begun::Yes);
        half_open.end(one, new);
        let by = half_open.by();
        assert_eq!((half_open.count(), by.hosts.len(), by.ids.len()), (0, 0, 0));
    }
}
