//! The minimum forgets, the median ignores outliers.

use super::*;

#[test]
fn the_minimum_is_forgotten_after_the_window() {
    let mut min = WindowedMin::new(Duration::from_secs(8));
    min.update(Instant::from_millis(0), 5);
    for ms in (1000..7000).step_by(500) {
        min.update(Instant::from_millis(ms), 9);
        assert_eq!(min.get().map(|(_, v)| v), Some(5));
    }
    for ms in (7000..20_000).step_by(500) {
        min.update(Instant::from_millis(ms), 9);
    }
    assert_eq!(min.get().map(|(_, v)| v), Some(9));
    min.shift(100);
    assert_eq!(min.get().map(|(_, v)| v), Some(109));
}

#[test]
fn medians() {
    assert_eq!(median(&mut []), None);
    assert_eq!(median(&mut [9.0, 1.0, 1000.0]), Some(9.0));
}
