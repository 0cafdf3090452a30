//! What is known of one train: what was sent, what arrived, and how much wider it arrived.

use crate::path::rate_between;
use crate::sample::{Arrival, Volume};
use alloc::vec::Vec;
use hikyaku_units::Instant;
use libm::{fmax, fmin};

/// Fewer arrival times than this say nothing.
const LEAST_ARRIVALS: usize = 3;
const MAX_ARRIVALS: usize = 512;
/// Bytes of a packet, where only their number matters.
pub(super) const PACKET: f64 = 1472.0;

#[derive(Clone, Debug, Default)]
pub(super) struct Train {
    pub(super) first: Option<(u64, Instant)>,
    pub(super) last: Option<(u64, Instant)>,
    pub(super) sent: u64,
    pub(super) cut_short: bool,
    arrivals: Vec<Arrival>,
    pub(super) acked: Volume,
    pub(super) lost: Volume,
}

/// The later half of a train, before and behind the link. (The earlier half is flattered by an
/// empty queue or a token bucket.)
pub(super) struct Spread {
    /// Bytes a second as sent.
    pub(super) offered: f64,
    /// Bytes a second as received.
    pub(super) carried: f64,
    /// Seconds from first to last arrival of the whole train.
    pub(super) received: f64,
}

impl Train {
    pub(super) fn push(&mut self, arrival: Arrival) {
        if self.arrivals.len() < MAX_ARRIVALS {
            self.arrivals.push(arrival);
        }
    }

    /// The share that arrived, and of how many packets: by the receiver's count, which is complete
    /// up to the last sample, while what is missing counts as lost only when it is late.
    pub(super) fn arrived(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.arrivals.first()?, self.arrivals.last()?);
        let offered = last.offered.checked_sub(first.offered)? as f64;
        let delivered = last.delivered.checked_sub(first.delivered)? as f64;
        let enough = self.arrivals.len() >= LEAST_ARRIVALS && offered > 0.0;
        enough.then(|| (fmin(delivered / offered, 1.0), fmax(offered / PACKET, 1.0)))
    }

    /// What the later half of the bytes did. The end is any of the last samples: the very last
    /// packet may have been held back by itself, and would stretch the train alone.
    pub(super) fn spread(&self) -> Option<Spread> {
        let (first, last) = (self.arrivals.first()?, self.arrivals.last()?);
        let received = last.received_micros.checked_sub(first.received_micros)? as f64 / 1e6;
        if self.arrivals.len() < LEAST_ARRIVALS || received < SHORTEST {
            return None;
        }
        let all = last.offered.checked_sub(first.offered)?;
        let from = self.arrivals.iter().rev().find(|a| a.offered <= first.offered + all / 2)?;
        let ends = self.arrivals.iter().filter(|a| a.offered >= first.offered + all / 5 * 4);
        let (carried, to) = ends
            .filter_map(|end| Some((rate_between(from, end)?, end)))
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let sent = (to.sent - from.sent).as_secs_f64();
        let offered = to.offered.checked_sub(from.offered)? as f64 / fmax(sent, 1e-6);
        Some(Spread { offered, carried, received })
    }
}

/// Arrival times closer together than this are not worth dividing by.
const SHORTEST: f64 = 1e-4;
