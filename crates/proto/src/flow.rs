//! Flow control: how much the peer may send, following what the path needs, under a fixed bound.

use crate::error::Violation;
use core::time::Duration;
use hikyaku_units::Instant;

/// Bandwidth-delay products that order needs on a clean path: one on the way, one waiting for the
/// repair of a hole, one for its repetition, and slack.
const PRODUCTS: f64 = 3.25;
/// With loss `p` holes are repaired more often a second and third time.
const PRODUCTS_PER_LOSS: f64 = 37.0;
const MAX_EXTRA: f64 = 4.0;

/// The receiving side's limit over all streams, and the window that one stream gets.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveFlow {
    window: u64,
    max_window: u64,
    limit: u64,
    received: u64,
    consumed: u64,
    rtt: Duration,
    measured: (Instant, u64),
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
            rtt: Duration::from_millis(100),
            measured: (Instant::ZERO, 0),
        }
    }

    /// Bytes that may be held, arrived or on their way: the stated bound of memory.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    pub(crate) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    // spec: flow-1
    /// The streams' highest bytes grew by `bytes` in all.
    pub(crate) fn on_received(&mut self, bytes: u64) -> Result<(), Violation> {
        self.received += bytes;
        if self.received > self.limit {
            return Err(Violation::flow_control("more data than allowed"));
        }
        Ok(())
    }

    /// The application took `bytes`; gives the new limit if it is worth saying.
    pub(crate) const fn on_consumed(&mut self, bytes: u64) -> Option<u64> {
        self.consumed += bytes;
        self.widen()
    }

    const fn widen(&mut self) -> Option<u64> {
        let limit = self.consumed + self.window;
        if limit >= self.limit + self.window / 8 {
            self.limit = limit;
            Some(limit)
        } else {
            None
        }
    }

    /// Once a round trip: follows the rate at which bytes arrive. Gives the new limit if it grew.
    pub(crate) fn measure(&mut self, now: Instant, arrived: u64, loss: f64) -> Option<u64> {
        let (since, before) = self.measured;
        let passed = now - since;
        if passed < self.rtt.max(Duration::from_millis(5)) {
            return None;
        }
        self.measured = (now, arrived);
        let product = (arrived - before) as f64 * self.rtt.as_secs_f64() / passed.as_secs_f64();
        let products = PRODUCTS + (PRODUCTS_PER_LOSS * loss).min(MAX_EXTRA);
        let wanted = ((product * products) as u64).min(self.max_window);
        if wanted <= self.window {
            return None;
        }
        self.window = wanted;
        self.widen()
    }
}

/// What the peer lets us send over all streams.
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
