//! A store in memory, read by several requests at once.

use crate::tests::{get, put, random, same_names};
use crate::{
    FetchError, Fetched, Job, Meter, Parameters, Server, StoreServer, fetch, store_census,
};
use hikyaku_store::{
    ErrorKind, Fault, Faulty, Found, Kind, Memory, Operation, Store, StorePath, Version, When,
};
use hikyaku_transfer::{Existing, Pass};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Names and contents.
type Files = Vec<(String, Vec<u8>)>;

/// Files of many sizes in a store, and what a survey of it tells.
fn filled() -> (Faulty<Memory>, Files, BTreeMap<Vec<u8>, Found>) {
    let (store, mut files, mut all) = (Memory::default(), Vec::new(), BTreeMap::new());
    for (n, size) in [0, 1, 300, 70_000, 1 << 20, (5 << 20) + 17, 3].into_iter().enumerate() {
        let (name, bytes) = (format!("f{n}"), random(n as u64, size));
        put(&store, &name, &bytes);
        files.push((name, bytes));
    }
    for item in store.list(&StorePath::ROOT, None, 100).unwrap().items {
        all.insert(item.name.as_bytes().to_vec(), item.found);
    }
    (Faulty::new(store), files, all)
}

fn versions(all: &BTreeMap<Vec<u8>, Found>) -> HashMap<Vec<u8>, Version> {
    all.iter().filter_map(|(path, found)| Some((path.clone(), found.version?))).collect()
}

fn fetched(
    store: &Faulty<Memory>,
    all: &BTreeMap<Vec<u8>, Found>,
    target: &Arc<Memory>,
) -> Fetched {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    let servers: Vec<Server> =
        StoreServer::several(&store, versions(all), 4).into_iter().map(Server::Store).collect();
    let meter = Meter::new(servers.len());
    let fetched = fetch(&Job {
        servers: &servers,
        redial: &|_| None,
        plan: &same_names(store_census(all, servers.len())),
        store: target.clone(),
        dress: crate::Dress::Usual { umask: 0 },
        taking: crate::Taking::AnyOrder,
        existing: Existing::Replaced,
        pass: Pass::Copy,
        patience: Duration::from_millis(300),
        parameters: Parameters::default(),
        meter: &meter,
        stop: &AtomicBool::new(false),
    })
    .unwrap();
    if fetched.failed.is_empty() {
        assert_eq!(meter.files() as usize, all.len() - fetched.kept as usize);
    }
    fetched
}

#[test]
fn files_of_a_store_come_whole_and_are_kept_the_second_time() {
    let (store, files, all) = filled();
    let target = Arc::new(Memory::default());
    let done = fetched(&store, &all, &target);
    assert!(done.failed.is_empty() && done.lost.is_empty(), "{done:?}");
    for (name, bytes) in &files {
        assert!(get(&target, name).as_ref() == Some(bytes), "{name}");
    }
    assert_eq!(fetched(&store, &all, &target).kept as usize, files.len());
}

#[test]
fn another_content_than_was_surveyed_is_refused() {
    let (store, _, all) = filled();
    put(store.inner(), "f5", &random(99, (5 << 20) + 17));
    put(store.inner(), "f2", &random(99, 300));
    let target = Arc::new(Memory::default());
    let done = fetched(&store, &all, &target);
    let mut failed: Vec<_> = done.failed.iter().map(|(path, _)| path.as_slice()).collect();
    failed.sort_unstable();
    assert_eq!(failed, [b"f2", b"f5"], "{done:?}");
    let is_changed = |error: &FetchError| error.to_string().contains("changed");
    assert!(done.failed.iter().all(|(_, error)| is_changed(error)), "{done:?}");
    assert_eq!(target.list(&StorePath::ROOT, None, 100).unwrap().items.len(), all.len() - 2);
    assert!(all.values().all(|found| found.kind == Kind::File));
}

#[test]
fn a_request_that_fails_is_made_by_another() {
    let (store, files, all) = filled();
    let when = When { operation: Operation::Read, path: None, nth: 3, times: 1 };
    store.add(when, Fault::Error(ErrorKind::Unreachable));
    let target = Arc::new(Memory::default());
    let done = fetched(&store, &all, &target);
    assert_eq!(store.struck(), 1);
    assert!(done.failed.is_empty() && done.lost.len() == 1, "{done:?}");
    for (name, bytes) in &files {
        assert!(get(&target, name).as_ref() == Some(bytes), "{name}");
    }
}
