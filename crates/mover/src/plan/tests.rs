//! Plans of a store that are copied into stores in memory, also into one that is too small.

use super::*;
use crate::choice::{Choice, InTheWay, Selection};
use crate::{FetchError, Fetched, Job, Meter, Same, Times, fetch};
use hikyaku_store::{Access, ErrorKind, Finish, Kind, Make, Memory, Naming, Store, Time, fetchers};
use hikyaku_transfer::{Existing, Pass};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn put(store: &dyn Store, at: &str, bytes: &[u8], secs: i64) {
    let draft = store.create(&path(at), &Make::default()).unwrap();
    draft.write_at(0, bytes).unwrap();
    let modified = Some(Time { secs, nanos: 0 });
    draft.name(Naming::Replace, &Finish { modified, ..Finish::default() }).unwrap();
}

fn get(store: &dyn Store, at: &str) -> Vec<u8> {
    let open = store.open(&path(at), Access::Read).unwrap();
    let mut bytes = vec![0; open.found().unwrap().size as usize];
    assert_eq!(open.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// A tree with a directory that nobody may write to, a link, an empty file and one of several blocks.
fn tree() -> (Arc<dyn Store>, Vec<u8>) {
    let store = Memory::default();
    store.make_dir(&path("t"), 0o755).unwrap();
    store.make_dir(&path("t/d"), 0o555).unwrap();
    store.make_link(&path("t/l"), b"d").unwrap();
    let large: Vec<u8> = (0..2_500_000_u32).map(|n| n as u8 ^ (n >> 8) as u8).collect();
    put(&store, "t/empty", b"", 1);
    put(&store, "t/d/large", &large, 2);
    (Arc::new(store), large)
}

fn plan(source: &Arc<dyn Store>) -> Plan {
    let mut plan = Plan::default();
    let (from, to) = (path("t"), path("to"));
    let found = source.look(&from).unwrap();
    plan.add(source, (&from, found), &to, &Selection::new(&Choice::TREES));
    plan.is_from(4);
    plan
}

fn run_with(
    store: &Memory,
    what: (&Arc<dyn Store>, &Plan),
    rules: (Existing, Pass),
) -> (Fetched, Meter) {
    run_by(store, what, rules, (Times::Kept, Same::SizeAndTime))
}

fn run_by(
    store: &Memory,
    (source, plan): (&Arc<dyn Store>, &Plan),
    (existing, pass): (Existing, Pass),
    (times, same): (Times, Same),
) -> (Fetched, Meter) {
    let (meter, stop) = (Meter::new(0), AtomicBool::new(false));
    let servers = fetchers(source, 4).unwrap();
    let fetched = fetch(&Job {
        patience: Duration::from_millis(300),
        dress: crate::Dress::Usual { umask: 0o022 },
        times,
        same,
        existing,
        pass,
        ..Job::new(&servers, plan, Arc::new(store.clone()), (&meter, &stop))
    });
    (fetched.unwrap(), meter)
}

fn run(store: &Memory, what: (&Arc<dyn Store>, &Plan), existing: Existing) -> (Fetched, Meter) {
    run_with(store, what, (existing, Pass::Copy))
}

#[test]
fn a_tree_is_copied_once_and_kept_the_second_time() {
    let (source, large) = tree();
    let (store, plan) = (Memory::default(), plan(&source));
    let (done, meter) = run(&store, (&source, &plan), Existing::Replaced);
    assert!(done.failed.is_empty(), "{:?}", done.failed);
    assert_eq!((done.files, done.bytes, meter.written()), (2, 2_500_000, 2_500_000));
    assert!(get(&store, "to/d/large") == large);
    assert_eq!(store.look(&path("to/d")).unwrap().mode & 0o777, 0o555);
    assert_eq!(store.look(&path("to/d/large")).unwrap().modified.secs, 2);
    assert_eq!(store.read_link(&path("to/l")).unwrap(), b"d");
    let (again, _) = run(&store, (&source, &plan), Existing::Replaced);
    assert_eq!((again.files, again.kept), (0, 2));
}

#[test]
fn with_the_habits_of_scp_files_are_copied_again_and_are_new() {
    let (source, _) = tree();
    let (store, plan) = (Memory::default(), plan(&source));
    let run = |existing| {
        let rules = (existing, Pass::Copy);
        run_by(&store, (&source, &plan), rules, (Times::New, Same::Never)).0
    };
    for _ in 0..2 {
        assert_eq!(run(Existing::Replaced).files, 2);
    }
    for at in ["to/d/large", "to/empty"] {
        // The clock of a store in memory begins at 0, and the source has later times.
        assert_eq!(store.look(&path(at)).unwrap().modified.secs, 0, "{at}");
    }
}

#[test]
fn an_older_file_stays_if_the_user_wants_it() {
    let (source, large) = tree();
    let (store, plan) = (Memory::default(), plan(&source));
    store.make_dir(&path("to"), 0o755).unwrap();
    store.make_dir(&path("to/d"), 0o755).unwrap();
    put(&store, "to/d/large", b"other", 1);
    assert_eq!(run(&store, (&source, &plan), Existing::Kept).0.kept, 1);
    assert_eq!(get(&store, "to/d/large"), b"other");
    assert_eq!(run(&store, (&source, &plan), Existing::KeptIfNewer).0.files, 1);
    assert!(get(&store, "to/d/large") == large);
    put(&store, "to/d/large", b"newer", 3);
    assert_eq!(run(&store, (&source, &plan), Existing::KeptIfNewer).0.files, 0);
    assert_eq!(run(&store, (&source, &plan), Existing::Replaced).0.files, 1);
}

/// Links with their places, texts and times.
fn links(all: &[(&str, &str, i64)]) -> Vec<(StorePath, Link)> {
    let link = |(at, text, secs): &(&str, &str, i64)| {
        let modified = Time { secs: *secs, nanos: 0 };
        (path(at), Link { text: text.as_bytes().to_vec(), modified })
    };
    all.iter().map(link).collect()
}

#[test]
fn a_link_replaces_only_what_the_user_does_not_keep() {
    let (source, _) = tree();
    let plan = Plan { links: links(&[("to/l", "d", 5)]), ..plan(&source) };
    for (existing, time, is_link) in [
        (Existing::Kept, 3, false),
        (Existing::KeptIfNewer, 3, true),
        (Existing::KeptIfNewer, 5, false),
        (Existing::Replaced, 7, true),
    ] {
        let store = Memory::default();
        store.make_dir(&path("to"), 0o755).unwrap();
        put(&store, "to/l", b"mine", time);
        let (done, _) = run(&store, (&source, &plan), existing);
        assert!(done.failed.is_empty(), "{existing:?}: {:?}", done.failed);
        let kind = store.look(&path("to/l")).unwrap().kind;
        assert_eq!(kind == Kind::Link, is_link, "{existing:?} {time}");
    }
}

#[test]
fn another_link_is_replaced_and_a_directory_is_not() {
    let (source, _) = tree();
    let plan = Plan { links: links(&[("to/l", "d", 5), ("to/k", "x", 5)]), ..plan(&source) };
    let store = Memory::default();
    store.make_dir(&path("to"), 0o755).unwrap();
    store.make_dir(&path("to/k"), 0o755).unwrap();
    store.make_link(&path("to/l"), b"elsewhere").unwrap();
    let (done, _) = run(&store, (&source, &plan), Existing::Replaced);
    assert_eq!(store.read_link(&path("to/l")).unwrap(), b"d");
    let [(of, FetchError::InTheWay(InTheWay::Directory))] = &done.failed[..] else {
        panic!("{:?}", done.failed)
    };
    assert_eq!(of, b"to/k");
}

#[test]
fn what_is_in_the_way_of_a_directory_is_told_once() {
    let (source, _) = tree();
    let plan = plan(&source);
    for (pass, others) in [(Pass::DryRun, 2), (Pass::Copy, 1)] {
        let store = Memory::default();
        store.make_dir(&path("to"), 0o755).unwrap();
        put(&store, "to/d", b"a file", 1);
        let (done, _) = run_with(&store, (&source, &plan), (Existing::Replaced, pass));
        let [(of, FetchError::InTheWay(InTheWay::NoDirectory))] = &done.failed[..] else {
            panic!("{:?}", done.failed)
        };
        assert_eq!(of, b"to/d");
        assert_eq!(get(&store, "to/d"), b"a file");
        // A rehearsal tells of the link beside it too.
        assert_eq!(done.files + done.would.len() as u64, others);
    }
}

#[test]
fn a_file_is_not_copied_over_a_directory_or_from_a_changed_source() {
    let (source, _) = tree();
    let (store, plan) = (Memory::default(), plan(&source));
    store.make_dir(&path("to"), 0o755).unwrap();
    store.make_dir(&path("to/empty"), 0o755).unwrap();
    put(&*source, "t/d/large", b"changed", 4);
    let (done, meter) = run(&store, (&source, &plan), Existing::Replaced);
    let mut why: Vec<_> = done
        .failed
        .iter()
        .map(|(path, error)| (String::from_utf8_lossy(path).into_owned(), error.to_string()))
        .collect();
    why.sort();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(why[0].1.contains("changed") && why[1].1.contains("directory"), "{why:?}");
    assert_eq!(meter.written(), 0);
}

#[test]
fn a_full_store_is_told_and_nothing_of_the_file_stays() {
    let (source, _) = tree();
    let (store, plan) = (Memory::with_room(1_500_000), plan(&source));
    let (done, meter) = run(&store, (&source, &plan), Existing::Replaced);
    let why: Vec<_> = done.failed.iter().map(|(path, error)| (&path[..], error)).collect();
    let [(path_of, FetchError::Target(error))] = why[..] else { panic!("{why:?}") };
    assert_eq!((path_of, error.kind), (&b"t/d/large"[..], ErrorKind::NoSpace));
    assert_eq!((done.files, meter.written()), (1, 0));
    let listed = store.list(&path("to/d"), None, 10).unwrap();
    assert!(listed.items.is_empty());
}
