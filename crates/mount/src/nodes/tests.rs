//! Nodes of files that change, and their life.

use super::*;
use hikyaku_store::{Identity, Owner, Time};

fn found(number: u64, size: u64, secs: i64) -> Found {
    Found {
        kind: Kind::File,
        size,
        allocated: size,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time { secs, nanos: 0 },
        identity: Identity { device: 1, number },
        version: None,
    }
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn seen(found: Found, asked: Instant) -> Seen {
    Seen { found, link: None, at: Places::only(0), asked, sent: Turn::default() }
}

#[test]
fn a_changed_file_has_another_number_and_a_grown_one_the_same() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let first = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    let content = nodes.at(first).unwrap().content;
    assert_eq!(nodes.observe(&path("a"), seen(found(1, 100, 1), now)), first);
    assert_eq!(nodes.at(first).unwrap().content, content);
    assert_eq!(nodes.observe(&path("a"), seen(found(1, 120, 2), now)), first);
    assert_ne!(nodes.at(first).unwrap().content, content);
    // While it is written to, its time changes before its size.
    let content = nodes.at(first).unwrap().content;
    assert_eq!(nodes.observe(&path("a"), seen(found(1, 120, 3), now)), first);
    assert_ne!(nodes.at(first).unwrap().content, content);
    for other in [found(1, 120, 4), found(1, 50, 5), found(2, 50, 5)] {
        let before = nodes.of_path(&path("a")).unwrap().0;
        nodes.at_mut(before).unwrap().opens = 1;
        let after = nodes.observe(&path("a"), seen(other, now));
        assert_ne!(after, before, "{other:?}");
        assert!(nodes.at(before).unwrap().is_stale);
        assert!(!nodes.at(after).unwrap().is_stale);
    }
}

#[test]
fn a_file_that_nobody_has_open_keeps_its_number_and_gets_the_new_content() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let number = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    for other in [found(1, 100, 4), found(1, 50, 5)] {
        let content = nodes.at(number).unwrap().content;
        assert_eq!(nodes.observe(&path("a"), seen(other, now)), number, "{other:?}");
        assert_ne!(nodes.at(number).unwrap().content, content);
    }
    assert_ne!(nodes.observe(&path("a"), seen(found(2, 50, 5), now)), number, "another file");
}

#[test]
fn a_change_of_a_name_tells_nothing_of_what_was_written_before() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let number = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    let hold = |nodes: &mut Nodes| {
        let node = nodes.at_mut(number).unwrap();
        (node.unconfirmed, node.held) = (node.unconfirmed + 1, node.held + 1);
    };
    // Its metadata are those of this machine until the server is asked.
    nodes.write(number, 200, Time { secs: 7, nanos: 0 });
    nodes.at_mut(number).unwrap().written = Some(now);
    hold(&mut nodes);
    nodes.confirm(number, None, now);
    assert!(nodes.at(number).unwrap().is_own());
    hold(&mut nodes);
    nodes.confirm(number, Some(found(1, 200, 8)), now);
    assert!(!nodes.at(number).unwrap().is_own());
    assert_eq!(nodes.at(number).unwrap().found, found(1, 200, 8));
    // The time that programs see does not change for a file without other writers.
    assert_eq!(nodes.at(number).unwrap().shown(), found(1, 200, 7));
    nodes.observe(&path("a"), seen(found(1, 200, 8), Instant::now()));
    assert_eq!(nodes.at(number).unwrap().shown(), found(1, 200, 7));
    nodes.observe(&path("a"), seen(found(1, 200, 9), Instant::now()));
    assert_eq!(nodes.at(number).unwrap().shown(), found(1, 200, 9));
}

#[test]
fn who_has_a_lock_goes_on_with_the_content_of_then() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let first = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    let content = nodes.at(first).unwrap().content;
    nodes.at_mut(first).unwrap().opens = 1;
    nodes.at_mut(first).unwrap().cached = Some(content);
    let second = nodes.observe(&path("a"), seen(found(1, 100, 2), now));
    nodes.at_mut(second).unwrap().opens = 1;
    assert!(nodes.at(first).unwrap().is_stale);
    assert_eq!(nodes.go_on(first, seen(found(1, 100, 2), now)), Some(Pages::Other));
    assert_eq!(nodes.go_on(first, seen(found(1, 100, 2), now)), Some(Pages::Other));
    nodes.at_mut(first).unwrap().cached = Some(nodes.at(first).unwrap().content);
    assert_eq!(nodes.go_on(first, seen(found(1, 100, 2), now)), Some(Pages::Right));
    assert!(!nodes.at(first).unwrap().is_stale && !nodes.at(second).unwrap().is_stale);
    assert_eq!(nodes.of_path(&path("a")).unwrap().0, second);
    // Both go with the name, and lose it together.
    nodes.rename(&path("a"), &path("b"));
    assert!([first, second].iter().all(|&n| nodes.at(n).unwrap().path == path("b")));
    nodes.observe_absent(&path("b"));
    assert!([first, second].iter().all(|&n| nodes.at(n).unwrap().is_stale));
    // The file may still have its name.
    assert!(nodes.go_on(second, seen(found(1, 100, 2), now)).is_some());
    assert_eq!(nodes.of_path(&path("b")).unwrap().0, second);
    assert_eq!(nodes.go_on(first, seen(found(7, 100, 2), now)), None, "another file");
    assert!(nodes.at(first).unwrap().is_stale);
}

#[test]
fn a_node_that_nobody_has_open_goes_on_with_the_file_in_its_place() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let first = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    nodes.look_up(first);
    let content = nodes.at(first).unwrap().content;
    let second = nodes.observe(&path("a"), seen(found(2, 50, 2), now));
    assert!(first != second && nodes.at(first).unwrap().is_stale);
    let dir = seen(Found { kind: Kind::Dir, ..found(2, 50, 2) }, now);
    assert_eq!(nodes.succeed(first, dir), None, "no file");
    nodes.at_mut(first).unwrap().opens = 1;
    assert_eq!(nodes.succeed(first, seen(found(2, 50, 2), now)), None, "it is open");
    nodes.at_mut(first).unwrap().opens = 0;
    assert_eq!(nodes.succeed(first, seen(found(2, 50, 2), now)), Some(Company::None));
    let node = nodes.at(first).unwrap();
    assert!(!node.is_stale && node.content != content && node.cached.is_none());
    assert_eq!(node.found, found(2, 50, 2));
    assert_eq!(nodes.of_path(&path("a")).unwrap().0, second, "both have the file");
    // A file that is open may continue with another content.
    nodes.at_mut(first).unwrap().opens = 1;
    assert_eq!(nodes.succeed(first, seen(found(2, 50, 3), now)), Some(Company::Others));
    assert_eq!(nodes.at(first).unwrap().found, found(2, 50, 3));
}

#[test]
fn a_twin_is_a_node_of_the_same_file_that_no_program_has_open() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let first = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    assert_eq!(nodes.open_at(&path("a")), None);
    nodes.at_mut(first).unwrap().opens = 1;
    let twin = nodes.twin(first).unwrap();
    assert_eq!(nodes.at(twin).unwrap().found, nodes.at(first).unwrap().found);
    assert_ne!(nodes.at(twin).unwrap().content, nodes.at(first).unwrap().content);
    assert!(twin != first && nodes.is_open(first) && !nodes.is_open(twin));
    assert_eq!(nodes.open_at(&path("a")), Some(first));
    nodes.at_mut(first).unwrap().opens = 0;
    nodes.at_mut(twin).unwrap().opens = 1;
    assert_eq!(nodes.open_at(&path("a")), Some(twin));
    assert_eq!(nodes.open_at(&path("b")), None);
    nodes.at_mut(first).unwrap().unconfirmed = 1;
    assert_eq!(nodes.twin(first), None, "the server does not have it so");
}

#[test]
fn nodes_below_a_directory_go_with_it_and_those_in_its_place_are_gone() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let dir = |number| seen(Found { kind: Kind::Dir, ..found(number, 0, 0) }, now);
    let file = |number| seen(found(number, 1, 1), now);
    let from = nodes.observe(&path("d"), dir(1));
    let below = nodes.observe(&path("d/f"), file(2));
    let beside = nodes.observe(&path("de"), file(3));
    let old = nodes.observe(&path("e"), dir(4));
    let old_below = nodes.observe(&path("e/f"), file(5));
    nodes.rename(&path("d"), &path("e"));
    assert_eq!(nodes.of_path(&path("e")).unwrap().0, from);
    assert_eq!(nodes.of_path(&path("e/f")).unwrap().0, below);
    assert_eq!(nodes.of_path(&path("de")).unwrap().0, beside);
    assert!(nodes.of_path(&path("d")).is_none() && nodes.of_path(&path("d/f")).is_none());
    assert!([old, old_below].iter().all(|&n| nodes.at(n).unwrap().is_stale));
}

#[test]
fn older_news_change_nothing() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let number = nodes.observe(&path("a"), seen(found(1, 100, 2), now));
    let earlier = now.checked_sub(Duration::from_millis(5)).unwrap();
    assert_eq!(nodes.observe(&path("a"), seen(found(1, 90, 1), earlier)), number);
    assert_eq!(nodes.at(number).unwrap().found.size, 100);
}

#[test]
fn a_node_lives_until_the_kernel_and_all_handles_have_left_it() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    let root = seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now);
    assert_eq!(nodes.observe(&StorePath::ROOT, root), ROOT);
    let number = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    nodes.look_up(number);
    nodes.look_up(number);
    nodes.at_mut(number).unwrap().opens = 1;
    assert_eq!(nodes.forget(number, 2), None);
    assert!(nodes.at(number).is_some());
    nodes.at_mut(number).unwrap().opens = 0;
    assert!(nodes.prune(number).is_some());
    assert!(nodes.at(number).is_none() && nodes.of_path(&path("a")).is_none());
    assert_eq!(nodes.forget(ROOT, 100), None);
    assert_eq!(nodes.len(), 1);
}

#[test]
fn a_node_that_nobody_was_given_goes_with_its_file() {
    let now = Instant::now();
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    for number in 10..100 {
        nodes.observe(&path("a"), seen(found(number, 1, 1), now));
    }
    assert_eq!(nodes.len(), 2);
}

#[test]
fn metadata_are_used_for_as_long_as_they_may() {
    let now = Instant::now();
    let second = Duration::from_secs(1);
    let half = Duration::from_millis(500);
    assert_eq!(rest(now, second, now + half), Some(half));
    assert_eq!(rest(now, second, now + second), None);
    assert_eq!(rest(now, Duration::ZERO, now), None);
}

#[test]
fn what_is_doubted_is_asked_for_again() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
    let number = nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    assert!(nodes.at(number).unwrap().fresh(second, now).is_some());
    nodes.doubt(&path("a"));
    nodes.observe(&path("a"), seen(found(1, 100, 1), now));
    assert!(nodes.at(number).unwrap().fresh(second, now).is_none(), "not by what was known");
    let later = now + Duration::from_millis(1);
    nodes.observe(&path("a"), seen(found(1, 100, 1), later));
    assert!(nodes.at(number).unwrap().fresh(second, later).is_some());
}

#[test]
fn numbers_are_those_of_the_server_whatever_was_known_before() {
    let now = Instant::now();
    let root = seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now);
    let mut nodes = Nodes::default();
    nodes.observe(&StorePath::ROOT, root.clone());
    let first = nodes.observe(&path("a"), seen(found(100, 1, 1), now));
    let elsewhere = Found { identity: Identity { device: 2, number: 100 }, ..found(0, 1, 1) };
    let second = nodes.observe(&path("b"), seen(elsewhere, now));
    assert_eq!(first, 100);
    assert_ne!(second, 100);
    // The file is truncated at the server while no program has it open.
    assert_eq!(nodes.observe(&path("a"), seen(found(100, 0, 2), now)), first);
    for number in [first, second] {
        nodes.look_up(number);
        nodes.forget(number, 1);
    }
    for nodes in [&mut nodes, &mut Nodes::default()] {
        nodes.observe(&StorePath::ROOT, root.clone());
        assert_eq!(nodes.observe(&path("b"), seen(elsewhere, now)), second);
        assert_eq!(nodes.number_of(&path("a"), &found(100, 1, 1)), first);
        assert_eq!(nodes.observe(&path("a"), seen(found(100, 1, 1), now)), first);
    }
}

#[test]
fn no_two_nodes_have_one_number() {
    for numbering in [Numbering::Identity, Numbering::Path] {
        let now = Instant::now();
        let mut nodes = Nodes::new(numbering);
        let mut rng = fastrand::Rng::with_seed(7);
        nodes.observe(&StorePath::ROOT, seen(Found { kind: Kind::Dir, ..found(9, 0, 0) }, now));
        let mut live = std::collections::HashMap::new();
        for _ in 0..20_000 {
            let name = path(&rng.u32(..50).to_string());
            let identity = Identity { device: rng.u64(1..3), number: rng.u64(..30) };
            let new = Found { identity, ..found(0, rng.u64(..3), rng.i64(..3)) };
            let told = nodes.number_of(&name, &new);
            let is_known = nodes.of_path(&name).is_some();
            let number = nodes.observe(&name, seen(new, now));
            assert!(is_known || number == told);
            assert_eq!(nodes.of_path(&name).unwrap().0, number);
            assert!(![0, ROOT, u64::MAX - 1, u64::MAX - 2].contains(&number));
            nodes.look_up(number);
            let (_, count) = live.entry(number).or_insert_with(|| (name.clone(), 0));
            *count += 1;
            assert!(live[&number].0 == name, "{number} is another path's");
            nodes.at_mut(number).unwrap().opens = rng.u64(..2);
            if rng.bool() {
                let all: Vec<u64> = live.keys().copied().collect();
                let gone = all[rng.usize(..all.len())];
                let (_, count) = live.remove(&gone).unwrap();
                nodes.at_mut(gone).unwrap().opens = 0;
                nodes.forget(gone, count);
                assert!(nodes.at(gone).is_none());
            }
        }
    }
}
