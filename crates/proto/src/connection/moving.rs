//! Connection migration (RFC 9000, section 9).

use super::Connection;
use crate::address::{Moved, Order};
use crate::ecn::EcnValidation;
use crate::handshake::AMPLIFICATION;
use crate::mtu::MtuSearch;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use hikyaku_units::Instant;

impl Connection {
    /// Records that authentic packets of `bytes` bytes came from `source` to `local`.
    pub(super) fn note_address(
        &mut self,
        (source, local): (SocketAddr, Option<IpAddr>),
        bytes: u64,
        order: Order,
    ) {
        let tokens = &mut self.tokens;
        self.peer.on_packet(source, bytes, order, || tokens.u64(..));
        if let (Some(local), Order::Newest) = (local, order) {
            // The packet arrived at another local address, so this host has changed networks.
            let before = self.local.replace(local);
            if before.is_some_and(|before| before != local) {
                self.reset_path(self.recovery.srtt());
            }
        }
    }

    /// Records that `bytes` bytes of a client's handshake packets came from `source`. If that is a
    /// new address, answers go there. They are limited to three times the bytes, without data,
    /// until the address is validated.
    // spec: path-4
    pub(super) fn note_handshake_source(&mut self, source: SocketAddr, bytes: u64) {
        let tokens = &mut self.tokens;
        self.peer.on_packet(source, bytes * AMPLIFICATION, Order::Newest, || tokens.u64(..));
    }

    pub(super) fn on_path_response(&mut self, now: Instant, token: u64) {
        let Some((moved, asked)) = self.peer.on_response(token) else { return };
        self.tally.moves += 1;
        match moved {
            // What happened to packets sent to the old port says nothing about the path.
            Moved::Port => self.recovery.on_dead_path(now),
            Moved::Host => self.reset_path(now - asked),
        }
    }

    /// Starts measuring a new path. The rate of the old path is the first estimate.
    // spec: path-3
    fn reset_path(&mut self, rtt: Duration) {
        self.mtu = MtuSearch::new(self.config.max_datagram);
        self.ecn = EcnValidation::default();
        self.recovery.on_new_path(rtt, u64::from(self.mtu.current()));
    }
}
