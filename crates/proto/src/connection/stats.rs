//! A snapshot of everything a user may want to see.

use super::Connection;
use core::time::Duration;
use hikyaku_cc::{Phase, Snapshot};
use hikyaku_units::{DataSize, Instant, Probability, Rate};
use hikyaku_wire::CipherId;

/// What happened to a connection so far.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// Rate control.
    pub path: Snapshot,
    /// Payload received, each byte once.
    pub received_payload: DataSize,
    /// Payload sent, each byte once.
    pub sent_payload: DataSize,
    /// UDP payload sent in all, and how many packets that was.
    pub sent: StreamTotals,
    /// UDP payload received in all, without duplicates.
    pub received: StreamTotals,
    /// Payload sent again.
    pub resent: DataSize,
    /// Packets judged lost.
    pub lost_packets: u64,
    /// Packets judged lost that arrived after all.
    pub spurious_losses: u64,
    /// Packets received twice.
    pub duplicates: u64,
    /// Packets that did not open.
    pub undecryptable: u64,
    /// Datagrams that this host dropped for want of socket buffer.
    pub host_drops: u64,
    /// Bytes in flight.
    pub in_flight: DataSize,
    /// UDP payload of a full packet.
    pub datagram: u16,
    /// Times the path went silent.
    pub outages: u64,
    /// Times the peer went on from another address.
    pub moves: u64,
    /// Times the data keys were replaced.
    pub key_updates: u64,
    /// Bytes that the peer may have on the way or with us.
    pub receive_window: DataSize,
    /// Bytes that wait for a hole before them.
    pub held: DataSize,
    /// From the first packet to the end of the handshake.
    pub handshake: Option<Duration>,
    /// The data cipher.
    pub cipher: Option<CipherId>,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamTotals {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Stats {
    /// The share of packets lost so far.
    pub fn loss(&self) -> Probability {
        Probability::new(self.lost_packets as f64 / self.sent.packets.max(1) as f64)
    }

    /// Whether the sender is still looking for the path's capacity.
    pub fn is_starting(&self) -> bool {
        self.path.phase == Phase::Startup
    }

    /// The rate at which packets leave.
    pub const fn pacing_rate(&self) -> Rate {
        self.path.pacing_rate
    }
}

impl Connection {
    /// The present state of everything.
    pub fn stats(&self) -> Stats {
        let totals = self.recovery.totals;
        let held: u64 = self.streams.incoming.values().map(|s| s.held()).sum();
        Stats {
            path: self.recovery.controller.snapshot(),
            received_payload: DataSize::from_bytes(self.tally.received_payload),
            sent_payload: DataSize::from_bytes(self.tally.sent_payload),
            sent: StreamTotals { packets: totals.sent_packets, bytes: totals.sent_bytes },
            received: StreamTotals {
                packets: self.receipts.packets(),
                bytes: self.receipts.bytes(),
            },
            resent: DataSize::from_bytes(totals.resent_bytes),
            lost_packets: totals.lost_packets,
            spurious_losses: totals.spurious,
            duplicates: self.receipts.duplicates,
            undecryptable: self.tally.undecryptable,
            host_drops: self.tally.host_drops,
            in_flight: DataSize::from_bytes(self.recovery.in_flight()),
            datagram: self.mtu.current(),
            outages: totals.outages,
            moves: self.tally.moves,
            key_updates: self.transport.as_ref().map_or(0, |t| t.keys.updates()),
            receive_window: self.receive_window(),
            held: DataSize::from_bytes(held),
            handshake: self.timing.established.map(|at: Instant| at - self.timing.started),
            cipher: self.transport.as_ref().map(|t| t.cipher),
        }
    }
}
