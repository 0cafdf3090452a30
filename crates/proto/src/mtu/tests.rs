//! The search finds the path's size and leaves a black hole.

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
fn finds_the_largest_candidate() {
    assert_eq!(search(1472, 1472).current(), 1472);
    assert_eq!(search(8972, 8972).current(), 8972);
    assert_eq!(search(1472, 8972).current(), 1472);
    assert_eq!(search(1300, 1472).current(), 1252);
    assert_eq!(search(1210, 1472).current(), BASE);
}

// spec: mtu-2
#[test]
fn a_black_hole_is_left_and_climbed_out_of() {
    let mut mtu = search(1472, 1472);
    let round_trip = Duration::from_millis(100);
    let now = Instant::from_millis(1000);
    assert!(!mtu.on_full_packets(now, 0, 50, round_trip));
    assert!(!mtu.on_full_packets(now, 1, 50, round_trip), "one arrival: no hole");
    assert!(!mtu.on_full_packets(now, 0, 64, round_trip), "an overflowing queue looks like this");
    let now = Instant::from_millis(1200);
    assert!(mtu.on_full_packets(now, 0, 1, round_trip));
    assert_eq!(mtu.current(), BASE);
    while let Some(size) = mtu.poll(now) {
        if size <= 1252 { mtu.on_arrived(now, size) } else { mtu.on_lost(now, size) }
    }
    assert_eq!(mtu.current(), 1252);
}

#[test]
fn a_refusal_by_the_socket_counts_at_once() {
    let mut mtu = MtuSearch::new(8972);
    let now = Instant::from_millis(1);
    assert_eq!(mtu.poll(now), Some(8972));
    mtu.on_too_big(now, 8972);
    assert_eq!(mtu.poll(now), Some(8952));
}
