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
    /// Bytes a second, once it is known.
    rate: Option<f64>,
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
/// A rate is measured over this time at least, and over a round trip.
const MEASURED: Duration = Duration::from_millis(250);
/// A rate is settled when a measurement during which bytes were always under way is not above the one before by more than
/// this factor. A connection doubles its rate in each round trip at its begin.
const SETTLED_FACTOR: f64 = 1.25;
/// What may be under way beside what the path holds.
const AHEAD: Duration = Duration::from_secs(1);

/// Whether the rate of a server can be compared with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// It is not known, or still grows: the connection has just begun, or the server has got small files only.
    Rising,
    /// It has been measured several times without growing much.
    Settled,
}

impl Flow {
    /// Nothing is under way to a server of this round-trip time.
    pub const fn new(round_trip: Duration, now: Duration) -> Self {
        Self {
            round_trip,
            outstanding: 0,
            window: WINDOW_BYTES_MIN,
            rate: None,
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
        if is_busy && self.rate.is_some_and(|before| rate <= before * SETTLED_FACTOR) {
            self.pace = Pace::Settled;
        }
        self.rate = Some(rate);
        self.since = now;
        self.answered = 0;
        let window = rate * (2 * self.round_trip + AHEAD).as_secs_f64();
        self.window = WINDOW_BYTES_MIN.max(window as u64);
    }

    /// Whether the rate can be compared with those of other servers.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Bytes a second, if it was measured. A server that is silent has less with time.
    pub fn rate(&self, now: Duration) -> Option<f64> {
        let silent = now.saturating_sub(self.since);
        if self.outstanding == 0 || silent < 2 * MEASURED.max(self.round_trip) {
            return self.rate;
        }
        let present = self.answered as f64 / silent.as_secs_f64();
        Some(self.rate.map_or(present, |rate| rate.min(present)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(200);

    /// Sends all that may be sent to a server that takes `rate` bytes a second, for some seconds.
    fn run(rate: u64, seconds: u64) -> Flow {
        let mut flow = Flow::new(RTT, Duration::ZERO);
        // What was sent is answered a round trip later, and not faster than the server writes.
        let step = Duration::from_millis(10);
        let mut under_way = std::collections::VecDeque::new();
        let mut now = Duration::ZERO;
        let mut budget = 0;
        while now < Duration::from_secs(seconds) {
            while flow.has_room() {
                flow.sent(256 << 10, now);
                under_way.push_back(now + RTT);
            }
            budget = (budget + rate / 100).min(rate);
            while budget >= 256 << 10 && under_way.front().is_some_and(|due| *due <= now) {
                under_way.pop_front();
                budget -= 256 << 10;
                flow.answered(256 << 10, now);
            }
            now += step;
        }
        flow
    }

    #[test]
    fn a_fast_path_gets_a_window_that_fills_it() {
        let rate = 1_000_000_000;
        let flow = run(rate, 5);
        assert!(flow.window as f64 > rate as f64 * 0.9 * 1.4, "{flow:?}");
    }

    #[test]
    fn a_slow_server_holds_little() {
        let flow = run(4_000_000, 20);
        assert_eq!(flow.window, WINDOW_BYTES_MIN);
        let rate = flow.rate.unwrap();
        assert!((3e6..5e6).contains(&rate), "{rate}");
    }

    #[test]
    fn a_silent_server_slows_down() {
        let mut flow = run(50_000_000, 5);
        flow.sent(1 << 20, Duration::from_secs(5));
        assert!(flow.rate(Duration::from_secs(5)).unwrap() > 4e7);
        assert!(flow.rate(Duration::from_secs(15)).unwrap() < 1e7);
    }
}
