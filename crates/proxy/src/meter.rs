//! What has passed in one direction of a flow, and what that direction has waited for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Both directions of a flow at one gateway.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    /// From the socket to the stream.
    pub(crate) outgoing: Meter,
    /// From the stream to the socket.
    pub(crate) incoming: Meter,
}

/// One direction. The task that moves its bytes writes it, and others read it at any time.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    bytes: AtomicU64,
    waits: Mutex<Waits>,
}

/// What a direction waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Bytes.
    Source,
    /// Room for bytes that it has.
    Sink,
}

#[derive(Debug, Default)]
struct Waits {
    on: Option<(Wait, Instant)>,
    source: Duration,
    sink: Duration,
}

/// What a direction has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reading {
    /// Bytes that have passed.
    pub(crate) bytes: u64,
    /// How long it has waited for bytes.
    pub(crate) source: Duration,
    /// How long it has waited for room.
    pub(crate) sink: Duration,
}

impl Meter {
    /// Bytes have passed.
    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes that have passed so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// From `now` on the direction waits for this, or for nothing.
    pub(crate) fn wait(&self, on: Option<Wait>, now: Instant) {
        let mut waits = self.waits();
        let (source, sink) = waits.until(now);
        *waits = Waits { on: on.map(|wait| (wait, now)), source, sink };
    }

    /// What the direction has done until `now`.
    pub(crate) fn read(&self, now: Instant) -> Reading {
        let (source, sink) = self.waits().until(now);
        Reading { bytes: self.bytes(), source, sink }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meters {
    /// Bytes that have passed in both directions.
    pub(crate) fn bytes(&self) -> u64 {
        self.outgoing.bytes() + self.incoming.bytes()
    }
}

impl Waits {
    fn until(&self, now: Instant) -> (Duration, Duration) {
        let of = |wanted, before| match self.on {
            Some((on, since)) if on == wanted => before + now.saturating_duration_since(since),
            _ => before,
        };
        (of(Wait::Source, self.source), of(Wait::Sink, self.sink))
    }
}

impl Reading {
    /// What has happened since an earlier reading.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            source: self.source.saturating_sub(before.source),
            sink: self.sink.saturating_sub(before.sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_while_it_lasts_and_after_it() {
        let (meter, begin) = (Meter::default(), Instant::now());
        let at = |millis| begin + Duration::from_millis(millis);
        let times = |millis| {
            let reading = meter.read(at(millis));
            (reading.source.as_millis(), reading.sink.as_millis())
        };
        assert_eq!(times(5), (0, 0));
        meter.wait(Some(Wait::Source), at(10));
        assert_eq!(times(25), (15, 0));
        meter.wait(Some(Wait::Sink), at(30));
        meter.wait(None, at(70));
        assert_eq!(times(100), (20, 40));
        meter.wait(Some(Wait::Sink), at(100));
        let before = meter.read(at(101));
        meter.add(7);
        let since = meter.read(at(104)).since(&before);
        assert_eq!(since, Reading { bytes: 7, sink: Duration::from_millis(3), ..since });
    }
}
