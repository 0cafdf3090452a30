//! The driver's clock: monotonic nanoseconds, and the kernel's arrival times on the same scale.

use hikyaku_units::Instant;
use std::time::{Duration, SystemTime};

/// Reads the time.
pub(crate) struct Clock {
    start: std::time::Instant,
    /// Calendar nanoseconds at [`Instant::ZERO`].
    offset: u64,
    offset_read: Instant,
}

/// Time begins here, so that "a second ago" exists.
const BEGIN: Duration = Duration::from_secs(1);
/// The calendar clock is steered while it runs, by at most 500 ppm: 50 us in this time.
const OFFSET_AGE: Duration = Duration::from_millis(100);
/// Three looks at clocks take less than a tenth of a microsecond each.
const CLOSE: Duration = Duration::from_micros(20);
const READINGS: u32 = 3;
/// A datagram that waited longer than this in a socket would have been dropped for want of room.
const MAX_WAIT: Duration = Duration::from_secs(2);

impl Clock {
    /// A clock that began at this time. The drivers of one port share it, because each checks the tokens of the others.
    pub(crate) fn since(start: std::time::Instant) -> Self {
        let mut clock = Self { start, offset: 0, offset_read: Instant::ZERO };
        clock.read_offset(clock.now());
        clock
    }

    /// The time.
    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + BEGIN + self.start.elapsed()
    }

    /// Nanoseconds of the calendar at [`Instant::ZERO`].
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The time, once a turn: the offset of the calendar is read again when it is old.
    pub(crate) fn tick(&mut self) -> Instant {
        let now = self.now();
        if now - self.offset_read > OFFSET_AGE {
            self.read_offset(now);
        }
        now
    }

    /// Reads both clocks, one of them before and after the other. A pause of the thread in between must not
    /// count as an offset: every arrival would seem too early by that time, and a sender remembers the
    /// smallest delay. So the reading with the shortest interval counts, and none if all are long.
    fn read_offset(&mut self, now: Instant) {
        self.offset_read = now;
        let readings = (0..READINGS).map(|_| {
            let before = self.now();
            let calendar =
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let gap = self.now() - before;
            let middle = before + gap / 2;
            (gap, (calendar.as_nanos() as u64).saturating_sub(middle.as_nanos()))
        });
        let closest = readings.min_by_key(|(gap, _)| *gap);
        if let Some((gap, offset)) = closest
            && (gap < CLOSE || self.offset == 0)
        {
            self.offset = offset;
        }
    }

    /// When a datagram arrived, by the kernel's stamp if that is plausible: the calendar clock
    /// may have been set.
    pub(crate) fn arrival(&self, now: Instant, stamp: Option<u64>) -> Instant {
        let Some(nanos) = stamp.and_then(|stamp| stamp.checked_sub(self.offset)) else {
            return now;
        };
        let arrived = Instant::from_nanos(nanos);
        if arrived > now || now - arrived > MAX_WAIT { now } else { arrived }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_become_times_of_this_clock_unless_they_are_absurd() {
        let clock = Clock::since(std::time::Instant::now());
        let now = clock.now();
        let stamp = |at: Instant| Some(at.as_nanos() + clock.offset);
        let earlier = now.before(Duration::from_millis(3));
        assert_eq!(clock.arrival(now, stamp(earlier)), earlier);
        for absurd in [None, Some(0), Some(u64::MAX), stamp(now + Duration::from_secs(1))] {
            assert_eq!(clock.arrival(now, absurd), now, "{absurd:?}");
        }
    }
}
