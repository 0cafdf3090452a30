//! Log lines of a connection at the level `debug`: its begin and end, changes of its path, and updates of its keys.

use hikyaku_proto::{CloseReason, Connection, Stats};
use tracing::{Level, debug, enabled};

/// The state of a connection that was logged last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Logged {
    moves: u64,
    key_updates: u64,
}

impl Logged {
    /// Logs what has changed since the last call. The caller calls it a hundred times a second at most; if nothing is
    /// logged it costs a comparison.
    pub(super) fn update(&mut self, slot: u32, proto: &Connection) {
        if enabled!(Level::DEBUG) {
            self.log(slot, proto, &proto.stats());
        }
    }

    fn log(&mut self, slot: u32, proto: &Connection, stats: &Stats) {
        let now = Self { moves: stats.moves, key_updates: stats.key_updates };
        let before = std::mem::replace(self, now);
        if now.moves != before.moves {
            debug!(connection = slot, remote = %proto.remote(), moves = now.moves, "path changed");
        }
        if now.key_updates != before.key_updates {
            debug!(connection = slot, updates = now.key_updates, "keys updated");
        }
    }
}

/// Logs that a handshake is complete.
pub(super) fn log_up(slot: u32, proto: &Connection) {
    if enabled!(Level::DEBUG) {
        let stats = proto.stats();
        let handshake_ms = stats.handshake.unwrap_or_default().as_secs_f64() * 1e3;
        let cipher = stats.cipher;
        debug!(connection = slot, remote = %proto.remote(), handshake_ms, ?cipher, "connection up");
    }
}

/// Logs that a connection has ended, with its sums.
pub(super) fn log_down(slot: u32, proto: &Connection, reason: &CloseReason) {
    if enabled!(Level::DEBUG) {
        let stats = proto.stats();
        debug!(
            connection = slot,
            remote = %proto.remote(),
            %reason,
            sent_packets = stats.sent.packets,
            lost_packets = stats.lost_packets,
            received_packets = stats.received.packets,
            moves = stats.moves,
            key_updates = stats.key_updates,
            "connection down"
        );
    }
}
