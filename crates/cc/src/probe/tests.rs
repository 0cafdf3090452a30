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
        has_room: true,
        sent: 0,
        arrived: 1.0,
        ambient: 0.0,
        is_doubted: false,
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
fn the_paths_own_loss_is_looked_into_at_once_and_again_and_again() {
    let lossy = |ms| Look { base: Some((at(ms), 0)), ambient: 0.01, ..calm(ms) };
    let mut probe = Probe::new(at(0));
    probe.on_round(&lossy(100));
    assert!(probe.is_idle(), "start-up has shown it");
    probe.on_round(&Look { is_doubted: true, ..lossy(100) });
    assert!(probe.is_draining());
    assert_eq!(probe.window(100.0, 0.0), 75.0, "a quarter less");
    // Few packets were sent meanwhile, so it goes on.
    probe.on_round(&Look { sent: 199, ..lossy(200) });
    assert!(probe.is_draining());
    probe.on_round(&Look { sent: 200, ..lossy(300) });
    assert!(probe.is_after_less());
    assert_eq!(probe.window(100.0, 0.0), 75.0, "until it is known what is lost");
    probe.on_round(&lossy(400));
    assert!(probe.is_idle());

    probe.on_round(&lossy(7000));
    assert!(probe.is_idle());
    probe.on_round(&lossy(7200));
    assert!(probe.is_draining());
    probe.on_round(&Look { sent: 200, ..lossy(7300) });
    assert_eq!(probe.window(100.0, 0.0), 100.0, "it was known before");
}

// spec: rate-2
#[test]
fn on_long_paths_loss_is_looked_into_every_thirty_round_trips() {
    let long = |ms| Look { base: Some((at(ms), 0)), round_trip: 0.5, ambient: 0.01, ..calm(ms) };
    let mut probe = Probe::new(at(0));
    probe.on_round(&long(14_900));
    assert!(probe.is_idle());
    probe.on_round(&long(15_100));
    assert!(probe.is_draining());
}

// spec: rate-2
#[test]
fn no_more_is_sent_than_what_arrived() {
    let mut probe = Probe::new(at(0));
    let half = Look {
        base: Some((at(100), 0)),
        arrived: 0.5,
        ambient: 0.4,
        is_doubted: true,
        ..calm(100)
    };
    probe.on_round(&half);
    assert!(probe.is_gentle() && probe.is_draining());
    assert_eq!(probe.window(100.0, 0.0), 47.5);
    // Where a queue stands, it is emptied at once.
    let mut probe = Probe::new(at(0));
    probe.on_round(&Look { has_room: false, ..half });
    assert!(!probe.is_gentle());
    assert_eq!(probe.window(100.0, 10.0), 47.5);
}

// spec: rate-2
#[test]
fn loss_of_much_is_looked_into_without_waiting_whether_it_lasts() {
    let mut probe = Probe::new(at(0));
    let much = Look { base: Some((at(100), 0)), excess: Some(0.3), ..calm(100) };
    probe.on_round(&Look { has_room: false, ..much });
    assert!(probe.is_idle(), "a queue overflowed");
    let mut probe = Probe::new(at(0));
    probe.on_round(&much);
    assert!(probe.is_draining());
}
