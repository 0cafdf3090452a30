//! The table of leases.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const A: Holder = Holder([1; 16]);
const B: Holder = Holder([2; 16]);
const C: Holder = Holder([3; 16]);
const PARTY: Party = Party([0; 32]);

fn dir(number: u64) -> Identity {
    Identity { device: 0, number }
}

fn leases() -> Arc<Leases> {
    let leases = Arc::new(Leases::default());
    leases.hear(A, (1, PARTY));
    leases.hear(B, (2, PARTY));
    leases
}

// spec: store-lease-1
#[test]
fn a_lease_for_writing_excludes_all_others() {
    let leases = leases();
    let read = leases.grant(A, dir(1), Extent::Read).unwrap();
    assert!(leases.grant(B, dir(1), Extent::Read).is_some());
    assert!(leases.grant(A, dir(1), Extent::Write).is_none(), "the other one reads");
    assert_eq!(leases.grant(A, dir(1), Extent::Read), Some(read));
    let write = leases.grant(A, dir(2), Extent::Write).unwrap();
    assert!(leases.may_decide(A, dir(2)) && !leases.may_decide(A, dir(1)));
    assert!(leases.grant(B, dir(2), Extent::Read).is_none());
    assert!(leases.excludes(Some(B), dir(2)) && !leases.excludes(Some(A), dir(2)));
    leases.give_back(B, write);
    assert!(leases.may_decide(A, dir(2)), "given back by somebody else");
    leases.give_back(A, write);
    assert!(leases.grant(B, dir(2), Extent::Write).is_some());
    // While a change is made, what is told of the directory may be wrong at once.
    let changing = leases.before(None, dir(3), Intent::Change);
    assert!(leases.grant(A, dir(3), Extent::Read).is_none());
    drop(changing);
    assert!(leases.grant(A, dir(3), Extent::Read).is_some());
}

// spec: store-lease-2
#[test]
fn a_change_waits_until_others_have_given_back() {
    let leases = leases();
    for (intent, extent) in [(Intent::Change, Extent::Read), (Intent::Read, Extent::Write)] {
        let at = dir(10 + extent as u64);
        let lease = leases.grant(A, at, extent).unwrap();
        // Their own leases hold nobody up.
        drop(leases.before(Some(A), at, intent));
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                drop(leases.before(Some(B), at, intent));
                is_done.store(true, Ordering::SeqCst);
            });
            let mut recalled = Vec::new();
            while recalled.is_empty() && !is_done.load(Ordering::SeqCst) {
                recalled = leases.recalls(A);
            }
            assert_eq!(recalled, [lease]);
            assert!(!is_done.load(Ordering::SeqCst));
            // It is wanted back: nothing more is granted under it.
            assert!(leases.grant(A, at, extent).is_none());
            leases.give_back(A, lease);
        });
        // Whoever changes and reads in turn is quicker without leases.
        assert!(leases.grant(A, at, Extent::Read).is_none());
    }
    // Reading does not disturb readers.
    leases.grant(A, dir(20), Extent::Read).unwrap();
    drop(leases.before(Some(B), dir(20), Intent::Read));
    assert!(leases.grant(A, dir(20), Extent::Read).is_some());
}

#[test]
fn a_holder_that_is_gone_has_no_leases() {
    let leases = leases();
    leases.grant(A, dir(1), Extent::Write).unwrap();
    // Another session of the same holder goes on.
    leases.hear(A, (3, PARTY));
    leases.end(A, 1, End::Told);
    assert!(leases.may_decide(A, dir(1)));
    leases.end(A, 3, End::Lost);
    assert!(leases.may_decide(A, dir(1)));
    leases.end(A, 3, End::Told);
    assert!(!leases.may_decide(A, dir(1)));
    // One that is not heard of.
    let leases = Arc::new(Leases { term: Duration::ZERO, ..Leases::default() });
    leases.hear(A, (1, PARTY));
    leases.grant(A, dir(1), Extent::Write).unwrap();
    drop(leases.before(Some(B), dir(1), Intent::Change));
    assert!(!leases.may_decide(A, dir(1)));
}

#[test]
fn a_holder_has_so_many_leases_at_most_and_nothing_is_kept_of_ended_ones() {
    let leases = leases();
    let all: Vec<u64> = (0..LEASES_MAX as u64)
        .map(|number| leases.grant(A, dir(number), Extent::Read).unwrap())
        .collect();
    assert!(leases.grant(A, dir(1 << 40), Extent::Read).is_none());
    assert!(leases.grant(B, dir(1 << 40), Extent::Read).is_some());
    all.into_iter().for_each(|lease| leases.give_back(A, lease));
    assert!(leases.grant(A, dir(1 << 40), Extent::Read).is_some());
    leases.forget(leases.of_dir(dir(1 << 40)));
    let state = leases.state();
    assert!(state.dirs.is_empty() && state.leases.is_empty());
}

#[test]
fn all_leases_are_recalled_at_once_before_paths_change() {
    let leases = Arc::new(Leases::without_quiet());
    for (holder, session) in [(A, 1), (B, 2), (C, 3)] {
        leases.hear(holder, (session, PARTY));
    }
    let [a, other, b] = [(A, dir(1)), (A, dir(2)), (B, dir(3))]
        .map(|(holder, at)| leases.grant(holder, at, Extent::Write).unwrap());
    leases.grant(C, dir(4), Extent::Write).unwrap();
    let (tell, hear) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let changing = leases.clone();
        scope.spawn(move || tell.send(changing.before_paths_change(Some(C))).unwrap());
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        while of_a.len() < 2 || of_b.is_empty() {
            of_a.extend(leases.recalls(A));
            of_b.extend(leases.recalls(B));
        }
        of_a.sort_unstable();
        assert_eq!((of_a, of_b), (vec![a, other], vec![b]));
        // Nobody takes a path for granted that is about to change.
        assert!(leases.grant(B, dir(5), Extent::Read).is_none());
        [a, other].into_iter().for_each(|lease| leases.give_back(A, lease));
        assert!(hear.try_recv().is_err());
        leases.give_back(B, b);
    });
    let moving = hear.recv().unwrap();
    assert!(leases.grant(B, dir(5), Extent::Read).is_none());
    drop(moving);
    assert!(leases.grant(B, dir(5), Extent::Read).is_some());
    assert!(leases.may_decide(C, dir(4)), "its own is not recalled");
}

// spec: store-lease-2
#[test]
fn a_key_whose_client_lets_a_lease_run_out_gets_no_more() {
    let (honest, liar) = (PARTY, Party([1; 32]));
    // (what it holds, how long is waited for readers and writers)
    let (short, long) = (Duration::from_millis(400), Duration::from_secs(600));
    for (extent, term, patience) in [(Extent::Read, short, long), (Extent::Write, long, short)] {
        let leases = Arc::new(Leases { term, patience, ..Leases::without_quiet() });
        leases.hear(A, (1, liar));
        leases.hear(B, (2, honest));
        leases.grant(A, dir(1), extent).unwrap();
        // It says that it is there, and gives nothing back.
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::SeqCst) {
                    leases.hear(A, (1, liar));
                    thread::yield_now();
                }
            });
            drop(leases.before(Some(B), dir(1), Intent::Change));
            is_done.store(true, Ordering::SeqCst);
        });
        // By no other name either.
        leases.hear(A, (1, liar));
        leases.hear(C, (3, liar));
        leases.hear(B, (2, honest));
        assert!(leases.grant(A, dir(2), Extent::Read).is_none(), "{extent:?}");
        assert!(leases.grant(C, dir(2), Extent::Read).is_none(), "{extent:?}");
        assert!(leases.grant(B, dir(2), Extent::Write).is_some(), "{extent:?}");
    }
}

// spec: store-lease-4
#[test]
fn a_directory_that_was_made_under_a_lease_is_leased_to_a_key_with_a_penalty_as_well() {
    let leases = Arc::new(Leases::without_quiet());
    leases.hear(A, (1, PARTY));
    leases.hear(B, (2, Party([1; 32])));
    leases.state().penalize(PARTY, Instant::now());
    assert!(leases.grant(A, dir(1), Extent::Read).is_none());
    let made = leases.grant_made(A, dir(1)).unwrap();
    assert!(leases.may_decide(A, dir(1)));
    leases.give_back(A, made);
    // Whoever changes paths waits for one that is made meanwhile.
    let moving = leases.before_paths_change(Some(B));
    assert!(leases.grant_made(A, dir(2)).is_some());
    drop(moving);
}

// spec: store-lease-4
#[test]
fn a_directory_that_was_made_under_a_lease_is_decided_in_although_it_was_listed_meanwhile() {
    let leases = Arc::new(Leases::without_quiet());
    leases.hear(A, (1, PARTY));
    leases.hear(B, (2, PARTY));
    // By a listing of the directory above, of the same client and of another one.
    let own = leases.grant(A, dir(1), Extent::Read).unwrap();
    let other = leases.grant(B, dir(1), Extent::Read).unwrap();
    let made = thread::scope(|scope| {
        let made = scope.spawn(|| leases.grant_made(A, dir(1)));
        while !made.is_finished() {
            let recalled = leases.recalls(B);
            recalled.into_iter().for_each(|lease| leases.give_back(B, lease));
        }
        made.join().unwrap().unwrap()
    });
    assert!(made != own && made != other);
    assert!(leases.may_decide(A, dir(1)));
    leases.give_back(A, own);
    assert!(leases.may_decide(A, dir(1)));
    leases.give_back(A, made);
    assert!(leases.of_dir(dir(1)).is_empty());
}

// spec: store-lease-4
#[test]
fn leases_of_a_directory_that_is_gone_are_not_those_of_the_next_one_with_its_identity() {
    let leases = Arc::new(Leases::without_quiet());
    leases.hear(A, (1, PARTY));
    leases.grant(A, dir(1), Extent::Write).unwrap();
    let gone = leases.of_dir(dir(1));
    // The old directory is removed, and a new one has its identity at once.
    leases.grant_made(A, dir(1)).unwrap();
    leases.forget(gone);
    assert!(leases.may_decide(A, dir(1)));
}

#[test]
fn so_many_keys_are_refused_at_most() {
    let mut state = State::default();
    let now = Instant::now();
    for n in 0..=PARTIES_MAX {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&(n as u64).to_le_bytes());
        state.penalize(Party(key), now + Duration::from_millis(n as u64));
    }
    assert_eq!(state.penalties.len(), PARTIES_MAX);
    assert!(!state.is_penalized(Party([0; 32]), now), "the first one");
}

// spec: store-lease-3
#[test]
fn a_holder_that_was_forgotten_is_told_so_once() {
    let leases = Arc::new(Leases { term: Duration::ZERO, ..Leases::default() });
    assert_eq!(leases.hear(A, (2, PARTY)), Known::No);
    assert_eq!(leases.hear(A, (2, PARTY)), Known::No, "it was silent for too long");
    let leases = Leases::default();
    assert_eq!((leases.hear(A, (2, PARTY)), leases.hear(A, (2, PARTY))), (Known::No, Known::Yes));
    // What comes late over an older session says nothing of this one.
    assert_eq!((leases.hear(A, (1, PARTY)), leases.hear(A, (2, PARTY))), (Known::No, Known::Yes));
    assert_eq!((leases.hear(A, (3, PARTY)), leases.hear(A, (3, PARTY))), (Known::No, Known::Yes));
}

#[test]
fn who_is_not_known_waits_for_recalls_as_others_do() {
    let leases = Leases::default();
    let begin = Instant::now();
    while begin.elapsed() < LOOK / 2 {
        assert!(leases.recalls(C).is_empty());
    }
    assert!(begin.elapsed() >= LOOK, "it asked again and again");
}
