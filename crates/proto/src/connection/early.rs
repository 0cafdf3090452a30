//! Packets that arrived before the keys to open them.

use super::{Connection, Datagrams, State};
use crate::mtu::BASE_DATAGRAM_BYTES;
use core::net::SocketAddr;
use hikyaku_units::Instant;

/// Maximum number of stored packets: as many as a client's first train has. They may not be longer
/// than its packets, because their sender is not authenticated.
const EARLY_PACKETS_MAX: usize = 64;

impl Connection {
    /// Stores a data packet that arrived before the handshake's last packet. A client sends both at
    /// the same time, so they may be reordered, or the handshake packet may be lost.
    pub(super) fn keep_early(&mut self, source: SocketAddr, received: Instant, packet: &[u8]) {
        if self.early.len() < EARLY_PACKETS_MAX && packet.len() <= usize::from(BASE_DATAGRAM_BYTES)
        {
            self.early.push(Datagrams::one(source, received, packet.to_vec()));
        }
    }

    /// Handles the stored packets as if they arrived now, once the data keys exist.
    pub(super) fn handle_early(&mut self, now: Instant) {
        if self.state == State::Established {
            for early in core::mem::take(&mut self.early) {
                self.handle_datagrams(now, early);
            }
        }
    }
}
