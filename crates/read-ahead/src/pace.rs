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
    /// The minimum of a request, in whole segments, except at the end of a file.
    pub portion: u64,
}

/// The rate of a path until a higher one is measured: requests that turn out to be unneeded can be cancelled.
const BEGIN: Rate = Rate::from_bits_per_sec(1_000_000_000);
/// A window is at least what arrives in this time: a short path has its delays in the two ends.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(10);
/// An interval of measurement is at least this long.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Round trips of the path that requested and unread bytes cover: one for bytes in flight, one for a packet that is lost
/// and retransmitted, and one for a packet that is lost twice. A reader in order waits for the oldest bytes, and requests
/// nothing while it waits.
const ROUND_TRIPS: f64 = 3.0;
/// Portions of a window.
const PORTIONS: u64 = 16;
/// Portions that a server sends concurrently: the first of them is complete only when the others nearly are.
const PORTIONS_AT_ONCE: u64 = 4;
/// The largest portion.
const PORTION_BYTES_MAX: u64 = 16 << 20;
/// Factor of the rate after each interval with a lower measured rate.
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

    /// The round-trip time of the last call of [`Self::set_round_trip`], or the minimum.
    pub const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// The estimated rate of the path.
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
