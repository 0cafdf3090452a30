//! The search finds the largest size of a path and recovers from an MTU black hole.

use super::*;

fn search(path: u16, route: u16) -> MtuSearch {
    let mut mtu = MtuSearch::new(route);
    let now = Instant::from_millis(1);
    while let Some(size) = mtu.poll(now) {
        if size <= path { mtu.on_arrived(now, size) } else { mtu.on_lost(now, size) }
    }
    mtu
}

// spec: mtu-1
#[test]
fn the_search_finds_the_largest_probe_size_that_the_path_carries() {
    assert_eq!(search(1472, 1472).current(), 1472);
    assert_eq!(search(8972, 8972).current(), 8972);
    assert_eq!(search(1472, 8972).current(), 1472);
    assert_eq!(search(1300, 1472).current(), 1252);
    assert_eq!(search(1210, 1472).current(), BASE_DATAGRAM_BYTES);
}

// spec: mtu-2
#[test]
fn after_a_black_hole_the_search_starts_again_from_the_base_size() {
    let mut mtu = search(1472, 1472);
    let round_trip = Duration::from_millis(100);
    let now = Instant::from_millis(1000);
    assert!(!mtu.on_full_packets(now, 0, 50, round_trip));
    assert!(!mtu.on_full_packets(now, 1, 50, round_trip), "one arrival: no hole");
    assert!(!mtu.on_full_packets(now, 0, 64, round_trip), "an overflowing queue looks like this");
    let now = Instant::from_millis(1200);
    assert!(mtu.on_full_packets(now, 0, 1, round_trip));
    assert_eq!(mtu.current(), BASE_DATAGRAM_BYTES);
    while let Some(size) = mtu.poll(now) {
        if size <= 1252 { mtu.on_arrived(now, size) } else { mtu.on_lost(now, size) }
    }
    assert_eq!(mtu.current(), 1252);
}

#[test]
fn one_refusal_by_the_socket_lowers_the_probe_size() {
    let mut mtu = MtuSearch::new(8972);
    let now = Instant::from_millis(1);
    assert_eq!(mtu.poll(now), Some(8972));
    mtu.on_too_big(now, 8972);
    assert_eq!(mtu.poll(now), Some(8952));
}
