//! What follows when an end of the connection has moved (RFC 9000, section 9).

use super::Connection;
use crate::address::{Moved, Order};
use crate::ecn::EcnValidation;
use crate::handshake::AMPLIFICATION;
use crate::mtu::MtuSearch;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use hikyaku_units::Instant;

impl Connection {
    /// Packets of so many bytes that opened came from `source` to `local`.
    pub(super) fn note_address(
        &mut self,
        (source, local): (SocketAddr, Option<IpAddr>),
        bytes: u64,
        order: Order,
    ) {
        let tokens = &mut self.tokens;
        self.peer.on_packet(source, bytes, order, || tokens.u64(..));
        if let (Some(local), Order::Newest) = (local, order) {
            // The peer has found us on another network.
            let before = self.local.replace(local);
            if before.is_some_and(|before| before != local) {
                self.start_afresh(self.recovery.srtt());
            }
        }
    }

    /// Packets of a client's handshake came from `source`, so many bytes. Should that be another address than the
    /// first one, answers go there: no more than three times as much, and no data before it is proven.
    // spec: path-4
    pub(super) fn note_introduction(&mut self, source: SocketAddr, bytes: u64) {
        let tokens = &mut self.tokens;
        self.peer.on_packet(source, bytes * AMPLIFICATION, Order::Newest, || tokens.u64(..));
    }

    pub(super) fn on_path_response(&mut self, now: Instant, token: u64) {
        let Some((moved, asked)) = self.peer.on_response(token) else { return };
        self.tally.moves += 1;
        match moved {
            // What was sent to the old port says nothing of the path.
            Moved::Port => self.recovery.on_dead_path(now),
            Moved::Host => self.start_afresh(now - asked),
        }
    }

    /// Another path: nothing is known but what the last one carried, which is tried first.
    // spec: path-3
    fn start_afresh(&mut self, rtt: Duration) {
        self.mtu = MtuSearch::new(self.config.max_datagram);
        self.ecn = EcnValidation::default();
        self.recovery.on_new_path(rtt, u64::from(self.mtu.current()));
    }
}
