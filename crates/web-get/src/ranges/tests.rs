//! Tests of the board.
#![allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]

use super::*;
use hikyaku_transfer::missing;

const MIB: u64 = 1 << 20;

fn whole(bytes: u64) -> Board {
    Board::new(missing(0..bytes, &[]), Vec::new())
}

/// Writes so many bytes of a lease. Returns how many it took.
fn write(board: &mut Board, id: LeaseId, bytes: u64, now: Instant) -> u64 {
    let (_, taken) = board.reserve(id, bytes);
    board.wrote(id, now);
    taken
}

#[test]
fn every_byte_is_handed_out_once() {
    let (mut board, now) = (whole(100), Instant::now());
    let (a, first) = board.take(30, 0, now).unwrap();
    let (b, second) = board.take(100, 1, now).unwrap();
    assert_eq!((first, second), (0..30, 30..100));
    assert!(board.take(1, 0, now).is_none());
    assert_eq!(board.left(), 100);
    assert_eq!(write(&mut board, a, 40, now), 30);
    assert_eq!(write(&mut board, b, 10, now), 10);
    assert!(board.end(a));
    assert!(!board.end(b));
    assert_eq!(board.left(), 60);
    assert_eq!(board.take(100, 0, now).unwrap().1, 40..100);
    let there = board.there();
    assert_eq!(there.len(), 2, "{there:?}");
    assert_eq!((there[0].range.clone(), there[1].range.clone()), (0..30, 30..40));
}

#[test]
fn the_end_of_the_slowest_lease_is_taken_over() {
    let (mut board, begin) = (whole(20 * MIB), Instant::now());
    let now = begin + Duration::from_secs(2);
    let (fast, _) = board.take(10 * MIB, 0, begin).unwrap();
    let (slow, _) = board.take(10 * MIB, 0, begin).unwrap();
    write(&mut board, fast, 8 * MIB, now);
    write(&mut board, slow, 2 * MIB, now);
    let (thief, range) = board.steal(1, now).unwrap();
    assert_eq!(range, 16 * MIB..20 * MIB);
    // What is left of the slow one ends where the other begins.
    assert_eq!(write(&mut board, slow, 10 * MIB, now), 4 * MIB);
    assert_eq!(write(&mut board, thief, 10 * MIB, now), 4 * MIB);
    assert_eq!(write(&mut board, fast, 10 * MIB, now), 2 * MIB);
    for id in [fast, slow, thief] {
        assert!(board.end(id));
    }
    assert_eq!(board.left(), 0);
}

#[test]
fn what_is_reserved_is_not_taken_over() {
    let (mut board, begin) = (whole(4 * MIB), Instant::now());
    let (id, _) = board.take(4 * MIB, 0, begin).unwrap();
    assert_eq!(board.reserve(id, 3 * MIB), (0, 3 * MIB));
    let now = begin + Duration::from_secs(10);
    assert_eq!(board.steal(1, now).unwrap().1, 3 * MIB..4 * MIB);
    assert_eq!(board.reserve(id, MIB), (3 * MIB, 0));
}

#[test]
fn a_small_rest_is_taken_over_only_from_a_lease_that_is_stuck() {
    let (mut board, begin) = (whole(MIB), Instant::now());
    let (id, _) = board.take(MIB, 0, begin).unwrap();
    write(&mut board, id, 1, begin);
    assert_eq!(board.steal(0, begin + Duration::from_secs(1)), None);
    assert_eq!(board.steal(0, begin + STUCK_AFTER).unwrap().1, 1..MIB);
    assert_eq!(board.steal(0, begin + STUCK_AFTER), None);
}
