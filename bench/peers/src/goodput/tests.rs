//! Bytes fall into the interval in which they came.

use super::*;

#[test]
fn bytes_fall_into_their_interval() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut goodput = Goodput::new(start);
    for (ms, bytes) in [(0, 1), (199, 2), (200, 4), (650, 8)] {
        goodput.add(at(ms), bytes);
    }
    let report = goodput.report(at(700), None);
    let bytes: Vec<u64> = report.intervals.iter().map(|interval| interval.bytes).collect();
    assert_eq!(bytes, [3, 4, 0, 8]);
    assert_eq!((report.bytes, report.seconds), (15, 0.7));
    assert!((report.intervals[3].end - 0.7).abs() < 1e-9);
}
