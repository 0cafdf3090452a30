//! What a link can carry.

use super::*;

#[test]
fn full_use_is_what_the_rules_say() {
    assert_eq!(Link::gigabit(200.0, 0.0).eff().round(), 928_500_000.0);
    assert_eq!(Link::gigabit(200.0, 0.1).eff().round(), 835_650_000.0);
    let jumbo = Link { rate: 1e10, rtt_ms: 150.0, loss: 0.01, mtu: 9000 };
    assert_eq!(jumbo.eff().round(), 9_781_200_000.0);
}

#[test]
fn queues_are_a_quarter_and_at_most_five_megabytes() {
    assert_eq!(Link::gigabit(20.0, 0.0).full_queue_ms().unwrap(), 5.0);
    assert_eq!(Link::gigabit(200.0, 0.0).full_queue_ms().unwrap(), 40.0);
    assert_eq!(Link::gigabit(500.0, 0.0).bdp(), 62.5e6);
}

#[test]
fn a_path_is_what_was_asked_for() {
    let path = Link { mtu: 9000, ..Link::gigabit(150.0, 0.001) }.path().unwrap();
    assert_eq!(path.rtt(), std::time::Duration::from_millis(150));
    assert_eq!(path.up.mtu, Some(9000));
    assert_eq!(path.up.rate.map(|rate| rate.bits_per_sec()), Some(1_000_000_000));
    assert!(super::path(&[("speed", "9")]).is_err());
}
