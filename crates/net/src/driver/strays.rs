//! Messages that came to the socket of another driver than that of their connection.
//!
//! The kernel steers each datagram by its id, but an old kernel cannot, and one that joins datagrams of several connections to a
//! message gives all of them to one socket. Their driver gets them through its mailbox.

use super::Core;
use crate::command::Stray;
use hikyaku_udp::RecvMeta;

/// Messages that are taken in one turn.
const STRAYS: usize = 64;

impl Core {
    /// Gives a message to the driver with this index. If that has too many, the message counts as dropped by this host.
    pub(super) fn pass_on(&self, driver: u8, meta: RecvMeta, bytes: Vec<u8>) {
        if let Some(peer) = self.peers.get(usize::from(driver)) {
            peer.pass(Stray { meta, bytes });
        }
    }

    /// Takes the messages that other drivers have received. Returns their bytes.
    pub(super) fn take_strays(&mut self) -> usize {
        let dropped = self.mailbox.take_dropped();
        self.count_drops(dropped);
        let mut bytes = 0;
        for _ in 0..STRAYS {
            let Some(Stray { meta, bytes: mut buffer }) = self.mailbox.stray() else { break };
            bytes += meta.len;
            self.take_message(self.clock.now(), &meta, &mut buffer);
            self.pool.give(buffer);
        }
        bytes
    }
}
