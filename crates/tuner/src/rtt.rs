//! The average of round-trip times.

use core::time::Duration;

/// Weight of a new value: an eighth, as TCP's smoothed round-trip time has it (RFC 6298, section 2.3). The paper asks
/// for an exponential moving average and leaves its weight open.
const WEIGHT: u32 = 8;

/// The exponential moving average of the times from a command to its reply.
///
/// Feed it only with commands that do no work, such as `NOOP`: a reply that waits for a disk measures the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RttMean(Option<Duration>);

impl RttMean {
    /// No value yet.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Adds a measured time. The first one is the average.
    pub fn observe(&mut self, rtt: Duration) {
        let mean = self.0.map_or(rtt, |mean| (mean * (WEIGHT - 1) + rtt) / WEIGHT);
        self.0 = Some(mean);
    }

    /// The average; `None` before the first value.
    pub const fn mean(&self) -> Option<Duration> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_value_weighs_an_eighth() {
        let mut rtt = RttMean::new();
        assert_eq!(rtt.mean(), None);
        rtt.observe(Duration::from_millis(80));
        assert_eq!(rtt.mean(), Some(Duration::from_millis(80)));
        rtt.observe(Duration::from_millis(160));
        assert_eq!(rtt.mean(), Some(Duration::from_millis(90)));
    }
}
