//! The limit of the rate of a transfer, judged by the waits of its threads.

use hikyaku_store::Latency;
use hikyaku_transfer::LimitedBy;
use hikyaku_units::Rate;
use std::time::{Duration, Instant};

/// The threads are judged by this time at least.
const SPAN: Duration = Duration::from_millis(500);
/// Share of a limit that the user has set. A transfer above it is limited by nothing else.
const REACHED: f64 = 0.9;

/// Sums since the begin of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Waits {
    /// Bytes that have come, or were sent.
    pub(crate) bytes: u64,
    /// Time that threads have waited for bytes of the source.
    pub(crate) reading: Duration,
    /// Time that threads have waited for the target.
    pub(crate) writing: Duration,
}

/// The ends of a transfer, seen from this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ends {
    pub(crate) source: Latency,
    pub(crate) target: Latency,
}

/// The cause of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    ForSource,
    ForTarget,
}

/// Judges a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gauge {
    ends: Ends,
    limit: Option<Rate>,
    since: Instant,
    before: Waits,
}

impl Gauge {
    /// Judges a transfer that begins now and has this limit.
    pub(crate) fn new(ends: Ends, limit: Option<Rate>) -> Self {
        Self { ends, limit, since: Instant::now(), before: Waits::default() }
    }

    /// The limit since the last judgement; `None` if it is too early for one, or there was no wait.
    pub(crate) fn look(&mut self, now: Instant, waits: Waits) -> Option<LimitedBy> {
        let span = now.saturating_duration_since(self.since);
        if span < SPAN {
            return None;
        }
        let before = std::mem::replace(&mut self.before, waits);
        self.since = now;
        let bytes = waits.bytes.saturating_sub(before.bytes) as f64 / span.as_secs_f64();
        let reading = waits.reading.saturating_sub(before.reading);
        let writing = waits.writing.saturating_sub(before.writing);
        if self.limit.is_some_and(|limit| bytes >= REACHED * limit.bytes_per_sec()) {
            return Some(LimitedBy::Limit);
        }
        let longer = if reading > writing { Wait::ForSource } else { Wait::ForTarget };
        (!reading.max(writing).is_zero()).then(|| self.ends.behind(longer))
    }
}

impl Ends {
    /// Those of a transfer from these servers.
    pub(crate) fn of(mut servers: impl Iterator<Item = Latency>, target: Latency) -> Self {
        let is_far = servers.any(|latency| latency == Latency::RoundTrip);
        Self { source: if is_far { Latency::RoundTrip } else { Latency::Local }, target }
    }

    /// The limit that a wait shows. Where only one end is on this machine, a wait for the other end is one for the network path.
    const fn behind(self, wait: Wait) -> LimitedBy {
        match (wait, self.source, self.target) {
            (Wait::ForSource, Latency::RoundTrip, Latency::Local)
            | (Wait::ForTarget, Latency::Local, Latency::RoundTrip) => LimitedBy::Link,
            (Wait::ForSource, ..) => LimitedBy::Source,
            (Wait::ForTarget, ..) => LimitedBy::Target,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_store::Latency::{Local, RoundTrip};

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_longer_wait_limits_unless_the_user_does() {
        for (source, target, reading, writing, bytes, wanted) in [
            (RoundTrip, Local, 900, 100, 1000, Some(LimitedBy::Link)),
            (RoundTrip, Local, 100, 900, 1000, Some(LimitedBy::Target)),
            (Local, RoundTrip, 900, 100, 1000, Some(LimitedBy::Source)),
            (Local, RoundTrip, 100, 900, 1000, Some(LimitedBy::Link)),
            (Local, Local, 900, 100, 1000, Some(LimitedBy::Source)),
            (Local, Local, 100, 900, 1000, Some(LimitedBy::Target)),
            (RoundTrip, RoundTrip, 900, 100, 1000, Some(LimitedBy::Source)),
            (RoundTrip, RoundTrip, 100, 900, 1000, Some(LimitedBy::Target)),
            (RoundTrip, Local, 900, 100, 95_000, Some(LimitedBy::Limit)),
            (RoundTrip, Local, 0, 0, 0, None),
        ] {
            let limit = Some(Rate::from_bits_per_sec(800_000));
            let mut gauge = Gauge::new(Ends { source, target }, limit);
            let (begin, before) = (gauge.since, Waits { bytes: 7, reading: MS, writing: MS });
            gauge.before = before;
            let waits = Waits {
                bytes: 7 + bytes,
                reading: MS * (1 + reading),
                writing: MS * (1 + writing),
            };
            assert_eq!(gauge.look(begin + MS, waits), None, "too early");
            assert_eq!(gauge.look(begin + 1000 * MS, waits), wanted, "{source:?} {target:?}");
            // The next judgement is about the time since then.
            assert_eq!(gauge.look(begin + 2000 * MS, waits), None);
        }
    }
}
