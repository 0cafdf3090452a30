//! Flow control of the connection: the receive window follows the measured bandwidth-delay product
//! up to a fixed maximum.

use crate::error::Violation;
use core::time::Duration;
use hikyaku_units::Instant;

/// Receive window in bandwidth-delay products that ordered delivery needs on a path without loss:
/// one in flight, one that waits for a retransmission, one for a second retransmission, and a
/// reserve.
const WINDOW_PRODUCTS: f64 = 3.25;
/// Additional products for each unit of loss rate, because with loss more ranges need a second and
/// third retransmission.
const WINDOW_PRODUCTS_PER_LOSS: f64 = 37.0;
const LOSS_PRODUCTS_MAX: f64 = 4.0;
/// Consecutive round trips whose minimum loss rate sets the window.
const LOSS_ROUNDS: usize = 3;
/// The arrival rate is measured in parts of a round trip, but not in shorter intervals than
/// `MEASUREMENT_PART_MIN`, so that scheduling delays of a busy host do not distort it.
const PARTS_PER_ROUND_TRIP: u32 = 4;
const MEASUREMENT_PART_MIN: Duration = Duration::from_millis(5);
/// Unread bytes up to which the window is never considered crowded.
const CROWDED_BYTES_MIN: u64 = 8 << 20;

/// The connection-level receive window, over all streams.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveFlow {
    window: u64,
    max_window: u64,
    limit: u64,
    received: u64,
    consumed: u64,
    /// Unread bytes of streams that their readers have stopped reading. They are added to the
    /// window, up to its maximum, so that they do not reduce the credit of other streams.
    stale: u64,
    rtt: Duration,
    /// Start of the round trip being measured, and what had arrived by then.
    round: (Instant, Arrived),
    part: (Instant, Arrived),
    /// Bandwidth-delay product measured in the previous part.
    part_product: f64,
    /// Loss rates of the last round trips, newest first.
    losses: [f64; LOSS_ROUNDS],
}

/// Totals of what has arrived since the connection began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    /// Packets that the peer sent, as derived from packet numbers.
    pub(crate) of: u64,
}

impl ReceiveFlow {
    pub(crate) const fn new(initial: u64, max: u64) -> Self {
        let window = if initial < max { initial } else { max };
        Self {
            window,
            max_window: max,
            limit: window,
            received: 0,
            consumed: 0,
            stale: 0,
            rtt: Duration::from_millis(100),
            round: (Instant::ZERO, Arrived { bytes: 0, packets: 0, of: 0 }),
            part: (Instant::ZERO, Arrived { bytes: 0, packets: 0, of: 0 }),
            part_product: 0.0,
            losses: [0.0; LOSS_ROUNDS],
        }
    }

    /// The window in bytes, received or in flight, without those of stalled streams.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// Whether more than a quarter of the window waits to be read.
    pub(crate) const fn is_crowded(&self) -> bool {
        let waiting = self.received - self.consumed;
        waiting > CROWDED_BYTES_MIN && waiting > self.window / 4
    }

    /// Whether more than half of the window waits to be read.
    pub(crate) const fn is_half_full(&self) -> bool {
        self.received - self.consumed > self.window / 2
    }

    /// Received bytes that have not been read, including gaps below the highest received offset.
    pub(crate) const fn unread(&self) -> u64 {
        self.received - self.consumed
    }

    pub(crate) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    // spec: flow-1
    /// Records that the highest received offsets of all streams grew by `bytes` in total.
    pub(crate) fn on_received(&mut self, bytes: u64) -> Result<(), Violation> {
        self.received += bytes;
        if self.received > self.limit {
            return Err(Violation::flow_control("more data than allowed"));
        }
        Ok(())
    }

    /// Records that the application read `bytes`. Returns the new limit if it has grown enough to
    /// be announced.
    pub(crate) const fn on_consumed(&mut self, bytes: u64) -> Option<u64> {
        self.consumed += bytes;
        self.widen()
    }

    /// Sets the unread bytes of stalled streams. Returns the new limit if it has grown enough to be
    /// announced.
    pub(crate) fn set_stale(&mut self, bytes: u64) -> Option<u64> {
        self.stale = bytes;
        self.widen()
    }

    /// The maximum of the receive window.
    pub(crate) const fn window_max(&self) -> u64 {
        self.max_window
    }

    /// The round-trip time that the sender reports.
    pub(crate) const fn rtt(&self) -> Duration {
        self.rtt
    }

    const fn widen(&mut self) -> Option<u64> {
        let room = self.max_window - self.window;
        let stale = if self.stale < room { self.stale } else { room };
        let limit = self.consumed + self.window + stale;
        if limit >= self.limit + self.window / 8 {
            self.limit = limit;
            Some(limit)
        } else {
            None
        }
    }

    /// Adapts the window to the arrival rate. Returns the new limit if it has grown enough to be
    /// announced.
    pub(crate) fn measure(&mut self, now: Instant, arrived: Arrived) -> Option<u64> {
        if now - self.part.0 < (self.rtt / PARTS_PER_ROUND_TRIP).max(MEASUREMENT_PART_MIN) {
            return None;
        }
        let product = self.product(self.part, now, arrived);
        // Parts of a round trip are used so that a fast sender does not wait a whole round trip for
        // credit. The minimum of two successive parts is taken, because one alone may contain data
        // held back by a stall.
        let mut lasting = product.min(core::mem::replace(&mut self.part_product, product));
        self.part = (now, arrived);
        if now - self.round.0 >= self.rtt {
            lasting = lasting.max(self.product(self.round, now, arrived));
            self.losses.rotate_right(1);
            self.losses[0] = arrived.loss_since(self.round.1);
            self.round = (now, arrived);
        }
        // The window never shrinks. The minimum over several round trips keeps the queue overflow
        // of the start-up from enlarging it for good.
        let loss = self.losses.iter().copied().fold(1.0, f64::min);
        let products = WINDOW_PRODUCTS + (WINDOW_PRODUCTS_PER_LOSS * loss).min(LOSS_PRODUCTS_MAX);
        let wanted = ((lasting * products) as u64).min(self.max_window);
        if wanted <= self.window {
            return None;
        }
        self.window = wanted;
        self.widen()
    }

    /// Bytes in a round trip at the arrival rate since `since`.
    fn product(&self, (since, before): (Instant, Arrived), now: Instant, arrived: Arrived) -> f64 {
        let bytes = (arrived.bytes - before.bytes) as f64;
        bytes * self.rtt.as_secs_f64() / (now - since).as_secs_f64()
    }
}

impl Arrived {
    fn loss_since(self, before: Self) -> f64 {
        let (sent, came) = (self.of - before.of, self.packets - before.packets);
        if sent > 0 { (1.0 - came as f64 / sent as f64).max(0.0) } else { 0.0 }
    }
}

/// The connection-level flow-control credit that the peer grants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendFlow {
    limit: u64,
    sent: u64,
}

impl SendFlow {
    pub(crate) const fn new(limit: u64) -> Self {
        Self { limit, sent: 0 }
    }

    pub(crate) const fn set_limit(&mut self, limit: u64) {
        if limit > self.limit {
            self.limit = limit;
        }
    }

    /// New bytes that may be sent.
    pub(crate) const fn available(&self) -> u64 {
        self.limit - self.sent
    }

    pub(crate) const fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }
}

#[cfg(test)]
mod tests;
