//! Halves of made-up counters.

use super::*;
use hikyaku_lab::{HostReport, RelayReport};

fn reading(seconds: f64, segments: u64, overflowed: u64, queue_ms_seconds: f64) -> Report {
    let direction =
        DirectionReport { segments, overflowed, queue_ms_seconds, ..DirectionReport::default() };
    Report {
        lab: String::new(),
        seconds,
        valid: true,
        problems: Vec::new(),
        up: direction.clone(),
        down: direction,
        servers: Vec::new(),
        relay: RelayReport {
            writes: 0,
            late_p50_us: 0.0,
            late_p99_us: 0.0,
            late_max_us: 0.0,
            cpu_seconds: 0.0,
            device_drops: 0,
            refused: 0,
            memory_drops: 0,
            stray: 0,
        },
        host: HostReport {
            profile: String::new(),
            congestion_control: String::new(),
            rmem_max: None,
            wmem_max: None,
        },
    }
}

#[test]
fn the_second_half_is_told_from_the_start() {
    let counters = Counters::new(vec![
        reading(0.0, 0, 0, 0.0),
        reading(4.0, 8_000, 2_000, 100.0),
        reading(6.0, 12_000, 2_000, 110.0),
        reading(12.0, 22_000, 2_010, 160.0),
    ])
    .unwrap();
    // A transfer of 10 s that began at 1 s: its half is at 6 s and its end at 11 s.
    let queue = counters.queue(&Link::gigabit(24.0, 0.0), 1.0, 10.0);
    assert!((queue.mean_ms - (160.0 - 110.0) * 5.0 / 6.0 / 5.0).abs() < 1e-9);
    assert!((queue.overflow_percent - 0.1).abs() < 1e-9);
    // 2,000 packets of 1,500 bytes are the 3 MB that are under way at 24 ms.
    assert!((queue.startup_bdp - 1.0).abs() < 1e-9);
}

#[test]
fn what_was_not_read_is_as_at_the_nearest_reading() {
    let counters = Counters::new(vec![reading(1.0, 10, 0, 0.0), reading(2.0, 30, 0, 0.0)]).unwrap();
    let segments = |at| counters.at(at, |up| up.segments as f64);
    assert_eq!([segments(0.5), segments(1.5), segments(9.0)], [10.0, 20.0, 30.0]);
    assert!(Counters::new(Vec::new()).is_err());
}
