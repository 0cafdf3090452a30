//! How much may be under way to one server, and how fast it takes it.

use std::time::Duration;

/// What is under way to a server. Time is that since the begin of the transfer.
///
/// As much may be under way as the server takes in two round trips and a second. So a slow disk holds little in the
/// server's memory and takes no files that others could have, and a fast path is full.
#[derive(Clone, Debug)]
pub struct Flow {
    round_trip: Duration,
    outstanding: u64,
    window: u64,
    /// Bytes and seconds of all measurements that count. Earlier ones count less.
    bytes: f64,
    seconds: f64,
    /// The last measurements in a row that were above the average.
    growths: u32,
    pace: Pace,
    /// Whether there was a time without work in the present measurement.
    was_idle: bool,
    /// When the present measurement began, and what was answered since.
    since: Duration,
    answered: u64,
    /// Since when nothing is under way, if nothing is.
    idle_since: Duration,
}

/// What may be under way at least: with it a path of 1 Gbit/s and 60 ms is full from the start, and the window of a longer
/// one grows by a factor of several each round trip.
const WINDOW_BYTES_MIN: u64 = 8 << 20;
/// Minimum of the bytes under way to a server whose rate is settled. If another server takes a file over, the bytes of
/// this file that are under way delay the next file.
const WINDOW_BYTES_SETTLED_MIN: u64 = 2 << 20;
/// A rate is measured over this time at least, and over a round trip.
const MEASURED: Duration = Duration::from_millis(250);
/// A measurement that is older than a present one by this time counts e times less. A lost packet delays all bytes
/// behind it by a round trip or more, and then they arrive at once: one measurement is far below the rate, and the next
/// one far above it.
const REMEMBERED: Duration = Duration::from_secs(4);
/// At its begin a connection doubles its rate in each round trip. Earlier measurements do not count after two
/// measurements in a row that are above the average by the first factor, or after one measurement that is above it by
/// the second factor.
const GROWTH_FACTOR: f64 = 1.25;
const LEAP_FACTOR: f64 = 2.5;
/// A rate is settled when the measurements that count cover this number of seconds, and three round trips.
const SETTLED_SECONDS: f64 = 0.75;
/// What may be under way beside what the path holds.
const AHEAD: Duration = Duration::from_secs(1);

/// Whether the rate of a server can be compared with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// It is not known, or still grows: the connection has just begun, or the server has got small files only.
    Rising,
    /// It was measured for some time without growing much.
    Settled,
}

impl Flow {
    /// Nothing is under way to a server of this round-trip time.
    pub const fn new(round_trip: Duration, now: Duration) -> Self {
        Self {
            round_trip,
            outstanding: 0,
            window: WINDOW_BYTES_MIN,
            bytes: 0.0,
            seconds: 0.0,
            growths: 0,
            pace: Pace::Rising,
            was_idle: false,
            since: now,
            answered: 0,
            idle_since: now,
        }
    }

    /// Whether more may be sent.
    pub const fn has_room(&self) -> bool {
        self.outstanding < self.window
    }

    /// Bytes were sent.
    pub fn sent(&mut self, bytes: u64, now: Duration) {
        if self.outstanding == 0 {
            // The time without work is not counted.
            self.was_idle = true;
            self.since += now.saturating_sub(self.idle_since);
        }
        self.outstanding += bytes;
    }

    /// The server has answered for bytes.
    pub fn answered(&mut self, bytes: u64, now: Duration) {
        self.outstanding = self.outstanding.saturating_sub(bytes);
        self.answered += bytes;
        if self.outstanding == 0 {
            self.idle_since = now;
        }
        let time = now.saturating_sub(self.since);
        if time < MEASURED.max(self.round_trip) {
            return;
        }
        let rate = self.answered as f64 / time.as_secs_f64();
        let is_busy = self.outstanding > 0 && !std::mem::take(&mut self.was_idle);
        let growth = self.average().map_or(f64::INFINITY, |average| rate / average.max(1.0));
        self.growths = if growth > GROWTH_FACTOR { self.growths + 1 } else { 0 };
        if self.pace == Pace::Rising && (self.growths > 1 || growth > LEAP_FACTOR) {
            (self.bytes, self.seconds) = (0.0, 0.0);
        }
        (self.bytes, self.seconds) = self.counted(time);
        if is_busy && self.seconds >= SETTLED_SECONDS.max(3.0 * self.round_trip.as_secs_f64()) {
            self.pace = Pace::Settled;
        }
        self.since = now;
        self.answered = 0;
        let rate = rate.max(self.bytes / self.seconds);
        let window = rate * (2 * self.round_trip + AHEAD).as_secs_f64();
        let least = match self.pace {
            Pace::Rising => WINDOW_BYTES_MIN,
            Pace::Settled => WINDOW_BYTES_SETTLED_MIN,
        };
        self.window = least.max(window as u64);
    }

    /// Bytes a second of what counts, if there was a measurement.
    fn average(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes / self.seconds)
    }

    /// The bytes and seconds of all measurements, with those of the present one, which has lasted for `time`.
    fn counted(&self, time: Duration) -> (f64, f64) {
        let share = (-time.as_secs_f64() / REMEMBERED.as_secs_f64()).exp();
        let (bytes, seconds) = (self.bytes * share, self.seconds * share);
        (bytes + self.answered as f64, seconds + time.as_secs_f64())
    }

    /// Whether the rate can be compared with those of other servers.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Bytes a second, if it was measured. A server that is silent has less with time.
    pub fn rate(&self, now: Duration) -> Option<f64> {
        let silent = now.saturating_sub(self.since);
        let known = self.average();
        if self.outstanding == 0 || silent < MEASURED.max(self.round_trip) {
            return known;
        }
        let (bytes, seconds) = self.counted(silent);
        let present = bytes / seconds;
        match known {
            Some(known) => Some(known.min(present)),
            None => (silent >= 2 * MEASURED.max(self.round_trip)).then_some(present),
        }
    }
}

#[cfg(test)]
mod tests;
