//! Limits of the rate of payload.
//!
//! A [`Pace`] is one limit. All that move bytes under it keep it together: each piece of payload gets the next free time slot of
//! its length, and waits for the start of that slot.

use hikyaku_units::{DataSize, Rate};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Payload that follows an idle time may pass at once, as far as it would have passed in this time.
const BURST_TIME: Duration = Duration::from_millis(50);
/// A slot that cannot be reached, as at rate zero, begins after this time.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// The time of one piece.
const PIECE_TIME: Duration = Duration::from_millis(100);
/// A piece is not smaller, however low the rate is.
const PIECE_BYTES_MIN: usize = 4 << 10;
/// A thread that waits looks this often whether nothing is wanted any more.
const LOOK: Duration = Duration::from_millis(100);

/// A limit of the rate of payload, which one or several connections keep together.
#[derive(Debug)]
pub struct Pace {
    rate: Rate,
    slots: Mutex<Slots>,
}

impl Pace {
    /// A limit of `rate`.
    pub fn new(rate: Rate) -> Self {
        Self { rate, slots: Mutex::default() }
    }

    /// The limit.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Reserves the next time slot, for `bytes`. Returns its start; the caller waits until then before it moves them.
    pub fn reserve(&self, now: Instant, bytes: usize) -> Instant {
        self.slots().reserve(now, self.rate, bytes)
    }

    /// Reserves a slot for `bytes` and waits until its end, or until `is_over` holds. The slot of one piece may last a second.
    pub fn wait(&self, bytes: u64, is_over: impl Fn() -> bool) {
        let now = Instant::now();
        let due = {
            let mut slots = self.slots();
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            slots.reserve(now, self.rate, bytes);
            slots.end.unwrap_or(now)
        };
        while !is_over() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// When the next slot would start.
    pub fn next(&self, now: Instant) -> Instant {
        self.slots().next(now)
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A limit that may not be set: those who move bytes together wait for their time, if it is.
#[derive(Debug)]
pub struct Limit(Option<Pace>);

impl Limit {
    /// A limit of `rate`; none without a rate.
    pub fn new(rate: Option<Rate>) -> Self {
        Self(rate.map(Pace::new))
    }

    /// Whether bytes may be moved now, without a wait.
    pub fn is_open(&self) -> bool {
        let now = Instant::now();
        self.0.as_ref().is_none_or(|pace| pace.next(now) <= now)
    }

    /// The bytes to move at once, at most `most`: those of 100 ms, so that a slow transfer advances evenly.
    pub fn piece_bytes(&self, most: usize) -> usize {
        let Some(pace) = &self.0 else { return most };
        let bytes = usize::try_from(pace.rate.in_time(PIECE_TIME).bytes()).unwrap_or(usize::MAX);
        most.min(bytes.max(PIECE_BYTES_MIN))
    }

    /// Waits until the slot of `bytes` begins, or `is_over` holds.
    pub fn wait(&self, bytes: u64, is_over: impl Fn() -> bool) {
        if let Some(pace) = &self.0 {
            pace.wait(bytes, is_over);
        }
    }
}

/// The time slots of a limit. Pure: the time is an argument.
#[derive(Debug, Default)]
struct Slots {
    /// The end of the last slot that was given.
    end: Option<Instant>,
}

impl Slots {
    fn next(&self, now: Instant) -> Instant {
        let earliest = now.checked_sub(BURST_TIME).unwrap_or(now);
        self.end.map_or(now, |end| end.max(earliest))
    }

    /// Reserves the next slot, for `bytes`. Returns its start.
    fn reserve(&mut self, now: Instant, rate: Rate, bytes: usize) -> Instant {
        let start = self.next(now);
        let length = rate.time_for(DataSize::from_bytes(bytes as u64));
        self.end = Some(start.checked_add(length.min(NEVER)).unwrap_or(start));
        start
    }
}

#[cfg(test)]
mod tests;
