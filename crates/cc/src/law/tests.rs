//! The law settles at its target queue from above and below, for short and long paths.

use super::*;
use alloc::vec::Vec;

/// A round without a queue and without loss.
fn calm(rate: f64, base_rtt: f64) -> Round {
    Round {
        queue: 0.0,
        peak: 0.0,
        latest: 0.0,
        lasted: base_rtt,
        rate,
        known_rate: 0.0,
        largest_rate: 0.0,
        base_rtt,
        jitter: 0.0,
        ambient_loss: 0.0,
        excess_loss: 0.0,
        window_was_used: true,
    }
}

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
            ..calm(capacity.min(law.window() / base_rtt), base_rtt)
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
fn growth_gathers_speed_where_the_target_is_a_good_part_of_the_round_trip() {
    // 1.2 Mbit/s and 100 ms: the target of 15 ms is left out of what is paced while it does not stand.
    let (base_rtt, rate) = (0.1, 150e3);
    let mut law = Law::new(rate * base_rtt);
    for _ in 0..20 {
        let target = law.target(law.window() / base_rtt, 0.0, base_rtt);
        law.on_round(&calm(law.window() / (base_rtt + (1.0 - DAMPING) * target), base_rtt));
    }
    let times = law.window() / (rate * base_rtt);
    assert!(times > 3.0, "{times} times in twenty rounds");
}

#[test]
fn who_waits_lets_others_grow_first() {
    let mut law = Law::new(1e6);
    law.wait(3);
    let grown = (0..6).map(|_| {
        law.on_round(&calm(1e7, 0.1));
        law.window() > 1e6
    });
    assert_eq!(grown.collect::<Vec<_>>(), [false, false, false, true, true, true]);
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut law = Law::new(1e6);
    for _ in 0..100 {
        law.on_round(&Round { window_was_used: false, ..calm(1e6, 0.1) });
    }
    assert_eq!(law.window(), 1e6);
}

#[test]
fn no_step_is_taken_before_the_last_one_is_answered() {
    let mut law = Law::new(1e6);
    let mut windows = Vec::new();
    for _ in 0..6 {
        law.on_round(&calm(1e7, 0.1));
        windows.push(law.window());
    }
    let grew: Vec<bool> = windows.windows(2).map(|pair| pair[1] > pair[0]).collect();
    assert_eq!(grew, [false, true, false, true, false]);
}

fn round(window: f64, delivered: f64) -> Round {
    let base_rtt = 0.15;
    calm(delivered * window / base_rtt, base_rtt)
}

/// How far a window gets in twenty rounds of which this share arrives.
fn grown(delivered: f64) -> f64 {
    let mut law = Law::new(100e6);
    for _ in 0..20 {
        law.on_round(&round(law.window(), delivered));
    }
    law.window() / 100e6
}

#[test]
fn steps_become_larger_only_while_they_are_answered() {
    assert!(grown(0.99) > 2.0, "{}", grown(0.99));
    // A busy host sends a tenth less than it may: more than it may do is no remedy.
    assert!(grown(0.9) < 1.05, "{}", grown(0.9));
}

#[test]
fn no_step_is_a_leap() {
    let mut law = Law::new(100e6);
    for _ in 0..20 {
        let before = law.window();
        law.on_round(&round(before, 1.0));
        assert!(law.window() <= 1.26 * before, "{before} -> {}", law.window());
    }
}

#[test]
fn one_slow_round_with_an_overflow_does_not_halve_the_window() {
    let mut law = Law::new(100e6);
    let slow = Round { queue: 0.003, peak: 0.004, excess_loss: 0.05, ..round(100e6, 0.4) };
    law.on_round(&slow);
    assert!((0.69..0.71).contains(&(law.window() / 100e6)), "{}", law.window());
}

#[test]
fn a_window_that_came_from_nowhere_does_not_stay() {
    let mut law = Law::new(50.0 * 12.5e6 * 0.1);
    law.limit(&Round {
        queue: 0.01,
        peak: 0.01,
        latest: 0.01,
        lasted: 0.1,
        rate: 12.5e6,
        known_rate: 0.0,
        largest_rate: 12.5e6,
        base_rtt: 0.1,
        jitter: 0.0,
        ambient_loss: 0.1,
        excess_loss: 0.0,
        window_was_used: true,
    });
    let fills = 12.5e6 * 0.11 / 0.9;
    assert!((law.window() / fills - 1.5).abs() < 1e-9, "{}", law.window() / fills);
}

#[test]
fn a_queue_that_stands_without_loss_is_borne() {
    let mut law = Law::new(100_000.0);
    let rate = 12.5e6;
    // Who came late took most of the queue for the base delay, and saw it overflow at a millisecond.
    law.on_overflow(0.001, rate, 0.020);
    assert!(law.target(rate, 0.0, 0.020) < 0.002);
    law.on_round(&Round { queue: 0.006, base_rtt: 0.020, ..round(100_000.0, 1.0) });
    assert!(law.target(rate, 0.0, 0.020) > 0.004);
}
