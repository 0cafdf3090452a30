//! The client's addresses over time, and how many bytes the server may send to each of them.

use crate::duo::{Overheard, address, overhear};
use crate::middlebox::NewHost;
use hikyaku_proto::Side;
use hikyaku_wire::{Frame, is_long};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The client's addresses. Only packets to the newest one arrive.
pub(crate) struct Visits {
    now: SocketAddr,
    count: u16,
    places: BTreeMap<SocketAddr, Place>,
}

/// An address other than the first.
#[derive(Default)]
struct Place {
    /// Bytes that the server may send to the address before it is validated.
    credit: u64,
    sent: u64,
    is_proven: bool,
}

/// Bytes that the server may send for each received byte of a handshake packet.
const HANDSHAKE_CREDIT_FACTOR: u64 = 3;

impl Visits {
    pub(crate) fn new() -> Self {
        Self { now: address(Side::Client), count: 0, places: BTreeMap::new() }
    }

    /// The client's present address.
    pub(crate) const fn now(&self) -> SocketAddr {
        self.now
    }

    /// Changes to an address that was not used before.
    pub(crate) fn go(&mut self, host: NewHost) {
        self.count += 1;
        let [high, low] = self.count.to_be_bytes();
        match host {
            NewHost::No => self.now.set_port(6000 + self.count),
            NewHost::Yes => self.now = SocketAddr::from(([10, 1, high, low], 5000)),
        }
    }

    /// Records that a packet from `source` arrived at the server.
    pub(crate) fn come_from(&mut self, source: SocketAddr, packet: &[u8]) {
        if source == address(Side::Client) {
            return;
        }
        let place = self.places.entry(source).or_default();
        let times = if is_long(packet) { HANDSHAKE_CREDIT_FACTOR } else { 1 };
        place.credit += packet.len() as u64 * times;
        if let Some(Overheard::Control(frames)) = overhear(packet) {
            place.is_proven |= frames.iter().any(|frame| matches!(frame, Frame::PathResponse(_)));
        }
    }

    /// Checks a packet that the server sends to `target`.
    pub(crate) fn leaves_for(&mut self, target: SocketAddr, packet: &[u8]) -> Result<(), String> {
        if target == address(Side::Client) {
            return Ok(());
        }
        let Some(place) = self.places.get_mut(&target) else {
            return Err(format!("a packet to {target}, from where nothing came"));
        };
        place.sent += packet.len() as u64;
        if place.is_proven || place.sent <= place.credit {
            return Ok(());
        }
        let Place { sent, credit, .. } = place;
        Err(format!("{sent} bytes to {target}, from where {credit} came, and no proof"))
    }
}
