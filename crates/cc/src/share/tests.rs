//! What a flow is due.

use super::*;

#[test]
fn who_has_more_than_is_due_gives_and_who_has_less_takes() {
    // Two flows with 900 and 100 Mbit/s, of which each would hold 1.5 ms alone at 1 Gbit/s.
    let target = |rate: f64| 0.0015 / rate.sqrt();
    let mut rates = [0.9, 0.1];
    for _ in 0..6 {
        let queue = rates[0] * target(rates[0]) + rates[1] * target(rates[1]);
        rates = rates.map(|rate| rate * even(target(rate), queue, 0.04).factor);
        let sum = rates[0] + rates[1];
        assert!(sum < 1.12, "no more than the queue bears: {sum}");
        // The law sees to the sum.
        rates = rates.map(|rate| rate / sum);
    }
    assert!(rates[1] / rates[0] > 0.4, "half a minute: {rates:?}");
}

#[test]
fn what_is_even_enough_is_left_alone() {
    assert_eq!(even(0.004, 0.0041, 0.2).factor, 1.0);
    assert_eq!(even(0.004, 0.0039, 0.2).factor, 1.0);
    assert!(even(0.004, 0.0045, 0.2).factor < 1.0);
    assert!(even(0.005, 0.004, 0.2).factor > 1.0);
    assert!(even(0.0001, 0.015, 0.2).factor >= LEAST);
    // Twice what is due, at once: only as much as is heard of in time.
    assert!((even(0.015, 0.0001, 0.2).factor - 1.05).abs() < 1e-6);
    assert!((even(0.015, 0.0001, 0.02).factor - MOST).abs() < 1e-6);
}

#[test]
fn a_base_that_was_wrong_makes_the_queue_longer() {
    let mut share = Share::default();
    share.on_base(Some(5_000_000));
    share.on_round(2.0, 0.001, 1e6);
    assert_eq!(share.seen(), Some(Seen { queue: 0.001, rate: 1e6 }));
    share.on_base(Some(2_000_000));
    assert_eq!(share.seen(), Some(Seen { queue: 0.004, rate: 1e6 }));
    share.restart();
    assert_eq!(share.seen(), None);
}
