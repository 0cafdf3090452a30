//! A snapshot of a connection's statistics.

use super::Connection;
use core::time::Duration;
use hikyaku_cc::{Phase, Snapshot};
use hikyaku_units::{DataSize, Instant, Probability, Rate};
use hikyaku_wire::CipherId;

/// The statistics of a connection since its start.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    /// State of the rate control.
    pub path: Snapshot,
    /// Received payload, without duplicates.
    pub received_payload: DataSize,
    /// Sent payload, without retransmissions.
    pub sent_payload: DataSize,
    /// All UDP payload sent, and the number of packets.
    pub sent: StreamTotals,
    /// All UDP payload received, without duplicates, and the number of packets.
    pub received: StreamTotals,
    /// Payload of retransmissions.
    pub resent: DataSize,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Packets declared lost that arrived after all.
    pub spurious_losses: u64,
    /// Packets received more than once.
    pub duplicates: u64,
    /// Packets that failed authentication.
    pub undecryptable: u64,
    /// Datagrams that this host dropped because a socket buffer was full.
    pub host_drops: u64,
    /// Bytes in flight.
    pub in_flight: DataSize,
    /// What is held because of the peer, without the bytes of streams.
    pub holdings: Holdings,
    /// UDP payload of a full-size packet, in bytes.
    pub datagram: u16,
    /// The number of outages of the path.
    pub outages: u64,
    /// The number of migrations of the peer to another address.
    pub moves: u64,
    /// The number of key updates.
    pub key_updates: u64,
    /// The connection's receive window.
    pub receive_window: DataSize,
    /// Received bytes that the application has not read, gaps included.
    pub unread: DataSize,
    /// Received bytes that wait for missing data before them.
    pub held: DataSize,
    /// The time from the first packet to the end of the handshake.
    pub handshake: Option<Duration>,
    /// The cipher of data packets.
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

/// What this end holds because of its peer. `docs/internals/budgets.md` lists the bounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holdings {
    /// Records of sent packets.
    pub records: usize,
    /// How many times a record was visited, in total.
    pub looks: u64,
    /// Frames that wait to be sent or acknowledged, plus the packets that carry them.
    pub frames: usize,
    /// Pieces of incoming streams.
    pub pieces: usize,
    /// Streams queued for the application.
    pub turns: usize,
}

impl Stats {
    /// The fraction of sent packets declared lost.
    pub fn loss(&self) -> Probability {
        Probability::new(self.lost_packets as f64 / self.sent.packets.max(1) as f64)
    }

    /// Whether the sender is still in the start-up phase of the rate control.
    pub fn is_starting(&self) -> bool {
        self.path.phase == Phase::Startup
    }

    /// The pacing rate.
    pub const fn pacing_rate(&self) -> Rate {
        self.path.pacing_rate
    }
}

impl Connection {
    /// The present statistics.
    pub fn stats(&self) -> Stats {
        let totals = self.recovery.totals;
        let waiting: u64 = self.streams.incoming.values().map(|s| s.held()).sum();
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
            holdings: self.holdings(),
            datagram: self.mtu.current(),
            outages: totals.outages,
            moves: self.tally.moves,
            key_updates: self.transport.as_ref().map_or(0, |t| t.keys.updates()),
            receive_window: self.receive_window(),
            unread: DataSize::from_bytes(self.receive_flow.unread()),
            held: DataSize::from_bytes(waiting),
            handshake: self.timing.established.map(|at: Instant| at - self.timing.started),
            cipher: self.transport.as_ref().map(|t| t.cipher),
        }
    }
}
