//! Timers that do nothing, again and again: what a busy loop is.

use hikyaku_units::Instant;
use std::time::Duration;

/// So many calls in a row for nothing are a busy loop if they come at less than [`IDLE_GRAIN`] in the mean: pacing
/// and timers have grains, and of packets that went one by one each is judged lost by itself.
const MOST_IDLE_CALLS: u32 = 40;
const IDLE_GRAIN: Duration = Duration::from_micros(50);

/// Calls in a row after which nobody sent anything.
#[derive(Default)]
pub(crate) struct Idle {
    calls: u32,
    since: Instant,
}

impl Idle {
    /// Counts a call.
    pub(crate) fn count(&mut self, now: Instant) {
        if self.calls == 0 || self.calls > MOST_IDLE_CALLS {
            *self = Self { calls: 0, since: now };
        }
        self.calls += 1;
    }

    /// Whether they come too often.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        self.calls > MOST_IDLE_CALLS && now - self.since < IDLE_GRAIN * MOST_IDLE_CALLS
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
    fn many_calls_are_busy_only_when_they_are_close() {
        assert!(is_ever_busy(Duration::ZERO));
        assert!(is_ever_busy(Duration::from_micros(10)));
        assert!(!is_ever_busy(Duration::from_millis(1)));
    }
}
