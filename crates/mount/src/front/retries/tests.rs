//! Requests that are made once more to a server at which other mounts change names all the time.

use super::super::names::Known;
use super::super::testing::{PATIENCE, Place, dir, file, seen};
use super::*;
use crate::changes::Turn;
use crate::core::Standing;
use crate::listings::Listing;
use crate::nodes::ROOT;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const ESTALE: i32 = 116;
/// Two programs.
const ONE: u32 = 7;
const OTHER: u32 = 8;
/// Metadata are asked for at each use, and the kernel checks no rights.
const PLAIN: (Duration, Checks) = (Duration::ZERO, Checks::Omitted);

fn path(name: &str) -> StorePath {
    StorePath::new(name.as_bytes()).unwrap()
}

/// A server with files that all have the number that this returns.
fn numbered() -> (Arc<AtomicU64>, impl FnMut(&StorePath) -> Result<Found, ErrorKind>) {
    let number = Arc::new(AtomicU64::new(100));
    let told = number.clone();
    (number, move |_: &StorePath| Ok(file(told.load(Ordering::SeqCst))))
}

#[test]
fn a_name_that_has_another_file_at_each_question_is_used_at_the_second_attempt() {
    /// A request about a node.
    type Ask = fn(&Place, u32, u64) -> Result<u64, i32>;
    for first in [Place::open as Ask, Place::attributes] {
        for second in [Place::open as Ask, Place::attributes] {
            let mut numbers = 100..;
            let place = Place::new(PLAIN, move |_| Ok(file(numbers.next().unwrap())));
            let node = place.look_up(ONE, ROOT, "a").unwrap();
            assert_eq!(first(&place, ONE, node), Err(ESTALE));
            let node = place.look_up(ONE, ROOT, "a").unwrap();
            second(&place, ONE, node).unwrap();
            assert_eq!(second(&place, OTHER, node), Err(ESTALE), "its first attempt");
        }
    }
}

#[test]
fn a_second_attempt_gives_no_program_another_file_than_it_has_open() {
    let (number, server) = numbered();
    let place = Place::new(PLAIN, server);
    let gone = place.look_up(ONE, ROOT, "a").unwrap();
    number.store(101, Ordering::SeqCst);
    let used = place.look_up(OTHER, ROOT, "a").unwrap();
    let handle = place.open(OTHER, used).unwrap();
    assert_eq!(place.open(ONE, gone), Err(ESTALE));
    let node = place.look_up(ONE, ROOT, "a").unwrap();
    assert_ne!(node, used);
    number.store(102, Ordering::SeqCst);
    place.open(ONE, node).unwrap();
    let state = place.core.state();
    assert_eq!(state.handles[&handle].standing, Standing::Present);
    assert_eq!(state.nodes.at(used).unwrap().found, file(101));
    assert_eq!(state.nodes.at(node).unwrap().found, file(102));
}

#[test]
fn what_a_thread_finds_at_its_second_attempt_is_opened_by_it_first() {
    let (number, server) = numbered();
    let place = Place::new(PLAIN, server);
    let gone = place.look_up(ONE, ROOT, "a").unwrap();
    number.store(101, Ordering::SeqCst);
    assert_eq!(place.open(ONE, gone), Err(ESTALE));
    let node = place.look_up(ONE, ROOT, "a").unwrap();
    // The kernel has the name of it in common for all threads.
    assert_eq!(place.open(OTHER, node), Err(ESTALE));
    let own = place.look_up(OTHER, ROOT, "a").unwrap();
    assert_ne!(own, node);
    number.store(102, Ordering::SeqCst);
    place.open(OTHER, own).unwrap();
    place.open(ONE, node).unwrap();
    // Then it is like any other.
    place.open(OTHER, node).unwrap();
}

#[test]
fn a_node_that_another_thread_finds_while_the_server_is_asked_is_opened_by_that_one_first() {
    let core = Arc::<OnceLock<Arc<Core>>>::default();
    let finds = core.clone();
    let place = Place::new(PLAIN, move |asked| {
        if let Some(core) = finds.get() {
            let mut state = core.state();
            let node = state.nodes.of_path(asked).map_or(0, |(number, _)| number);
            let _ = state.begin_retry(ONE, asked);
            state.take(node, (ONE, Attempt::Second));
        }
        Ok(file(100))
    });
    let node = place.look_up(OTHER, ROOT, "a").unwrap();
    assert!(core.set(place.core.clone()).is_ok());
    assert_eq!(place.open(OTHER, node), Err(ESTALE));
    place.open(ONE, node).unwrap();
}

#[test]
fn a_directory_that_is_replaced_at_each_question_is_passed_through() {
    let mut numbers = 100..;
    let place = Place::new(PLAIN, move |path| match path.as_bytes() {
        b"d" => Ok(dir(numbers.next().unwrap())),
        _ => Ok(file(50)),
    });
    let gone = place.look_up(ONE, ROOT, "d").unwrap();
    place.look_up(OTHER, ROOT, "d").unwrap();
    assert_eq!(place.look_up(ONE, gone, "a"), Err(ESTALE));
    let gone = place.look_up(ONE, ROOT, "d").unwrap();
    place.look_up(OTHER, ROOT, "d").unwrap();
    assert_eq!(place.look_up(OTHER, gone, "a"), Err(ESTALE), "another thread has not found it");
    let node = place.look_up(ONE, gone, "a").unwrap();
    place.open(ONE, node).unwrap();
}

#[test]
fn a_node_that_is_found_stays_when_the_kernel_forgets_it_before_the_answer() {
    let (_, server) = numbered();
    let place = Place::new((Duration::from_secs(60), Checks::Omitted), server);
    let core = &place.core;
    let node = place.look_up(ONE, ROOT, "a").unwrap();
    let known = core.state().known_to(&path("a"), PATIENCE, (ONE, Attempt::First));
    assert_eq!(known, Some(Known::There(node)));
    core.state().nodes.forget(node, 1);
    assert!(core.state().nodes.at(node).is_some());
    let (tell, hear) = std::sync::mpsc::channel();
    let asked = core.clone();
    let root = (INodeNo(ROOT), StorePath::ROOT);
    core.look_path(root, path("a"), (ONE, Attempt::First), move |found| {
        asked.state().nodes.forget(node, 1);
        tell.send((found, asked.state().nodes.at(node).is_some())).unwrap();
    });
    assert_eq!(hear.recv().unwrap(), (Ok(Known::There(node)), true));
    core.state().nodes.forget(node, 1);
    assert!(core.state().nodes.at(node).is_none());
}

#[test]
fn what_is_cached_answers_no_second_attempt() {
    let (number, server) = numbered();
    let place = Place::new((Duration::from_secs(60), Checks::Omitted), server);
    let gone = place.look_up(ONE, ROOT, "a").unwrap();
    number.store(101, Ordering::SeqCst);
    assert_eq!(place.open(ONE, gone), Err(ESTALE));
    let mut state = place.core.state();
    state.nodes.forget(101, 0);
    assert!(state.nodes.of_path(&path("a")).is_none(), "nothing is known of it");
    let when = (Instant::now(), Turn::default());
    let listing = Listing::of_items(Vec::new(), when, when);
    state.listings.insert(StorePath::ROOT, Arc::new(listing));
    drop(state);
    assert_eq!(place.look_up(OTHER, ROOT, "a"), Ok(0), "its first attempt");
    assert_eq!(place.look_up(ONE, ROOT, "a"), Ok(101));
}

#[test]
fn a_name_that_was_there_is_not_absent_because_a_listing_lacks_it() {
    let (_, server) = numbered();
    let place = Place::new(PLAIN, server);
    let (limit, mut state) = (Duration::from_secs(1), place.core.state());
    let later = Instant::now() + limit;
    let when = (later, Turn::default());
    let listing = Listing::of_items(Vec::new(), when, when);
    state.observe(&path("a"), seen(file(100)));
    state.listings.insert(StorePath::ROOT, Arc::new(listing));
    let now = later + limit / 2;
    assert_eq!(state.known(&path("a"), limit, now), None);
    assert_eq!(state.known(&path("b"), limit, now), Some(Known::Absent(limit / 2)));
}

#[test]
fn a_node_goes_on_with_another_file_when_the_server_has_what_was_written_to_the_first() {
    let (number, server) = numbered();
    let place = Place::new(PLAIN, server);
    let gone = place.look_up(ONE, ROOT, "a").unwrap();
    number.store(101, Ordering::SeqCst);
    assert_eq!(place.open(ONE, gone), Err(ESTALE));
    let node = place.look_up(ONE, ROOT, "a").unwrap();
    number.store(102, Ordering::SeqCst);
    place.look_up(OTHER, ROOT, "a").unwrap();
    place.core.state().nodes.at_mut(node).unwrap().unconfirmed = 1;
    place.begin_open(ONE, node);
    let begin = Instant::now();
    while place.core.state().writes.settle_waits.is_empty() {
        assert!(begin.elapsed() < PATIENCE, "it does not wait");
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut state = place.core.state();
    state.nodes.at_mut(node).unwrap().unconfirmed = 0;
    let calls = state.settled(node);
    drop(state);
    calls.into_iter().for_each(|call| call());
    place.end_open().unwrap();
}

#[test]
fn a_node_goes_on_under_the_name_that_it_gets_here_meanwhile() {
    let core = Arc::<OnceLock<Arc<Core>>>::default();
    let (renames, mut numbers, mut questions) = (core.clone(), 100.., 0);
    let place = Place::new(PLAIN, move |asked| {
        if let Some(core) = renames.get().filter(|_| *asked == path("a")) {
            questions += 1;
            if questions == 2 {
                core.state().nodes.rename(&path("a"), &path("b"));
            }
        }
        Ok(file(numbers.next().unwrap()))
    });
    let gone = place.look_up(ONE, ROOT, "a").unwrap();
    assert_eq!(place.open(ONE, gone), Err(ESTALE));
    // It is open, so that the next one is another node beside it, which changes its name with it.
    place.core.state().nodes.of_path_mut(&path("a")).unwrap().opens = 1;
    place.core.state().nodes.of_path_mut(&path("a")).unwrap().found.identity.number = 102;
    let node = place.look_up(ONE, ROOT, "a").unwrap();
    assert!(core.set(place.core.clone()).is_ok());
    place.open(ONE, node).unwrap();
    assert_eq!(place.core.state().nodes.at(node).unwrap().path, path("b"));
}

#[test]
fn rights_that_the_kernel_has_checked_are_those_of_the_file_that_is_used() {
    for (checks, mode, expected) in [
        (Checks::Made, 0o600, Err(ESTALE)),
        (Checks::Made, 0o644, Ok(())),
        (Checks::Omitted, 0o600, Ok(())),
    ] {
        let mut numbers = 100..;
        let place = Place::new((Duration::ZERO, checks), move |_| {
            let found = file(numbers.next().unwrap());
            let mode = if found.identity.number > 102 { mode } else { found.mode };
            Ok(Found { mode, ..found })
        });
        let gone = place.look_up(ONE, ROOT, "a").unwrap();
        assert_eq!(place.open(ONE, gone), Err(ESTALE));
        let node = place.look_up(ONE, ROOT, "a").unwrap();
        assert_eq!(place.open(ONE, node).map(drop), expected, "{checks:?} {mode:o}");
    }
}

#[test]
fn the_last_threads_are_remembered_for_a_while() {
    let begin = Instant::now();
    let mut retries = Retries::default();
    retries.begin(7, path("a/b"), begin);
    for (thread, name, expected) in [
        (7, "a", Attempt::Second),
        (7, "a/b", Attempt::Second),
        (7, "a/b/c", Attempt::Second),
        (7, "a/d", Attempt::First),
        (8, "a/b", Attempt::First),
    ] {
        assert_eq!(retries.looks(thread, &path(name), begin), expected, "{thread} {name}");
    }
    assert_eq!(retries.looks(7, &path("a/b"), begin + AT_ONCE), Attempt::First);
    assert_eq!(retries.uses(7, 100, begin), Attempt::First);
    retries.find(7, 100, begin);
    retries.find(8, 200, begin);
    assert_eq!(retries.uses(7, 100, begin), Attempt::Second);
    assert_eq!(retries.uses(8, 200, begin), Attempt::First, "it was answered with no ESTALE");
    assert!(retries.is_of_another(8, 100, begin) && !retries.is_of_another(7, 100, begin));
    assert!(!retries.is_of_another(8, 100, begin + AT_ONCE));
    for number in 0..NAMES_MAX as u64 {
        assert_eq!(retries.looks(7, &path("a/b"), begin), Attempt::Second, "{number}");
        retries.find(7, 1000 + number, begin);
    }
    assert_eq!(retries.looks(7, &path("a/b"), begin), Attempt::First, "it reads a tree");
    for thread in 1000..1000 + 3 * THREADS_MAX as u32 {
        retries.begin(thread, path("a"), begin + Duration::from_micros(thread.into()));
    }
    assert_eq!(retries.threads.len(), THREADS_MAX);
    let last = 1000 + 3 * THREADS_MAX as u32 - 1;
    let at = begin + Duration::from_micros(last.into());
    assert_eq!(retries.looks(last, &path("a"), at), Attempt::Second);
    retries.end(last);
    assert_eq!(retries.looks(last, &path("a"), at), Attempt::First);
}
