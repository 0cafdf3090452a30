//! Path-MTU discovery by probes (RFC 8899), and the way back out of a black hole.

use core::time::Duration;
use hikyaku_units::Instant;

// spec: mtu-1
/// Works on every path that carries IPv6, and on all but exotic IPv4 ones.
pub(crate) const BASE: u16 = 1200;
/// Sizes worth trying, as UDP payload over IPv4: what fits common tunnels, Ethernet, and jumbo
/// frames.
const CANDIDATES: [u16; 8] = [1252, 1372, 1412, 1452, 1472, 4052, 8952, 8972];
const MAX_FAILURES: u8 = 3;
const RETRY_AFTER: Duration = Duration::from_secs(600);
/// This many packets of the present size lost in a row, with smaller ones arriving, is a hole.
const HOLE_LOSSES: u64 = 64;

/// The search for the largest datagram.
#[derive(Clone, Debug)]
pub(crate) struct MtuSearch {
    current: u16,
    /// The largest size not known to be too large.
    ceiling: u16,
    /// What the route says.
    route: u16,
    probing: Option<u16>,
    failures: u8,
    next_probe: Instant,
    lost_in_a_row: u64,
    last_arrival: Instant,
}

impl MtuSearch {
    /// A search up to `route`; it begins at once.
    pub(crate) fn new(route: u16) -> Self {
        let route = route.max(BASE);
        Self {
            current: BASE,
            ceiling: route,
            route,
            probing: None,
            failures: 0,
            next_probe: Instant::ZERO,
            lost_in_a_row: 0,
            last_arrival: Instant::ZERO,
        }
    }

    /// UDP payload bytes of a full packet.
    pub(crate) const fn current(&self) -> u16 {
        self.current
    }

    /// The size of a probe to send now. The ceiling is tried first: on most paths the route's MTU
    /// is right.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<u16> {
        if self.probing.is_some() || self.next_probe > now {
            return None;
        }
        if self.ceiling <= self.current {
            self.ceiling = self.route;
        }
        if self.ceiling <= self.current {
            self.next_probe = now + RETRY_AFTER;
            return None;
        }
        self.probing = Some(self.ceiling);
        self.probing
    }

    pub(crate) fn on_arrived(&mut self, now: Instant, size: u16) {
        if self.probing == Some(size) {
            self.probing = None;
            self.failures = 0;
            self.current = self.current.max(size);
            self.lost_in_a_row = 0;
            self.next_probe = now + RETRY_AFTER;
        }
    }

    pub(crate) fn on_lost(&mut self, now: Instant, size: u16) {
        if self.probing != Some(size) {
            return;
        }
        self.probing = None;
        self.failures += 1;
        if self.failures >= MAX_FAILURES {
            self.lower_ceiling(now, size);
        }
    }

    /// The socket refused a packet of this size.
    pub(crate) fn on_too_big(&mut self, now: Instant, size: u16) {
        self.probing = None;
        if size <= self.current {
            self.current = BASE;
        }
        self.lower_ceiling(now, size);
    }

    fn lower_ceiling(&mut self, now: Instant, size: u16) {
        self.failures = 0;
        self.ceiling = CANDIDATES.iter().rev().copied().find(|&c| c < size).unwrap_or(BASE);
        let more = self.ceiling > self.current;
        self.next_probe = if more { now } else { now + RETRY_AFTER };
    }

    /// Full packets arrived or were lost. Gives true when the present size has become a hole.
    // spec: mtu-2
    pub(crate) fn on_full_packets(
        &mut self,
        now: Instant,
        arrived: u64,
        lost: u64,
        round_trip: Duration,
    ) -> bool {
        if arrived > 0 {
            self.lost_in_a_row = 0;
            self.last_arrival = now;
            return false;
        }
        self.lost_in_a_row += lost;
        // An overflowing queue loses as many in a row, but never for a whole round trip.
        let silent = now - self.last_arrival > round_trip * 3 / 2;
        let hole = self.current > BASE && self.lost_in_a_row >= HOLE_LOSSES && silent;
        if hole {
            let size = self.current;
            self.current = BASE;
            self.probing = None;
            self.lost_in_a_row = 0;
            self.lower_ceiling(now, size);
        }
        hole
    }

    /// When a probe is to be sent.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.probing.is_none().then_some(self.next_probe)
    }
}

#[cfg(test)]
mod tests;
