//! The table of locks.

use super::*;
use std::sync::mpsc::{Receiver, channel};

const FILE: Identity = Identity { device: 0, number: 1 };
const SHARED: Wish = Wish::Shared(Patience::None);
const EXCLUSIVE: Wish = Wish::Exclusive(Patience::None);

fn owner(session: u64, number: u64) -> Owner {
    Owner { session, number }
}

/// The number of the request for a lock.
const REQUEST: RequestId = RequestId(5);

fn ask(locks: &Locks, owner: Owner, range: Range, wish: Wish) -> Receiver<Outcome> {
    ask_of(locks, FILE, owner, (range, wish))
}

fn ask_of(locks: &Locks, file: Identity, owner: Owner, wish: (Range, Wish)) -> Receiver<Outcome> {
    let (tell, hear) = channel();
    let later = tell.clone();
    let told = move |outcome| {
        let _ = later.send(outcome);
    };
    if let Some(outcome) = locks.set(file, owner, wish, (REQUEST, Box::new(told))) {
        tell.send(outcome).unwrap();
    }
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
    assert!(locks.is_empty());
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

#[test]
fn cuts_make_no_more_locks_than_a_session_may_have() {
    let locks = Locks::default();
    let a = owner(1, 1);
    let count = || locks.table().files[&FILE].locks.len();
    assert_eq!(now(&locks, a, (0, 1 << 40), SHARED), Outcome::Had);
    for cut in 1..LOCKS_MAX as u64 {
        assert_eq!(now(&locks, a, (2 * cut, 2 * cut), Wish::Free), Outcome::Had);
    }
    for wish in [Wish::Free, EXCLUSIVE] {
        assert_eq!(now(&locks, a, (1 << 20, 1 << 20), wish), Outcome::Full);
    }
    assert_eq!(count(), LOCKS_MAX);
    // What adds none is done.
    assert_eq!(now(&locks, a, (3, 3), Wish::Free), Outcome::Had);
    assert_eq!(count(), LOCKS_MAX - 1);
    // A lock in another one of the same owner leaves three.
    assert_eq!(now(&locks, a, (1 << 20, 1 << 20), EXCLUSIVE), Outcome::Full);
    // One that is waited for may do so as well.
    assert_eq!(now(&locks, owner(2, 1), (1 << 20, 1 << 20), SHARED), Outcome::Had);
    let waits = Wish::Exclusive(Patience::Wait);
    assert_eq!(now(&locks, a, (1 << 20, 1 << 20), waits), Outcome::Full);
    assert_eq!(now(&locks, a, (0, u64::MAX), Wish::Free), Outcome::Had);
    assert_eq!(count(), 1);
}

#[test]
fn a_session_has_so_many_locks_of_all_files_at_most() {
    let locks = Locks::default();
    let file = |number| Identity { device: 0, number };
    let set = |number, session, wish| {
        ask_of(&locks, file(number), owner(session, 1), ((0, 0), wish)).try_recv().unwrap()
    };
    let all = SESSION_LOCKS_MAX as u64;
    for number in 0..all {
        assert_eq!(set(number, 1, SHARED), Outcome::Had);
    }
    assert_eq!(set(all, 1, SHARED), Outcome::Full);
    assert_eq!(set(all, 2, SHARED), Outcome::Had);
    assert_eq!(set(7, 1, Wish::Free), Outcome::Had);
    assert_eq!(set(all, 1, SHARED), Outcome::Had);
    locks.end(1);
    assert_eq!(set(all, 2, EXCLUSIVE), Outcome::Had);
    assert_eq!(locks.table().sessions.len(), 1);
}

// spec: store-lock-4
#[test]
fn who_gives_up_waits_no_more_and_keeps_what_it_has() {
    const WAITS: Wish = Wish::Exclusive(Patience::Wait);
    let locks = Locks::default();
    let (a, b) = (owner(1, 1), owner(2, 1));
    assert_eq!(now(&locks, a, (0, 9), SHARED), Outcome::Had);
    assert_eq!(now(&locks, b, (0, 9), SHARED), Outcome::Had);
    let waits = ask(&locks, a, (0, 9), WAITS);
    for (who, request) in [(a, RequestId(6)), (b, REQUEST)] {
        assert_eq!(now(&locks, who, (0, 9), Wish::GiveUp(request)), Outcome::Had);
        assert!(waits.try_recv().is_err(), "it was not given up");
    }
    assert_eq!(now(&locks, a, (0, 9), Wish::GiveUp(REQUEST)), Outcome::Had);
    assert_eq!(waits.try_recv(), Ok(Outcome::Busy));
    assert_eq!(now(&locks, b, (0, 9), EXCLUSIVE), Outcome::Busy, "a has its shared lock");
    [1, 2].into_iter().for_each(|session| locks.end(session));
    assert_eq!(now(&locks, b, (0, 9), Wish::GiveUp(REQUEST)), Outcome::Had, "nothing to give up");
    assert!(locks.is_empty());
}
