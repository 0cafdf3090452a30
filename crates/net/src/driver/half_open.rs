//! Handshakes under way at a listener: how many there are, of whom, and of which first packet.

use hikyaku_proto::ConnectionId;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Half-open handshakes of one host: about 300 new connections a second at a round-trip time of 200 ms. A client that
/// proves its address and then sends no more takes at most a sixteenth of all.
const HALF_OPEN_PER_HOST_MAX: usize = 64;
/// Half-open handshakes of one first packet: an honest client's address may change while it waits for the answer. A
/// client that repeats a captured first packet from 1,000 addresses causes no more signatures than this.
const HALF_OPEN_PER_ID_MAX: usize = 4;

/// Handshakes that have begun and not ended. Trees, since strangers choose the keys.
#[derive(Default)]
pub(super) struct HalfOpen {
    all: usize,
    hosts: BTreeMap<Host, usize>,
    ids: BTreeMap<ConnectionId, usize>,
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
    pub(super) const fn count(&self) -> usize {
        self.all
    }

    /// Whether one more may begin from this address to this id.
    pub(super) fn has_room(&self, from: SocketAddr, id: ConnectionId) -> bool {
        let of_host = self.hosts.get(&Host::of(from)).copied().unwrap_or(0);
        let of_id = self.ids.get(&id).copied().unwrap_or(0);
        of_host < HALF_OPEN_PER_HOST_MAX && of_id < HALF_OPEN_PER_ID_MAX
    }

    /// Counts a new handshake, by its source address and by the connection id in its first packet.
    pub(super) fn begin(&mut self, from: SocketAddr, id: ConnectionId) {
        self.all += 1;
        *self.hosts.entry(Host::of(from)).or_default() += 1;
        *self.ids.entry(id).or_default() += 1;
    }

    /// One is over, whatever came of it.
    pub(super) fn end(&mut self, from: SocketAddr, id: ConnectionId) {
        self.all = self.all.saturating_sub(1);
        less(&mut self.hosts, Host::of(from));
        less(&mut self.ids, id);
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
        let mut half_open = HalfOpen::default();
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let one = at("[2001:db8::1]:1");
        for id in 0..HALF_OPEN_PER_HOST_MAX as u64 {
            assert!(half_open.has_room(one, ConnectionId(id)));
            half_open.begin(one, ConnectionId(id));
        }
        let new = ConnectionId(1000);
        assert!(!half_open.has_room(at("[2001:db8::2]:9"), new), "the same network");
        assert!(half_open.has_room(at("[2001:db8:0:1::1]:1"), new), "another");
        assert!(half_open.has_room(at("192.0.2.1:1"), new));
        (0..HALF_OPEN_PER_HOST_MAX as u64).for_each(|id| half_open.end(one, ConnectionId(id)));
        assert!(half_open.has_room(one, new));
        assert_eq!((half_open.count(), half_open.hosts.len(), half_open.ids.len()), (0, 0, 0));
    }
}
