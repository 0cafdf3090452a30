//! The receive window of one stream. It follows the rate at which the application reads the stream,
//! or equals the connection's window.

use core::time::Duration;
use hikyaku_units::Instant;

/// Minimum of a window that shrinks, so that a stream whose reader resumes is not slow.
const WINDOW_BYTES_MIN: u64 = 256 << 10;
/// If half of the window is read within this many round trips, the window limits the sender and
/// doubles.
const FAST_ROUND_TRIPS: u32 = 4;
/// If it takes more than this many round trips, the window is at least four times what this reader
/// needs and is halved.
const SLOW_ROUND_TRIPS: u32 = 16;
/// Minimum round-trip time for this measurement. On shorter paths scheduling on the host determines
/// when the application reads.
const MEASURED_ROUND_TRIP_MIN: Duration = Duration::from_millis(10);

/// How a stream's window grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Growth {
    /// It equals the connection's window. This is right where one application reads all streams, so
    /// that none needs protection from the others.
    WithConnection,
    /// It grows with the rate at which the stream is read.
    Earned,
}

/// The receive window of one stream.
///
/// A window that grows by being read ([`Growth::Earned`]) is between eight and sixteen times the
/// reading rate times the round-trip time. Ordered delivery on a path with loss needs 3.25 to 7
/// times that, and the bytes behind a retransmission are read in bursts.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    growth: Growth,
    bytes: u64,
    limit: u64,
    read: u64,
    /// When the measurement of the present half window began, and the bytes read by then.
    half: Option<(Instant, u64)>,
}

impl Window {
    /// A window of `first` bytes, as announced to the peer.
    pub(crate) const fn new(first: u64, growth: Growth) -> Self {
        Self { growth, bytes: first, limit: first, read: 0, half: None }
    }

    /// The limit that was last announced to the peer, as an offset.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// How far the limit may be ahead of the reader.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that the application has read.
    pub(crate) const fn read(&self) -> u64 {
        self.read
    }

    /// Records that the application read `bytes`. Returns the new limit if it has grown enough to
    /// be announced, with a window of at most `most`.
    pub(crate) fn on_read(
        &mut self,
        (now, rtt): (Instant, Duration),
        bytes: u64,
        most: u64,
    ) -> Option<u64> {
        self.read += bytes;
        match self.growth {
            Growth::WithConnection => self.bytes = most,
            Growth::Earned => self.earn((now, rtt), bytes, most),
        }
        self.widen(most)
    }

    /// Records that the connection's window is `most`. Returns the new limit if it has grown enough
    /// to be announced.
    pub(crate) fn on_wider(&mut self, most: u64) -> Option<u64> {
        if self.growth == Growth::Earned {
            return None;
        }
        self.bytes = most;
        self.widen(most)
    }

    fn widen(&mut self, most: u64) -> Option<u64> {
        let window = self.bytes.min(most);
        let limit = self.read + window;
        (limit >= self.limit + window / 8 && limit > self.limit).then(|| {
            self.limit = limit;
            limit
        })
    }

    fn earn(&mut self, (now, rtt): (Instant, Duration), bytes: u64, most: u64) {
        let (began, from) = *self.half.get_or_insert((now, self.read - bytes));
        if self.read - from >= self.bytes / 2 {
            let (took, rtt) = (now - began, rtt.max(MEASURED_ROUND_TRIP_MIN));
            if took <= rtt * FAST_ROUND_TRIPS {
                self.bytes = self.bytes.saturating_mul(2).min(most.max(self.bytes));
            } else if took > rtt * SLOW_ROUND_TRIPS {
                self.bytes = (self.bytes / 2).max(WINDOW_BYTES_MIN.min(self.bytes));
            }
            self.half = Some((now, self.read));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const MOST: u64 = 512 << 20;

    /// The window after two hundred reads of `bytes` each, at intervals of `apart`.
    fn after(window: &mut Window, bytes: u64, apart: Duration) -> u64 {
        let mut now = Instant::from_millis(1000);
        for _ in 0..200 {
            now += apart;
            window.on_read((now, RTT), bytes, MOST);
        }
        window.bytes
    }

    #[test]
    fn a_window_follows_the_rate_at_which_it_is_read() {
        // 1 MB a round trip, then 10 MB.
        let mut window = Window::new(1 << 20, Growth::Earned);
        let slow = after(&mut window, 100_000, RTT / 10);
        assert!((8_000_000..16_800_000).contains(&slow), "{slow}");
        let fast = after(&mut window, 1_000_000, RTT / 10);
        assert!((80_000_000..168_000_000).contains(&fast), "{fast}");
    }

    #[test]
    fn the_window_shrinks_for_a_slow_reader_and_stays_for_one_that_stops() {
        let mut window = Window::new(4 << 20, Growth::Earned);
        let bytes = after(&mut window, 50_000, RTT);
        assert!(bytes <= 2 << 20, "{bytes}");
        let limit = window.limit();
        assert_eq!(window.on_read((Instant::from_millis(90_000), RTT), 0, MOST), None);
        assert_eq!(window.limit(), limit);
    }

    #[test]
    fn a_lower_maximum_does_not_reduce_an_announced_limit() {
        let mut window = Window::new(1 << 20, Growth::Earned);
        let now = (Instant::from_millis(1), RTT);
        assert_eq!(window.on_read(now, 1000, 64 << 10), None);
        assert_eq!(window.limit(), 1 << 20);
        assert_eq!(window.on_read(now, (1 << 20) - 1000, 64 << 10), Some((1 << 20) + (64 << 10)));
    }

    #[test]
    fn a_window_equal_to_the_connections_grows_at_once_and_never_reduces_a_limit() {
        let mut window = Window::new(1 << 20, Growth::WithConnection);
        let now = (Instant::from_millis(1), RTT);
        assert_eq!(window.on_read(now, 1000, 8 << 20), Some((8 << 20) + 1000));
        assert_eq!(window.on_read(now, 1000, 64 << 10), None);
        assert_eq!(window.limit(), (8 << 20) + 1000);
        let read = 8 << 20;
        assert_eq!(window.on_read(now, read, 64 << 10), Some(read + 2000 + (64 << 10)));
        assert_eq!(window.on_wider(16 << 20), Some(read + 2000 + (16 << 20)), "without being read");
        let mut earned = Window::new(1 << 20, Growth::Earned);
        assert_eq!(earned.on_wider(16 << 20), None);
    }
}
