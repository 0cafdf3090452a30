//! An address translator at the client's end that forgets: the client's UDP flows get other ports now and
//! then, and what comes for the old ones is dropped.

use super::packet::{self, Layout, Transport};
use hikyaku_units::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// The translator. Ports below 1024 and all but UDP pass as they are.
#[derive(Clone, Debug)]
pub(crate) struct Translator {
    every: Duration,
    /// The client's ports from which something was sent.
    open: BTreeSet<u16>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passage {
    Passes,
    /// Nobody is known by the port it is for.
    Dropped,
}

/// The first port that is translated, and how far a port moves each time.
const FIRST: u32 = 1024;
const STEP: u32 = 977;
const PORTS: u32 = 65_536 - FIRST;

impl Translator {
    pub(crate) const fn new(every: Duration) -> Self {
        Self { every, open: BTreeSet::new() }
    }

    /// By how much ports are moved at `now`.
    fn shift(&self, now: Instant) -> u32 {
        let count = now.as_nanos() / (self.every.as_nanos() as u64).max(1);
        (count % u64::from(PORTS)) as u32 * STEP % PORTS
    }

    /// A packet of the client's, with its offload header before it.
    pub(crate) fn outward(&mut self, now: Instant, packet: &mut [u8]) {
        let Some((layout, at)) = Self::port_at(packet, 0) else { return };
        let port = port(packet, at);
        if u32::from(port) < FIRST {
            return;
        }
        self.open.insert(port);
        let moved = (u32::from(port) - FIRST + self.shift(now)) % PORTS + FIRST;
        packet::replace_port(packet, &layout, at, moved as u16);
    }

    /// A packet for the client.
    pub(crate) fn inward(&self, now: Instant, packet: &mut [u8]) -> Passage {
        let Some((layout, at)) = Self::port_at(packet, 2) else { return Passage::Passes };
        let port = u32::from(port(packet, at));
        if port < FIRST {
            return Passage::Passes;
        }
        let own = ((port - FIRST + PORTS - self.shift(now)) % PORTS + FIRST) as u16;
        if !self.open.contains(&own) {
            return Passage::Dropped;
        }
        packet::replace_port(packet, &layout, at, own);
        Passage::Passes
    }

    /// Where a UDP packet has its port, `offset` bytes into the UDP header.
    fn port_at(packet: &[u8], offset: usize) -> Option<(Layout, usize)> {
        let layout = Layout::parse(packet, packet.len())?;
        let at = hikyaku_tun::Header::LEN + layout.transport_at + offset;
        (layout.transport == Transport::Udp).then_some((layout, at))
    }
}

fn port(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}
