//! The minimum forgets, quantiles ignore outliers.

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
fn the_window_can_change() {
    let mut min = WindowedMin::new(Duration::from_secs(8));
    min.update(Instant::from_millis(0), 5);
    min.remember_for(Duration::from_secs(80));
    for ms in (1000..40_000).step_by(500) {
        min.update(Instant::from_millis(ms), 9);
    }
    assert_eq!(min.get().map(|(_, v)| v), Some(5), "not forgotten");
    min.remember_for(Duration::from_secs(8));
    min.update(Instant::from_millis(40_000), 9);
    assert_eq!(min.get().map(|(_, v)| v), Some(9), "forgotten at once");
}

#[test]
fn quantiles() {
    assert_eq!(quantile(&mut [], 0.5), None);
    assert_eq!(quantile(&mut [9.0, 1.0, 1000.0], 0.5), Some(9.0));
    assert_eq!(quantile(&mut [9.0, 1.0, 1000.0], 0.1), Some(1.0));
}
