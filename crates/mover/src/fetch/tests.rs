//! Transfers from stores in memory, from channels of several kinds, and the threads that carry them out.

mod continued;
mod grown;
mod heads;
mod pooled;
mod written;

use crate::census::store_census;
use crate::tests::{self, cluster_with, get, put, random, same_names};
use crate::{Census, FetchError, Fetched, Meter, Parameters, ServerId, census};
use hikyaku_remote::Limits;
use hikyaku_store::{
    Asked, Cut, ErrorKind, Fault, Faulty, FetchError as Unfetched, Fetcher, FetcherTraits, Found,
    Kind, Memory, Operation, Segment, Store, StorePath, Wanted, When, fetchers,
};
use hikyaku_units::Rate;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Names and contents.
type Files = Vec<(String, Vec<u8>)>;

/// A store with files of many sizes, and the entries that a survey of it returns.
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

fn fetched(
    store: &Faulty<Memory>,
    all: &BTreeMap<Vec<u8>, Found>,
    target: &Arc<Memory>,
) -> Fetched {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    let servers = fetchers(&store, 4).unwrap();
    let (fetched, meter) = fetched_from(&servers, &store_census(all, servers.len()), target);
    if fetched.failed.is_empty() {
        assert_eq!(meter.files() as usize, all.len() - fetched.kept as usize);
    }
    fetched
}

fn fetched_from(
    servers: &[Arc<dyn Fetcher>],
    census: &Census,
    target: &Arc<Memory>,
) -> (Fetched, Meter) {
    let meter = Meter::new(servers.len());
    let fetched = tests::fetched_from(servers, census, target, &meter, Parameters::default());
    (fetched, meter)
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

#[test]
fn a_daemon_and_a_store_send_parts_of_one_transfer() {
    let (store, mut files, _) = filled();
    let large = random(77, 96 << 20);
    let daemon = Arc::new(Memory::default());
    files.push(("large".to_owned(), large));
    for (name, bytes) in &files {
        put(store.inner(), name, bytes);
        put(&daemon, name, bytes);
    }
    // Each of the two sends a part of what takes the other one long.
    let rate = Some(Rate::from_bits_per_sec(400_000_000));
    let cluster = cluster_with(vec![(daemon, rate)], Limits::default());
    let mut found = census(&cluster.clients, &StorePath::ROOT);
    for file in &mut found.files {
        // Versions are those of one store.
        (file.at, file.content) = (vec![ServerId(0), ServerId(1), ServerId(2)], None);
    }
    let store: Arc<dyn Store> = Arc::new(store);
    let mut servers: Vec<Arc<dyn Fetcher>> = vec![Arc::new(cluster.clients[0].clone())];
    servers.extend(fetchers(&store, 2).unwrap());
    servers.iter().skip(1).for_each(|server| server.limit(rate));
    let target = Arc::new(Memory::default());
    let (done, meter) = fetched_from(&servers, &found, &target);
    assert!(done.failed.is_empty() && done.lost.is_empty(), "{done:?}");
    for (name, bytes) in &files {
        assert!(get(&target, name).as_ref() == Some(bytes), "{name}");
    }
    let sent: Vec<u64> = meter.servers().iter().map(crate::ServerMeter::bytes).collect();
    assert!(sent[0] > 0 && sent[1] + sent[2] > 0, "{sent:?}");
}

/// A channel that counts the requests that run at once, and the threads that make them.
struct Counting {
    fetcher: Arc<dyn Fetcher>,
    requests_max: u32,
    running: AtomicU32,
    most: AtomicU32,
    threads: Mutex<HashSet<ThreadId>>,
}

impl Counting {
    fn counted<T>(&self, work: impl FnOnce() -> T) -> T {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        self.threads.lock().unwrap().insert(thread::current().id());
        thread::yield_now();
        let done = work();
        self.running.fetch_sub(1, Ordering::SeqCst);
        done
    }
}

impl Fetcher for Counting {
    fn traits(&self) -> FetcherTraits {
        FetcherTraits { requests_max: self.requests_max, ..self.fetcher.traits() }
    }

    fn ranges(
        &self,
        file: &Wanted,
        asked: &Asked<'_>,
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, Unfetched> {
        self.counted(|| self.fetcher.ranges(file, asked, cut, arrived, each))
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), Unfetched> {
        self.counted(|| self.fetcher.small(files, cut, arrived, each))
    }

    fn limit(&self, rate: Option<Rate>) {
        self.fetcher.limit(rate);
    }

    fn round_trip(&self) -> Duration {
        self.fetcher.round_trip()
    }

    fn is_alive(&self) -> bool {
        self.fetcher.is_alive()
    }

    fn close(&self, why: &str) {
        self.fetcher.close(why);
    }
}

#[test]
fn a_channel_has_as_many_threads_as_it_may_have_requests() {
    let store = Memory::default();
    for n in 0..40 {
        put(&store, &format!("{n}"), &random(n, 300_000));
    }
    let found = store.list(&StorePath::ROOT, None, 100).unwrap().items.into_iter();
    let all: BTreeMap<_, _> =
        found.map(|item| (item.name.as_bytes().to_vec(), item.found)).collect();
    let store: Arc<dyn Store> = Arc::new(store);
    let counting = Arc::new(Counting {
        fetcher: fetchers(&store, 1).unwrap().remove(0),
        requests_max: 3,
        running: AtomicU32::new(0),
        most: AtomicU32::new(0),
        threads: Mutex::default(),
    });
    let server: Arc<dyn Fetcher> = counting.clone();
    let target = Arc::new(Memory::default());
    let (done, _) = fetched_from(&[server], &store_census(&all, 1), &target);
    assert_eq!((done.files, done.failed.len()), (40, 0), "{done:?}");
    let (most, threads) = (counting.most.load(Ordering::SeqCst), counting.threads.lock().unwrap());
    assert!(most <= 3 && threads.len() <= 3, "{most} at once by {} threads", threads.len());
}
