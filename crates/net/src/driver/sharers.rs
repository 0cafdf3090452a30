//! The number of connections that send by a driver.

use hikyaku_units::Instant;
use std::num::NonZeroU32;
use std::time::Duration;

/// A connection that has sent data within this time, or twice this time, counts.
const PERIOD: Duration = Duration::from_millis(10);

/// Counts the connections that have sent data in a period.
#[derive(Default)]
pub(super) struct Sharers {
    period: Period,
    present: u32,
    last: u32,
}

/// A period, by its number since the driver began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Period(u64);

impl Sharers {
    /// A connection sends data. `counted` is the period in which it was counted last.
    pub(super) fn count(&mut self, now: Instant, counted: &mut Option<Period>) {
        self.begin(now);
        if *counted != Some(self.period) {
            *counted = Some(self.period);
            self.present += 1;
        }
    }

    /// The larger number of this period and the one before, at least one.
    pub(super) fn number(&mut self, now: Instant) -> NonZeroU32 {
        self.begin(now);
        NonZeroU32::new(self.present.max(self.last)).unwrap_or(NonZeroU32::MIN)
    }

    fn begin(&mut self, now: Instant) {
        let period = Period(now.as_nanos() / PERIOD.as_nanos() as u64);
        if period != self.period {
            let is_next = period.0 == self.period.0 + 1;
            self.last = if is_next { self.present } else { 0 };
            (self.period, self.present) = (period, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_have_sent_lately_are_counted_once() {
        let mut sharers = Sharers::default();
        let mut connections = [None; 3];
        let at = Instant::from_millis;
        assert_eq!(sharers.number(at(10)).get(), 1);
        for _ in 0..2 {
            connections.iter_mut().for_each(|counted| sharers.count(at(10), counted));
        }
        assert_eq!(sharers.number(at(19)).get(), 3);
        sharers.count(at(20), &mut connections[0]);
        assert_eq!(sharers.number(at(29)).get(), 3, "the others may come yet");
        assert_eq!(sharers.number(at(30)).get(), 1);
        assert_eq!(sharers.number(at(100)).get(), 1);
        connections.iter_mut().for_each(|counted| sharers.count(at(110), counted));
        assert_eq!(sharers.number(at(130)).get(), 1, "after a pause nothing is known");
    }
}
