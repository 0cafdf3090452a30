//! Detection of a busy loop: a timer that fires again and again without effect.

use hikyaku_units::Instant;
use std::time::Duration;

/// This many consecutive calls without effect are a busy loop if their mean interval is below
/// [`IDLE_INTERVAL_MIN`]. More calls may be right at longer intervals: pacing and timers have a
/// granularity, and packets that were sent one by one are declared lost one by one.
const IDLE_CALLS_MAX: u32 = 40;
const IDLE_INTERVAL_MIN: Duration = Duration::from_micros(50);

/// Consecutive calls after which no packet was sent.
#[derive(Default)]
pub(crate) struct Idle {
    calls: u32,
    since: Instant,
}

impl Idle {
    /// Counts a call.
    pub(crate) fn count(&mut self, now: Instant) {
        if self.calls == 0 || self.calls > IDLE_CALLS_MAX {
            *self = Self { calls: 0, since: now };
        }
        self.calls += 1;
    }

    /// Whether the calls are too frequent.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.calls > IDLE_CALLS_MAX && now - self.since < IDLE_INTERVAL_MIN * IDLE_CALLS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ever_busy(pause: Duration) -> bool {
        let mut idle = Idle::default();
        let mut now = Instant::from_millis(5);
        (0..1000).any(|_| {
            now += pause;
            idle.count(now);
            idle.is_busy(now)
        })
    }

    #[test]
    fn many_calls_are_a_busy_loop_only_at_short_intervals() {
        assert!(is_ever_busy(Duration::ZERO));
        assert!(is_ever_busy(Duration::from_micros(10)));
        assert!(!is_ever_busy(Duration::from_millis(1)));
    }
}
