//! How much must be under way to fill the path.

use core::time::Duration;
use hikyaku_units::{DataSize, Instant, Rate};

use crate::SEGMENT_BYTES;

#[cfg(test)]
mod tests;

/// The rate at which bytes arrive while some are asked for.
///
/// Call [`handle_outstanding`](Self::handle_outstanding) when the first byte is asked for and when none is any more, and
/// [`handle_arrived`](Self::handle_arrived) for each arrival.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Rate,
    round_trip: Duration,
    /// The interval that is being measured, if something has been asked for during all of it.
    measured: Option<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    since: Instant,
    bytes: u64,
}

/// How much a reader may have under way, and in what portions it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Bytes.
    pub bytes: u64,
    /// The least that is asked for at once, in whole segments, except at the end of a file.
    pub portion: u64,
}

/// A path is taken for one of this rate until more arrives: what is asked for and not wanted can be taken back.
const BEGIN: Rate = Rate::from_bits_per_sec(1_000_000_000);
/// A window is at least what arrives in this time: a short path has its delays in the two ends.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(10);
/// An interval of measurement is at least this long.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// So many round trips of the path are under way or unread: one for what is in flight, one for a packet that is lost and
/// sent again, and one for a packet that is lost twice. A reader in order waits for the oldest of them, and while it waits
/// nothing more is asked for.
const ROUND_TRIPS: f64 = 3.0;
/// The part of the window that is asked for at once.
const PORTIONS: u64 = 16;
/// A server sends so many portions at once, so that the first of them is complete only when the others nearly are.
const PORTIONS_AT_ONCE: u64 = 4;
/// The largest portion.
const PORTION_BYTES_MAX: u64 = 16 << 20;
/// What remains of the rate after each interval in which less arrived.
const DECAY: f64 = 0.99;

impl Default for Pace {
    fn default() -> Self {
        Self { rate: BEGIN, round_trip: ROUND_TRIP_MIN, measured: None }
    }
}

impl Pace {
    /// The round-trip time of the path.
    pub fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip.max(ROUND_TRIP_MIN);
    }

    /// The round-trip time that it was told last.
    pub const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// The rate that the path is taken for.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether something is asked for and has not arrived.
    pub fn handle_outstanding(&mut self, is_outstanding: bool, now: Instant) {
        match is_outstanding {
            false => self.measured = None,
            true => drop(self.measured.get_or_insert(Measured { since: now, bytes: 0 })),
        }
    }

    /// Bytes have arrived.
    pub fn handle_arrived(&mut self, bytes: u64, now: Instant) {
        let interval = self.round_trip.max(INTERVAL_MIN);
        let Some(measured) = &mut self.measured else { return };
        measured.bytes += bytes;
        let time = now.since(measured.since);
        if time < interval {
            return;
        }
        let found = Rate::of(DataSize::from_bytes(measured.bytes), time);
        self.rate = found.max(self.rate.scaled(DECAY));
        self.measured = Some(Measured { since: now, bytes: 0 });
    }

    /// The window of a reader that reads as fast as the path.
    pub fn window(&self) -> Window {
        let under_way = self.rate.scaled(ROUND_TRIPS).in_time(self.round_trip).bytes();
        let portion = (under_way / PORTIONS).clamp(SEGMENT_BYTES, PORTION_BYTES_MAX);
        let portion = portion / SEGMENT_BYTES * SEGMENT_BYTES;
        Window { bytes: under_way + SEGMENT_BYTES + PORTIONS_AT_ONCE * portion, portion }
    }
}
