//! From the connections to the socket.

use super::Core;
use super::entry::{Entry, Stage};
use hikyaku_proto::Marking;
use hikyaku_udp::{Ecn, SendError, SendOutcome, Transmit};
use hikyaku_units::Instant;
use std::net::{IpAddr, SocketAddr};

/// The batch under way, in a buffer that is used again for each.
#[derive(Default)]
pub(super) struct Outgoing {
    buffer: Vec<u8>,
    /// Datagrams that the socket has not taken yet.
    stuck: Option<Stuck>,
    /// Slots of connections that could send if the socket had room.
    pub(super) waiting: Vec<u32>,
}

struct Stuck {
    destination: SocketAddr,
    source: Option<IpAddr>,
    ecn: Option<Ecn>,
    segment: usize,
    from: usize,
    end: usize,
}

/// Batches that are sent before the socket is read again: half a megabyte. Connections that send at the same time share them, so
/// that one that has a high rate does not hold up the others.
const BATCHES: u32 = 8;
/// A shorter batch is taken for acknowledgements.
const DATA_BYTES_MIN: usize = 1000;

/// Why a connection stopped sending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stopped {
    /// It has nothing to send now.
    Idle,
    /// It had its share of the turn.
    Share,
    /// The socket is full.
    Full,
    /// This machine cannot send to the peer.
    Unreachable(String),
}

impl Outgoing {
    pub(super) const fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }
}

impl Core {
    /// Sends what the socket refused before; false if it still does.
    pub(super) fn unstick(&mut self) -> bool {
        let Some(stuck) = self.outgoing.stuck.take() else { return true };
        let transmit = Transmit {
            segment_size: Some(stuck.segment),
            source: stuck.source,
            ecn: stuck.ecn,
            ..Transmit::to(stuck.destination, &self.outgoing.buffer[stuck.from..stuck.end])
        };
        // Whatever else goes wrong now is loss, and found as such.
        if let Ok(SendOutcome::Stopped { sent }) = self.socket.send(&transmit) {
            self.outgoing.stuck = Some(Stuck { from: stuck.from + sent, ..stuck });
        }
        !self.outgoing.is_stuck()
    }

    /// Sends what the connection in `slot` has to send.
    pub(super) fn transmit(&mut self, slot: u32) -> Stopped {
        let Some(entry) = self.table.at(slot) else { return Stopped::Idle };
        let share = BATCHES.div_ceil(self.sharers.number(self.clock.now()).get());
        for _ in 0..share {
            let now = self.clock.now();
            let Some(batch) = entry.proto.poll_transmit(now, &mut self.outgoing.buffer) else {
                return Stopped::Idle;
            };
            if batch.len >= DATA_BYTES_MIN {
                self.sharers.count(now, &mut entry.counted);
            }
            let ecn = match batch.marking {
                Marking::Ect0 => Some(Ecn::Ect0),
                Marking::NotEct => None,
            };
            let transmit = Transmit {
                segment_size: Some(batch.segment),
                source: entry.from,
                ecn,
                ..Transmit::to(batch.destination, &self.outgoing.buffer[..batch.len])
            };
            match self.socket.send(&transmit) {
                Ok(SendOutcome::Sent) => {}
                Ok(SendOutcome::Stopped { sent }) => {
                    self.outgoing.stuck = Some(Stuck {
                        destination: batch.destination,
                        source: entry.from,
                        ecn,
                        segment: batch.segment,
                        from: sent,
                        end: batch.len,
                    });
                    return Stopped::Full;
                }
                Err(error) => {
                    if let Some(text) = on_error(now, entry, &error) {
                        return Stopped::Unreachable(text);
                    }
                }
            }
        }
        Stopped::Share
    }
}

/// The effect of a send error on the connection. Unsent datagrams count as lost on the path, and
/// are retransmitted.
fn on_error(now: Instant, entry: &mut Entry, error: &SendError) -> Option<String> {
    match error {
        SendError::TooBig { size } => {
            entry.proto.handle_too_big(now, *size);
            None
        }
        SendError::NoMemory => None,
        // From any other: the client finds us there.
        SendError::SourceUnavailable { .. } if entry.from.take().is_some() => None,
        // An established connection outlives an interface that is down for a while.
        other => (entry.stage == Stage::Connecting).then(|| other.to_string()),
    }
}
