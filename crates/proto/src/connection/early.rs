//! Packets that came before the keys to open them.

use super::{Connection, Datagrams, State};
use crate::mtu::BASE;
use core::net::SocketAddr;
use hikyaku_units::Instant;

/// As many packets as a client's first train has, and no longer ones than those: nothing is known
/// yet of who sends them.
const MAX_EARLY: usize = 64;

impl Connection {
    /// Data that overtook the handshake's last packet, or came while that was lost: a client sends
    /// both at once.
    pub(super) fn keep_early(&mut self, source: SocketAddr, received: Instant, packet: &[u8]) {
        if self.early.len() < MAX_EARLY && packet.len() <= usize::from(BASE) {
            self.early.push(Datagrams::one(source, received, packet.to_vec()));
        }
    }

    /// Takes them as if they came now, once they can be opened.
    pub(super) fn handle_early(&mut self, now: Instant) {
        if self.state == State::Established {
            for early in core::mem::take(&mut self.early) {
                self.handle_datagrams(now, early);
            }
        }
    }
}
