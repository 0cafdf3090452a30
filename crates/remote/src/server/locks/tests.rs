//! The table of locks.

use super::*;
use std::sync::mpsc::{Receiver, channel};

const FILE: Identity = Identity { device: 0, number: 1 };
const SHARED: Wish = Wish::Shared(Patience::None);
const EXCLUSIVE: Wish = Wish::Exclusive(Patience::None);

fn owner(session: u64, number: u64) -> Owner {
    Owner { session, number }
}

fn ask(locks: &Locks, owner: Owner, range: Range, wish: Wish) -> Receiver<Outcome> {
    let (tell, hear) = channel();
    locks.set(
        FILE,
        owner,
        (range, wish),
        Box::new(move |outcome| {
            let _ = tell.send(outcome);
        }),
    );
    hear
}

fn now(locks: &Locks, owner: Owner, range: Range, wish: Wish) -> Outcome {
    ask(locks, owner, range, wish).try_recv().unwrap()
}

// spec: store-lock-1
#[test]
fn locks_of_others_exclude_and_own_ones_are_replaced() {
    let locks = Locks::default();
    let (a, b) = (owner(1, 1), owner(2, 1));
    assert_eq!(now(&locks, a, (0, 99), SHARED), Outcome::Had);
    assert_eq!(now(&locks, b, (50, 60), SHARED), Outcome::Had);
    assert_eq!(now(&locks, b, (50, 60), EXCLUSIVE), Outcome::Busy);
    assert_eq!(now(&locks, b, (100, u64::MAX), EXCLUSIVE), Outcome::Had);
    // What is taken out of the middle of a lock leaves its two ends.
    assert_eq!(now(&locks, a, (40, 59), Wish::Free), Outcome::Had);
    assert_eq!(now(&locks, b, (40, 59), EXCLUSIVE), Outcome::Had);
    for (at, outcome) in [(39, Outcome::Busy), (40, Outcome::Had), (59, Outcome::Had)] {
        assert_eq!(now(&locks, b, (at, at), EXCLUSIVE), outcome, "{at}");
    }
    assert_eq!(locks.against(FILE, a, (45, 45)), Some((true, (40, 59))));
    assert_eq!(locks.against(FILE, b, (0, 0)), Some((false, (0, 39))));
    // Another program of the same client is another owner.
    assert_eq!(now(&locks, owner(1, 2), (0, 0), EXCLUSIVE), Outcome::Busy);
    assert_eq!(now(&locks, a, (0, 0), EXCLUSIVE), Outcome::Had);
    locks.end(1);
    assert_eq!(now(&locks, b, (0, u64::MAX), EXCLUSIVE), Outcome::Had);
    assert_eq!(now(&locks, b, (0, u64::MAX), Wish::Free), Outcome::Had);
    assert!(locks.files().is_empty());
}

#[test]
fn who_waits_gets_the_lock_when_it_is_free() {
    let locks = Locks::default();
    let (a, b, c) = (owner(1, 1), owner(2, 1), owner(3, 1));
    assert_eq!(now(&locks, a, (0, 9), EXCLUSIVE), Outcome::Had);
    let first = ask(&locks, b, (0, 4), Wish::Exclusive(Patience::Wait));
    let second = ask(&locks, c, (0, 9), Wish::Shared(Patience::Wait));
    let given_up = ask(&locks, owner(3, 2), (0, 9), Wish::Shared(Patience::Wait));
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
    now(&locks, owner(3, 2), (0, u64::MAX), Wish::Free);
    assert_eq!(given_up.try_recv().unwrap(), Outcome::Busy);
    now(&locks, a, (0, 9), Wish::Free);
    assert_eq!(first.try_recv().unwrap(), Outcome::Had);
    assert!(second.try_recv().is_err());
    locks.end(2);
    assert_eq!(second.try_recv().unwrap(), Outcome::Had);
}

#[test]
fn a_session_has_so_many_locks_at_most() {
    let locks = Locks::default();
    for at in 0..LOCKS_MAX as u64 {
        assert_eq!(now(&locks, owner(1, 1), (2 * at, 2 * at), SHARED), Outcome::Had);
    }
    assert_eq!(now(&locks, owner(1, 1), (1 << 40, 1 << 40), SHARED), Outcome::Full);
    assert_eq!(now(&locks, owner(2, 1), (1 << 40, 1 << 40), SHARED), Outcome::Had);
    // Locks that touch are one.
    now(&locks, owner(1, 1), (0, 0), Wish::Free);
    assert_eq!(now(&locks, owner(1, 1), (1, 1), SHARED), Outcome::Had);
}
