//! The handshakes of a port that are under way: so many at a time, and whose turn it is to go where there is no room.
//!
//! Whoever connects has shown no key yet. One network must not keep the others out, and silent connections must not keep out
//! who speaks. So a new one always gets a place: where its network has all that a network may have, the oldest of its network
//! ends; where the port has all, the oldest of the network that has most. A silent one ends before one that has spoken.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many handshakes are under way at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandshakeLimits {
    /// Of all networks together.
    pub all: usize,
    /// Of one network: 2^8 addresses of IPv4, 2^64 of IPv6.
    pub of_network: usize,
}

/// The handshakes of a port.
#[derive(Clone)]
pub struct Handshakes {
    state: Arc<Mutex<State>>,
    limits: HandshakeLimits,
}

#[derive(Default)]
struct State {
    next: u64,
    /// In the order in which they began.
    all: Vec<UnderWay>,
}

struct UnderWay {
    number: u64,
    network: Ipv6Addr,
    stream: TcpStream,
    has_spoken: bool,
}

/// The place of one handshake. Dropping it gives the place back.
pub struct Place {
    state: Arc<Mutex<State>>,
    number: u64,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handshakes {
    /// A port without handshakes.
    pub fn new(limits: HandshakeLimits) -> Self {
        Self { state: Arc::default(), limits }
    }

    /// The place of a new one. Another one may end for it.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn enter(&self, stream: &TcpStream, from: IpAddr) -> io::Result<Place> {
        let (network, stream) = (network_of(from), stream.try_clone()?);
        let mut state = lock(&self.state);
        let own = state.all.iter().filter(|other| other.network == network).count();
        let full = match (own >= self.limits.of_network, state.all.len() >= self.limits.all) {
            (true, _) => Some(network),
            (false, true) => state.largest(),
            (false, false) => None,
        };
        if let Some(network) = full {
            state.end_one_of(network);
        }
        let number = state.next;
        state.next += 1;
        state.all.push(UnderWay { number, network, stream, has_spoken: false });
        Ok(Place { state: self.state.clone(), number })
    }
}

impl State {
    /// The network that has most places.
    fn largest(&self) -> Option<Ipv6Addr> {
        let mut counts = HashMap::<Ipv6Addr, usize>::new();
        self.all.iter().for_each(|one| *counts.entry(one.network).or_default() += 1);
        counts
            .into_iter()
            .max_by_key(|&(network, count)| (count, network))
            .map(|(network, _)| network)
    }

    /// Ends the oldest of a network, a silent one before one that has spoken.
    fn end_one_of(&mut self, network: Ipv6Addr) {
        let of_network = (0..self.all.len()).filter(|&at| self.all[at].network == network);
        // The first of equal ones is the oldest.
        if let Some(at) = of_network.min_by_key(|&at| self.all[at].has_spoken) {
            let _ = self.all.remove(at).stream.shutdown(Shutdown::Both);
        }
    }
}

impl Place {
    /// The other end has begun to speak.
    pub fn has_spoken(&self) {
        let mut state = lock(&self.state);
        state
            .all
            .iter_mut()
            .filter(|one| one.number == self.number)
            .for_each(|one| one.has_spoken = true);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.state).all.retain(|one| one.number != self.number);
    }
}

/// The network of an address: its first 24 bits, or 64 of IPv6.
fn network_of(address: IpAddr) -> Ipv6Addr {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            std::net::Ipv4Addr::new(a, b, c, 0).to_ipv6_mapped()
        }
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64),
    }
}

#[cfg(test)]
mod tests;
