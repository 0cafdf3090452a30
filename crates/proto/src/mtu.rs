//! Path-MTU discovery by probe packets (RFC 8899), and detection of MTU black holes.

use core::time::Duration;
use hikyaku_units::Instant;

// spec: mtu-1
/// UDP payload in bytes that every path is required to carry. All IPv6 paths and almost all IPv4
/// paths do.
pub(crate) const BASE_DATAGRAM_BYTES: u16 = 1200;
/// Probe sizes in bytes of UDP payload, from the sizes of common tunnels, Ethernet, and jumbo
/// frames.
const PROBE_SIZES: [u16; 8] = [1252, 1372, 1412, 1452, 1472, 4052, 8952, 8972];
const PROBE_FAILURES_MAX: u8 = 3;
const SEARCH_INTERVAL: Duration = Duration::from_secs(600);
/// Consecutive lost packets of the present size, while smaller ones arrive, that indicate a black
/// hole.
const BLACK_HOLE_LOSSES: u64 = 64;

/// The search for the largest datagram size that the path carries.
#[derive(Clone, Debug)]
pub(crate) struct MtuSearch {
    current: u16,
    /// The largest size that is not known to be too large.
    ceiling: u16,
    /// The MTU of the local route, as UDP payload.
    route: u16,
    probing: Option<u16>,
    failures: u8,
    next_probe: Instant,
    lost_in_a_row: u64,
    last_arrival: Instant,
}

impl MtuSearch {
    /// A search up to the size `route`, which begins at once.
    pub(crate) fn new(route: u16) -> Self {
        let route = route.max(BASE_DATAGRAM_BYTES);
        Self {
            current: BASE_DATAGRAM_BYTES,
            ceiling: route,
            route,
            probing: None,
            failures: 0,
            next_probe: Instant::ZERO,
            lost_in_a_row: 0,
            last_arrival: Instant::ZERO,
        }
    }

    /// UDP payload in bytes of a full-size packet.
    pub(crate) const fn current(&self) -> u16 {
        self.current
    }

    /// The size of a probe to send now. The upper bound is probed first, because on most paths the
    /// MTU of the local route is right.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<u16> {
        if self.probing.is_some() || self.next_probe > now {
            return None;
        }
        if self.ceiling <= self.current {
            self.ceiling = self.route;
        }
        if self.ceiling <= self.current {
            self.next_probe = now + SEARCH_INTERVAL;
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
            self.next_probe = now + SEARCH_INTERVAL;
        }
    }

    pub(crate) fn on_lost(&mut self, now: Instant, size: u16) {
        if self.probing != Some(size) {
            return;
        }
        self.probing = None;
        self.failures += 1;
        if self.failures >= PROBE_FAILURES_MAX {
            self.lower_ceiling(now, size);
        }
    }

    /// Records that the socket refused a packet of this size (`EMSGSIZE`).
    pub(crate) fn on_too_big(&mut self, now: Instant, size: u16) {
        self.probing = None;
        if size <= self.current {
            self.current = BASE_DATAGRAM_BYTES;
        }
        self.lower_ceiling(now, size);
    }

    fn lower_ceiling(&mut self, now: Instant, size: u16) {
        self.failures = 0;
        self.ceiling =
            PROBE_SIZES.iter().rev().copied().find(|&c| c < size).unwrap_or(BASE_DATAGRAM_BYTES);
        let more = self.ceiling > self.current;
        self.next_probe = if more { now } else { now + SEARCH_INTERVAL };
    }

    /// Records full-size packets that arrived or were lost. Returns true if the present size has
    /// become a black hole.
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
        // An overflowing queue also loses this many consecutive packets, but not for a whole round
        // trip.
        let silent = now - self.last_arrival > round_trip * 3 / 2;
        let hole =
            self.current > BASE_DATAGRAM_BYTES && self.lost_in_a_row >= BLACK_HOLE_LOSSES && silent;
        if hole {
            let size = self.current;
            self.current = BASE_DATAGRAM_BYTES;
            self.probing = None;
            self.lost_in_a_row = 0;
            self.lower_ceiling(now, size);
        }
        hole
    }

    /// When the next probe is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.probing.is_none().then_some(self.next_probe)
    }
}

#[cfg(test)]
mod tests;
