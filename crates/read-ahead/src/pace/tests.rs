//! Windows of paths of several rates.

use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn the_window_fills_the_path() {
    let mut pace = Pace::default();
    pace.set_round_trip(Duration::from_millis(200));
    let window = pace.window();
    assert_eq!(window.bytes, 75_000_000 + 17 * SEGMENT_BYTES);
    assert_eq!(window.portion, 4 * SEGMENT_BYTES);
    // Two gigabits a second arrive.
    pace.handle_outstanding(true, at(0));
    (1..=1000).for_each(|millis| pace.handle_arrived(250_000, at(millis)));
    assert!(pace.window().bytes > 60_000_000, "{:?}", pace.window());
}

#[test]
fn time_without_a_request_is_not_measured_and_a_slow_path_shrinks_the_window() {
    let mut pace = Pace::default();
    pace.handle_outstanding(true, at(0));
    pace.handle_arrived(1, at(1));
    pace.handle_outstanding(false, at(1));
    pace.handle_outstanding(true, at(60_000));
    pace.handle_arrived(1, at(60_001));
    assert_eq!(pace.rate(), BEGIN);
    (0..3000).for_each(|n| pace.handle_arrived(125_000, at(60_002 + n * 100)));
    let rate = pace.rate().bits_per_sec();
    assert!((9_000_000..12_000_000).contains(&rate), "{rate}");
}
