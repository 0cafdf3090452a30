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
/// So many round trips must lose as much before the window grows for it.
const RECENT: usize = 3;
/// The rate is looked at in parts of a round trip, and not more often than a busy host allows.
const PARTS: u32 = 4;
const SHORTEST_PART: Duration = Duration::from_millis(5);
/// Less than this is never worth a copy.
const CROWDED: u64 = 8 << 20;

/// The receiving side's limit over all streams, and the window that one stream gets.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveFlow {
    window: u64,
    max_window: u64,
    limit: u64,
    received: u64,
    consumed: u64,
    rtt: Duration,
    /// Where the round trip began that is measured now, and where its present part.
    round: (Instant, Arrived),
    part: (Instant, Arrived),
    /// Bandwidth-delay product by the last part.
    part_product: f64,
    /// Loss of the last round trips.
    losses: [f64; RECENT],
}

/// What has arrived since the connection began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    /// Packets that were sent, as far as their numbers tell.
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
            rtt: Duration::from_millis(100),
            round: (Instant::ZERO, Arrived { bytes: 0, packets: 0, of: 0 }),
            part: (Instant::ZERO, Arrived { bytes: 0, packets: 0, of: 0 }),
            part_product: 0.0,
            losses: [0.0; RECENT],
        }
    }

    /// Bytes that may be held, arrived or on their way: the stated bound of memory.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// Whether more than a quarter of the window waits to be consumed.
    pub(crate) const fn is_crowded(&self) -> bool {
        let waiting = self.received - self.consumed;
        waiting > CROWDED && waiting > self.window / 4
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

    /// Follows the rate at which bytes arrive. Gives the new limit if it grew.
    pub(crate) fn measure(&mut self, now: Instant, arrived: Arrived) -> Option<u64> {
        if now - self.part.0 < (self.rtt / PARTS).max(SHORTEST_PART) {
            return None;
        }
        let product = self.product(self.part, now, arrived);
        // A fast sender should not wait a round trip for being measured; one part alone may be what
        // a stall held back.
        let mut lasting = product.min(core::mem::replace(&mut self.part_product, product));
        self.part = (now, arrived);
        if now - self.round.0 >= self.rtt {
            lasting = lasting.max(self.product(self.round, now, arrived));
            self.losses.rotate_right(1);
            self.losses[0] = arrived.loss_since(self.round.1);
            self.round = (now, arrived);
        }
        // The window never shrinks, so the overflow at the start must not make it.
        let loss = self.losses.iter().copied().fold(1.0, f64::min);
        let products = PRODUCTS + (PRODUCTS_PER_LOSS * loss).min(MAX_EXTRA);
        let wanted = ((lasting * products) as u64).min(self.max_window);
        if wanted <= self.window {
            return None;
        }
        self.window = wanted;
        self.widen()
    }

    /// Bytes of a round trip at the rate since then.
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

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// The window after rounds of 100 MB with these losses.
    fn window(losses: &[f64]) -> u64 {
        let mut flow = ReceiveFlow::new(1 << 20, u64::MAX);
        flow.set_rtt(RTT);
        let mut now = Instant::from_millis(1000);
        let mut arrived = Arrived::default();
        flow.measure(now, arrived);
        for loss in losses {
            now += RTT;
            arrived.of += 100_000;
            arrived.packets += (100_000.0 * (1.0 - loss)) as u64;
            arrived.bytes += 100_000_000;
            flow.measure(now, arrived);
        }
        flow.window()
    }

    /// The window after quarters of a round trip with so many MB each.
    fn quarters(megabytes: &[u64]) -> u64 {
        let mut flow = ReceiveFlow::new(1 << 20, u64::MAX);
        flow.set_rtt(RTT);
        let mut now = Instant::from_millis(1000);
        let mut arrived = Arrived::default();
        flow.measure(now, arrived);
        for megabytes in megabytes {
            now += RTT / 4;
            arrived.bytes += megabytes * 1_000_000;
            flow.measure(now, arrived);
        }
        flow.window()
    }

    #[test]
    fn a_fast_sender_does_not_wait_a_round_trip_for_room() {
        let full = (100e6 * PRODUCTS) as u64;
        assert_eq!(quarters(&[25, 25]), full, "half a round trip tells");
        assert_eq!(quarters(&[25, 0, 50, 25]), full, "a stall and what it held back do not");
    }

    #[test]
    fn the_window_follows_lasting_loss_but_no_overflow() {
        let clean = (100e6 * PRODUCTS) as u64;
        assert_eq!(window(&[0.0; 5]), clean, "no loss");
        assert_eq!(window(&[0.5, 0.4, 0.0, 0.0, 0.0]), clean, "an overflow at the start");
        let lossy = window(&[0.02; 5]) as f64 / 100e6;
        assert!((lossy - PRODUCTS - 0.02 * PRODUCTS_PER_LOSS).abs() < 0.01, "{lossy}");
    }
}
