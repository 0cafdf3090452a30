//! The law settles at its target queue from above and below, for short and long paths.

use super::*;
use alloc::vec::Vec;

/// A bottleneck in fluid form: one round of the law against a capacity.
fn settle(base_rtt: f64, capacity: f64, start: f64) -> (f64, f64) {
    let mut law = Law::new(start * capacity * base_rtt);
    let mut queue = 0.0;
    for _ in 0..300 {
        let in_pipe = capacity * base_rtt;
        queue = (law.window() - in_pipe).max(0.0) / capacity;
        law.on_round(&Round {
            queue,
            peak: queue,
            latest: queue,
            lasted: base_rtt,
            rate: capacity.min(law.window() / base_rtt),
            known_rate: 0.0,
            base_rtt,
            jitter: 0.0,
            ambient_loss: 0.0,
            excess_loss: 0.0,
            window_was_used: true,
        });
    }
    (queue, law.window() / (capacity * base_rtt))
}

#[test]
fn it_settles_at_the_target_queue() {
    for base_rtt in [0.02, 0.2, 0.5] {
        for capacity in [12.5e6, 125e6, 1250e6] {
            for start in [0.5, 0.95, 1.3] {
                let (queue, fill) = settle(base_rtt, capacity, start);
                let target = target_queue(capacity, 0.0, base_rtt);
                assert!(
                    (queue / target - 1.0).abs() < 0.1,
                    "{base_rtt} {capacity} {start}: {queue}"
                );
                assert!(fill >= 1.0);
            }
        }
    }
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut law = Law::new(1e6);
    for _ in 0..100 {
        law.on_round(&Round {
            queue: 0.0,
            peak: 0.0,
            latest: 0.0,
            lasted: 0.1,
            rate: 1e6,
            known_rate: 0.0,
            base_rtt: 0.1,
            jitter: 0.0,
            ambient_loss: 0.0,
            excess_loss: 0.0,
            window_was_used: false,
        });
    }
    assert_eq!(law.window(), 1e6);
}

#[test]
fn no_step_is_taken_before_the_last_one_is_answered() {
    let mut law = Law::new(1e6);
    let mut windows = Vec::new();
    for _ in 0..6 {
        law.on_round(&Round {
            queue: 0.0,
            peak: 0.0,
            latest: 0.0,
            lasted: 0.1,
            rate: 1e7,
            known_rate: 0.0,
            base_rtt: 0.1,
            jitter: 0.0,
            ambient_loss: 0.0,
            excess_loss: 0.0,
            window_was_used: true,
        });
        windows.push(law.window());
    }
    let grew: Vec<bool> = windows.windows(2).map(|pair| pair[1] > pair[0]).collect();
    assert_eq!(grew, [false, true, false, true, false]);
}
