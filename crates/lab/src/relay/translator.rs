//! A NAT at the client's end that rebinds: from time to time the client's UDP flows get new port
//! numbers, and packets to the old ones are dropped.

use super::packet::{self, Layout, Transport};
use hikyaku_units::Instant;
use std::collections::BTreeSet;
use std::time::Duration;

/// The NAT. It translates UDP ports from 1024 on; all other packets pass unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Translator {
    every: Duration,
    /// The client's ports from which packets have been sent.
    open: BTreeSet<u16>,
}

/// What to do with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passage {
    Passes,
    /// Drop it: its destination port belongs to no flow.
    Dropped,
}

/// The first translated port, and the distance by which ports move at each rebinding.
const FIRST_PORT: u32 = 1024;
const PORT_SHIFT: u32 = 977;
const PORT_COUNT: u32 = 65_536 - FIRST_PORT;

impl Translator {
    pub(crate) const fn new(every: Duration) -> Self {
        Self { every, open: BTreeSet::new() }
    }

    /// The distance by which ports are shifted at `now`.
    fn shift(&self, now: Instant) -> u32 {
        let count = now.as_nanos() / (self.every.as_nanos() as u64).max(1);
        (count % u64::from(PORT_COUNT)) as u32 * PORT_SHIFT % PORT_COUNT
    }

    /// Translates a packet from the client, with its offload header.
    pub(crate) fn translate_outbound(&mut self, now: Instant, packet: &mut [u8]) {
        let Some((layout, at)) = Self::port_at(packet, 0) else { return };
        let port = port(packet, at);
        if u32::from(port) < FIRST_PORT {
            return;
        }
        self.open.insert(port);
        let moved = (u32::from(port) - FIRST_PORT + self.shift(now)) % PORT_COUNT + FIRST_PORT;
        packet::replace_port(packet, &layout, at, moved as u16);
    }

    /// Translates a packet to the client, or drops it.
    pub(crate) fn translate_inbound(&self, now: Instant, packet: &mut [u8]) -> Passage {
        let Some((layout, at)) = Self::port_at(packet, 2) else { return Passage::Passes };
        let port = u32::from(port(packet, at));
        if port < FIRST_PORT {
            return Passage::Passes;
        }
        let own =
            ((port - FIRST_PORT + PORT_COUNT - self.shift(now)) % PORT_COUNT + FIRST_PORT) as u16;
        if !self.open.contains(&own) {
            return Passage::Dropped;
        }
        packet::replace_port(packet, &layout, at, own);
        Passage::Passes
    }

    /// The position of the port in a UDP packet, `offset` bytes into the UDP header.
    fn port_at(packet: &[u8], offset: usize) -> Option<(Layout, usize)> {
        let layout = Layout::parse(packet, packet.len())?;
        let at = hikyaku_tun::Header::LEN + layout.transport_at + offset;
        (layout.transport == Transport::Udp).then_some((layout, at))
    }
}

fn port(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}
