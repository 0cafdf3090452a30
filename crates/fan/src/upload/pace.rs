//! One rate for all servers together.

use hikyaku_units::Rate;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Delays senders so that all of them together keep a rate.
pub(crate) struct Pace {
    rate: Option<Rate>,
    /// When the next bytes may go.
    next: Mutex<Instant>,
}

/// Time that was not used is made up for up to this.
const BURST: Duration = Duration::from_millis(100);
/// It is looked this often whether nothing is wanted any more.
const LOOK: Duration = Duration::from_millis(100);

impl Pace {
    pub(crate) fn new(rate: Option<Rate>) -> Self {
        Self { rate, next: Mutex::new(Instant::now()) }
    }

    /// Waits until this many bytes may be sent, or `is_over` holds.
    pub(crate) fn wait(&self, bytes: u64, is_over: impl Fn() -> bool) {
        let Some(rate) = self.rate else { return };
        let due = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            due(&mut next, Instant::now(), bytes, rate)
        };
        while !is_over() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(LOOK));
        }
    }
}

/// When these bytes may be sent: when their time is over, since a piece may be as long as a second. `next` is when the time of
/// the ones after them begins.
fn due(next: &mut Instant, now: Instant, bytes: u64, rate: Rate) -> Instant {
    let begin = (*next).max(now.checked_sub(BURST).unwrap_or(*next));
    *next = begin + Duration::from_secs_f64(bytes as f64 / rate.bytes_per_sec().max(1.0));
    *next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_due_at_the_rate_and_a_pause_is_not_made_up_for() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let (mut next, rate) = (begin, Rate::from_bits_per_sec(8_000_000));
        for n in 0..5 {
            assert_eq!(due(&mut next, begin, 1_000_000, rate), begin + (n + 1) * second);
        }
        let late = begin + 60 * second;
        assert_eq!(due(&mut next, late, 1_000_000, rate), late - BURST + second);
        assert_eq!(due(&mut next, late, 1_000_000, rate), late - BURST + 2 * second);
    }
}
