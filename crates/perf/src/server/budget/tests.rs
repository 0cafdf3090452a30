//! Tests of the budget: who gets a place, and which test is ended for it.

use super::*;
use crate::args::{Competitors, Stalls};

const RULES: Rules = Rules {
    competitors: Competitors::Allowed,
    stalls: Stalls::Refused,
    tests: 4,
    time: None,
    rate: None,
    memory: Some(DataSize::from_bytes(1 << 30)),
};

fn places(threads: Option<usize>) -> Arc<Places> {
    Arc::new(Places::new(Budget { threads, ..Budget::new(&RULES) }))
}

fn host(last: u8) -> Host {
    Host::of(Ipv4Addr::new(192, 0, 2, last).into())
}

fn one() -> Needs {
    Needs::of(&Plan::default())
}

#[test]
fn a_returned_place_can_be_taken_again() {
    let places = places(None);
    let now = Instant::now();
    let take = || places.take(host(1), one(), now);
    let mut all: Vec<Place> = (0..4).filter_map(|_| take().ok()).collect();
    assert_eq!(all.len(), 4);
    let (reason, lasts) = take().err().unwrap();
    assert!(reason.contains("busy with 4 tests"), "{reason}");
    assert_eq!(lasts, RefusalKind::ForNow);
    all.pop();
    assert!(take().is_ok());
}

#[test]
fn threads_and_connections_are_limited_as_well_as_tests() {
    let places = places(Some(8));
    let now = Instant::now();
    let held: Vec<_> = (0..4).filter_map(|_| places.take(host(1), one(), now).ok()).collect();
    assert_eq!(held.len(), 2, "three threads each");
    let many = Plan { streams: 7, ..Plan::default() };
    let (reason, lasts) = places.take(host(1), Needs::of(&many), now).err().unwrap();
    assert!(reason.contains("8 threads") && reason.contains("needs 9"), "{reason}");
    assert_eq!(lasts, RefusalKind::Always);
}

#[test]
fn only_an_idle_test_loses_its_place() {
    let places = places(None);
    let begin = Instant::now();
    let all: Vec<_> = (0..4).filter_map(|_| places.take(host(1), one(), begin).ok()).collect();
    let moves = |id: u64, bytes, after: u64| {
        let at = begin + Duration::from_millis(after);
        if let Some(test) = places.held().get_mut(&id) {
            test.moved = Moved { bytes, at };
        }
    };
    // The second test has moved nothing, the third has been idle for long, the others make
    // progress.
    moves(all[0].id, 9, 2900);
    moves(all[2].id, 9, 100);
    moves(all[3].id, 9, 2900);
    let at = |after| begin + Duration::from_millis(after);
    assert!(places.take(host(1), one(), at(1900)).is_err());
    let second = places.take(host(1), one(), at(3000)).expect("the second yields");
    assert!(!places.held().contains_key(&all[1].id));
    assert!(places.take(host(1), one(), at(3000)).is_err(), "an outage is no reason");
    moves(second.id, 9, 5000);
    assert!(places.take(host(1), one(), at(5200)).is_ok(), "a long one is");
    assert!(!places.held().contains_key(&all[2].id));
}

#[test]
fn a_host_with_most_places_loses_one_to_a_host_without_any() {
    let places = places(None);
    let now = Instant::now();
    let greedy: Vec<_> = (0..4).filter_map(|_| places.take(host(1), one(), now).ok()).collect();
    let first = places.take(host(2), one(), now).expect("the youngest of the others yields");
    assert!(!places.held().contains_key(&greedy[3].id));
    assert!(places.take(host(2), one(), now).is_err(), "it has one");
    let second = places.take(host(3), one(), now).expect("three of four are too many");
    assert!(places.take(host(4), one(), now).is_err(), "half is not");
    drop((first, second));
    // Dropping the place of an ended test must not return somebody else's resources.
    drop(greedy);
    assert!(places.held().is_empty());
}

#[test]
fn addresses_of_one_ipv6_64_prefix_are_one_host() {
    let of = |text: &str| Host::of(text.parse().unwrap());
    assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:192.0.2.1"), host(1));
}
