//! What a flow is due.

use super::*;

#[test]
fn who_has_more_than_is_due_gives_and_who_has_less_takes() {
    // Two flows with 900 and 100 Mbit/s, of which each would hold 1.5 ms alone at 1 Gbit/s.
    let target = |rate: f64| 0.0015 / rate.sqrt();
    let mut rates = [0.9, 0.1];
    for _ in 0..6 {
        let queue = rates[0] * target(rates[0]) + rates[1] * target(rates[1]);
        rates = rates.map(|rate| rate * even(target(rate), queue, 0.04, Company::None).factor);
        let sum = rates[0] + rates[1];
        assert!(sum < 1.12, "no more than the queue bears: {sum}");
        // The law sees to the sum.
        rates = rates.map(|rate| rate / sum);
    }
    assert!(rates[1] / rates[0] > 0.4, "half a minute: {rates:?}");
}

#[test]
fn who_comes_last_to_many_gives_more_than_a_tenth_at_a_time() {
    // Over 200 ms, where who has less takes a twentieth at a time at the most: a tenth given each time left three times
    // what the others had.
    let target = |rate: f64| 0.0015 / rate.sqrt();
    let mut rates = [0.7 / 15.0; 16];
    rates[15] = 0.3;
    for _ in 0..6 {
        let queue: f64 = rates.iter().map(|&rate| rate * target(rate)).sum();
        rates = rates.map(|rate| rate * even(target(rate), queue, 0.2, Company::Others).factor);
        let sum: f64 = rates.iter().sum();
        rates = rates.map(|rate| rate / sum);
    }
    assert!(rates[15] < 2.2 * rates[0], "{rates:?}");
}

#[test]
fn what_is_even_enough_is_left_alone() {
    assert_eq!(even(0.004, 0.0041, 0.2, Company::None).factor, 1.0);
    assert_eq!(even(0.004, 0.0039, 0.2, Company::None).factor, 1.0);
    assert!(even(0.004, 0.0045, 0.2, Company::None).factor < 1.0);
    assert!(even(0.005, 0.004, 0.2, Company::None).factor > 1.0);
    // Only beside others for sure, and not for a queue half as long again as even rates would make it.
    assert!(even(0.0001, 0.015, 0.2, Company::None).factor >= LEAST);
    assert!(even(0.004, 0.006, 0.2, Company::Others).factor >= LEAST);
    assert!(even(0.001, 0.002, 0.2, Company::Others).factor < 0.8 * LEAST);
    // A queue that others make while they begin is not gone by alone.
    assert!(even(0.004, 0.015, 0.2, Company::Others).factor > 0.6);
    // Far more is due, at once: only as much as is heard of in time, or twice that for who has little.
    assert!((even(0.005, 0.004, 0.2, Company::None).factor - 1.0 - 0.05 * 1.5625).abs() < 1e-6);
    assert!((even(0.015, 0.0001, 0.2, Company::None).factor - 1.1).abs() < 1e-6);
    assert!((even(0.015, 0.0001, 0.02, Company::None).factor - MOST).abs() < 1e-6);
}

#[test]
fn others_are_there_if_what_was_given_is_gone() {
    let mut share = Share::default();
    let mut told = |rate: f64| {
        share.on_round(2.0, 0.004, rate);
        let due = share.even(0.001, 0.004, 0.2);
        share.restart();
        due.factor
    };
    assert_eq!(told(1e6), LEAST);
    assert_eq!(told(1e6), LEAST, "who is alone has it back");
    assert!(told(9e5) < 0.8 * LEAST);
    assert_eq!(told(9e5), LEAST, "the others are gone");
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
