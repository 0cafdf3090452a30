//! A path is looked into when there is a reason, and not oftener.

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(100_000 + ms)
}

fn calm(ms: u64) -> Look {
    Look {
        now: at(ms),
        base: Some((at(0), 0)),
        queue: 0.001,
        round_trip: 0.1,
        ambient: 0.0,
        excess: Some(0.0),
    }
}

#[test]
fn a_base_that_hides_is_looked_for_and_what_is_sent_then_listened_to() {
    let mut probe = Probe::new(at(0));
    probe.on_round(&calm(6900));
    assert!(!probe.is_draining());
    probe.on_round(&calm(7100));
    assert!(probe.is_draining());
    assert_eq!(probe.window(100.0, 10.0), 90.0, "the queue, and no more");
    probe.on_round(&calm(7200));
    assert!(!probe.is_draining() && !probe.is_idle());
    assert_eq!(probe.window(100.0, 10.0), 100.0);
}

#[test]
fn a_base_that_was_wrong_is_looked_for_deeper() {
    let mut probe = Probe::new(at(0));
    probe.on_round(&calm(100));
    probe.on_round(&Look { base: Some((at(200), -2_000_000)), ..calm(200) });
    probe.on_round(&Look { base: Some((at(200), -2_000_000)), ..calm(7300) });
    assert_eq!(probe.window(100.0, 10.0), 75.0);
}

// spec: rate-2
#[test]
fn loss_that_survives_a_cut_is_looked_into() {
    let mut probe = Probe::new(at(0));
    let lossy = |ms, excess| Look { base: Some((at(ms), 0)), excess, ..calm(ms) };
    probe.on_round(&lossy(100, Some(0.02)));
    probe.on_round(&lossy(200, None));
    assert!(!probe.is_draining());
    probe.on_round(&lossy(300, Some(0.02)));
    assert!(probe.is_draining());
}

// spec: rate-2
#[test]
fn the_paths_own_loss_is_looked_into_again_and_again() {
    let mut probe = Probe::new(at(0));
    let lossy = |ms| Look { base: Some((at(ms), 0)), ambient: 0.01, ..calm(ms) };
    probe.on_round(&lossy(6900));
    assert!(!probe.is_draining());
    probe.on_round(&lossy(7100));
    assert!(probe.is_draining());
    assert_eq!(probe.window(100.0, 0.0), 75.0, "a quarter less");
    // Thirty round trips of half a second are longer than seven seconds.
    let mut probe = Probe::new(at(0));
    let long = |ms| Look { round_trip: 0.5, ..lossy(ms) };
    probe.on_round(&long(14_900));
    assert!(!probe.is_draining());
    probe.on_round(&long(15_100));
    assert!(probe.is_draining());
}
