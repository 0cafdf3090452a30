//! The limit of a copy's rate, as its sender measures it.

use hikyaku_reach::{Held, Seen as Carrier};
use hikyaku_transfer::LimitedBy;
use hikyaku_units::Rate;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time for which the threads that send large files have waited, in microseconds.
#[derive(Default)]
pub(crate) struct Waits {
    source: AtomicU64,
    transport: AtomicU64,
}

/// The cause of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum For {
    /// Bytes to be sent.
    Source,
    /// Room in the transport.
    Transport,
}

impl Waits {
    /// Does `work`, which waits for `what`.
    pub(crate) fn during<T>(&self, what: For, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = work();
        let of = match what {
            For::Source => &self.source,
            For::Transport => &self.transport,
        };
        let micros = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        of.fetch_add(micros, Ordering::Relaxed);
        done
    }

    fn look(&self) -> (u64, u64) {
        (self.source.load(Ordering::Relaxed), self.transport.load(Ordering::Relaxed))
    }
}

/// Looks now and then.
pub(crate) struct Gauge {
    at: Instant,
    sent: u64,
    payload: u64,
    waits: (u64, u64),
}

/// Share of the rate that the rate control allows. A sender above it is limited by nothing else.
const FULL: f64 = 0.8;
/// Of a limit that the user has set.
const REACHED: f64 = 0.93;

/// Measurements of an interval, in bytes per second.
struct Seen {
    held: Held,
    sent: f64,
    payload: f64,
    limit: Option<f64>,
    /// Which of the two waits was longer.
    longer: For,
}

impl Gauge {
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), sent: 0, payload: 0, waits: (0, 0) }
    }

    /// The limit since the last call.
    pub(crate) fn look(
        &mut self,
        carrier: &Carrier,
        limit: Option<Rate>,
        waits: &Waits,
    ) -> LimitedBy {
        let (now, waited) = (Instant::now(), waits.look());
        let seconds = now.duration_since(self.at).max(Duration::from_millis(1)).as_secs_f64();
        let (sent, payload) = (carrier.sent, carrier.sent_payload);
        let seen = Seen {
            held: carrier.held,
            sent: sent.saturating_sub(self.sent) as f64 / seconds,
            payload: payload.saturating_sub(self.payload) as f64 / seconds,
            limit: limit.map(Rate::bytes_per_sec),
            longer: match waited.0 - self.waits.0 > waited.1 - self.waits.1 {
                true => For::Source,
                false => For::Transport,
            },
        };
        *self = Self { at: now, sent, payload, waits: waited };
        seen.verdict()
    }
}

impl Seen {
    fn verdict(&self) -> LimitedBy {
        if self.limit.is_some_and(|limit| self.payload >= REACHED * limit) {
            LimitedBy::Limit
        } else {
            match (self.held, self.longer) {
                (Held::Starting, _) => LimitedBy::Starting,
                (Held::ByRate(allowed), _) if self.sent >= FULL * allowed => LimitedBy::Link,
                (_, For::Source) => LimitedBy::Source,
                (Held::ByPipe { is_held_by_peer: false }, For::Transport) => LimitedBy::Link,
                (_, For::Transport) => LimitedBy::Target,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_is_named() {
        let seen = |sent: f64, limit, longer| Seen {
            held: Held::ByRate(100.0),
            sent,
            payload: sent * 0.95,
            limit,
            longer,
        };
        assert_eq!(seen(95.0, None, For::Source).verdict(), LimitedBy::Link);
        assert_eq!(seen(50.0, Some(50.0), For::Transport).verdict(), LimitedBy::Limit);
        assert_eq!(seen(50.0, Some(90.0), For::Source).verdict(), LimitedBy::Source);
        assert_eq!(seen(50.0, None, For::Transport).verdict(), LimitedBy::Target);
        let starting = Seen { held: Held::Starting, ..seen(50.0, None, For::Source) };
        assert_eq!(starting.verdict(), LimitedBy::Starting);
        let pipe = |is_held_by_peer, longer| Seen {
            held: Held::ByPipe { is_held_by_peer },
            ..seen(50.0, None, longer)
        };
        assert_eq!(pipe(false, For::Source).verdict(), LimitedBy::Source);
        assert_eq!(pipe(false, For::Transport).verdict(), LimitedBy::Link);
        assert_eq!(pipe(true, For::Transport).verdict(), LimitedBy::Target);
    }

    #[test]
    fn waits_add_up_by_what_is_waited_for() {
        let waits = Waits::default();
        waits.during(For::Source, || std::thread::sleep(Duration::from_millis(2)));
        assert_eq!(waits.during(For::Transport, || 7), 7);
        assert!(waits.look().0 >= 2000);
    }
}
