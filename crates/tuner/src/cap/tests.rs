//! Refusals in virtual time.

use super::*;
use alloc::vec::Vec;

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

#[test]
fn one_more_is_tried_after_a_minute_and_then_ever_more_rarely() {
    let mut cap = Cap::new(64);
    assert_eq!(cap.look(at(1000), 1), 64);
    cap.refuse(2, at(1000));
    let looks = |cap: &mut Cap, all: [u64; 3]| all.map(|second| cap.look(at(second), 2));
    assert_eq!(looks(&mut cap, [1059, 1060, 1061]), [2, 3, 3]);
    cap.refuse(2, at(1062));
    assert_eq!(looks(&mut cap, [1181, 1182, 1183]), [2, 3, 3]);
    cap.refuse(2, at(1184));
    assert_eq!(looks(&mut cap, [1423, 1424, 1425]), [2, 3, 3]);
    assert_eq!(cap.refused_beyond(), Some(2));
    // The server grants more by now.
    assert_eq!((cap.look(at(1426), 3), cap.refused_beyond()), (64, None));
}

#[test]
fn a_number_that_was_granted_before_is_tried_again_soon() {
    let mut cap = Cap::new(8);
    cap.look(at(1), 2);
    cap.refuse(2, at(1));
    cap.refuse(1, at(10));
    assert_eq!((cap.now(), cap.lasting(), cap.is_lapsed()), (1, 2, true));
    assert_eq!((cap.look(at(11), 1), cap.is_lapsed()), (2, false));
    for second in 2..6 {
        cap.refuse(1, at(100 * second));
        assert_eq!(cap.look(at(100 * second + 20), 1), 2);
    }
    cap.refuse(1, at(1000));
    assert_eq!((cap.look(at(1030), 1), cap.lasting()), (1, 1));
}

#[test]
fn no_more_than_six_attempts_of_a_minute_are_refused() {
    // The server has granted two, and refuses the second one for ever.
    let (mut cap, mut refusals) = (Cap::new(64).in_waves().sparing(), Vec::new());
    cap.look(at(0), 2);
    for tenth in 0..6000 {
        let now = Instant::from_millis(tenth * 100);
        let open = cap.look(now, 1);
        (1..open).for_each(|_| refusals.push(tenth / 600));
        (1..open).rev().for_each(|left| cap.refuse(left, now));
    }
    let most = (0..10).map(|minute| refusals.iter().filter(|at| **at == minute).count()).max();
    assert!((2..=6).contains(&most.unwrap()), "{refusals:?}");
}

#[test]
fn connections_are_opened_as_others_are_answered() {
    let mut cap = Cap::new(16).in_waves();
    assert_eq!([0, 1, 3, 4, 3].map(|carrying| cap.look(at(1), carrying)), [5, 5, 5, 16, 16]);
    let mut cap = Cap::new(16).in_waves();
    for n in [4, 3, 2] {
        assert_eq!(cap.look(at(1), 2), n + 1);
        cap.refuse(n, at(1));
    }
    assert_eq!((cap.look(at(2), 2), cap.lasting()), (2, 2));
}

#[test]
fn groups_are_tried_whole() {
    let mut cap = Cap::new(64).in_groups(16);
    cap.refuse(16, at(0));
    assert_eq!((cap.look(at(60), 16), cap.refused_beyond()), (32, Some(16)));
}
