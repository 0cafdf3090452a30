//! Uploads to several servers in this process.

use super::*;
use crate::choice::{Choice, Selection};
use crate::fetch::FetchError;
use crate::session::ClientParameters;
use crate::tests::{Cluster, Files, cluster_with, get, path, put, random, run, stores};
use hikyaku_remote::{Limits, RemoteError, Writes};
use hikyaku_store::{ErrorKind, Finish, Make, Memory, Naming, Store, Time, fetchers};
use hikyaku_units::Rate;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

mod channels;

const MB: u64 = 1 << 20;
const HOUR: Duration = Duration::from_secs(3600);
const PLAIN: ClientParameters = ClientParameters::USUAL;

/// Servers that may be written to.
fn servers(stores: &[Arc<Memory>], rate: Option<Rate>) -> Cluster {
    let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
    cluster_with(stores.iter().map(|store| (store.clone(), rate)).collect(), limits)
}

fn empty(count: usize) -> Vec<Arc<Memory>> {
    (0..count).map(|_| Arc::default()).collect()
}

/// A tree with files of many sizes, and what is in it.
fn tree() -> (Arc<dyn Store>, Files) {
    let (stores, files) = stores();
    let all = Memory::default();
    all.make_dir(&path("d"), 0o755).unwrap();
    all.make_dir(&path("d/empty"), 0o550).unwrap();
    all.make_link(&path("d/link"), b"file 1").unwrap();
    files.iter().for_each(|(name, bytes)| put(&all, name, bytes));
    drop(stores);
    (Arc::new(all), files)
}

fn plan(source: &Arc<dyn Store>, to: &str) -> Plan {
    let mut plan = Plan::default();
    let from = path("d");
    let found = source.look(&from).unwrap();
    plan.add(source, (&from, found), &path(to), &Selection::new(&Choice::TREES));
    plan
}

struct Given<'a> {
    existing: Existing,
    redial: &'a (dyn Fn(ServerId) -> Option<Client> + Sync),
    stop: &'a AtomicBool,
    parameters: ClientParameters,
}

/// What is copied, and the store that has it.
type What<'a> = (&'a Arc<dyn Store>, &'a Plan);

fn upload_with(cluster: &Cluster, (source, plan): What<'_>, given: &Given<'_>) -> (Fetched, Meter) {
    let meter = Meter::new(cluster.clients.len());
    let channels = fetchers(source, 3 * cluster.clients.len()).unwrap();
    let mut plan = plan.clone();
    plan.is_from(channels.len());
    let job = UploadJob {
        servers: &cluster.clients,
        redial: given.redial,
        source: Source { channels: &channels, redial: &|_| None, counted: Counted::Target },
        plan: &plan,
        existing: given.existing,
        same: Same::SizeAndTime,
        times: Times::Kept,
        pass: Pass::Copy,
        dress: crate::Dress::Usual { umask: 0o022 },
        parameters: Parameters { client: given.parameters, ..Parameters::default() },
        patience: Duration::from_millis(300),
        meter: &meter,
        stop: given.stop,
    };
    let uploaded = upload(&job).unwrap();
    (uploaded, meter)
}

fn uploaded(cluster: &Cluster, what: What<'_>) -> Fetched {
    let stop = AtomicBool::new(false);
    let given =
        Given { existing: Existing::Replaced, redial: &|_| None, stop: &stop, parameters: PLAIN };
    upload_with(cluster, what, &given).0
}

#[test]
fn a_tree_that_went_to_three_servers_comes_back_the_same() {
    let (source, files) = tree();
    let stores = empty(3);
    let cluster = servers(&stores, None);
    let sent = uploaded(&cluster, (&source, &plan(&source, "new")));
    assert_eq!((sent.files, sent.failed.len()), (60, 0), "{:?}", sent.failed);
    assert_eq!(sent.bytes, files.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    let target = Arc::new(Memory::default());
    let fetched = run(&cluster, &target);
    assert_eq!((fetched.files, fetched.failed.len()), (60, 0), "{:?}", fetched.failed);
    for (name, bytes) in &files {
        let name = name.replacen('d', "new", 1);
        assert!(get(&target, &name).as_ref() == Some(bytes), "{name}");
        assert_eq!(target.look(&path(&name)).unwrap().modified, Time { secs: 1_000_000, nanos: 5 });
        let replicas = stores.iter().filter(|store| store.look(&path(&name)).is_ok()).count();
        assert_eq!(replicas, 1, "{name}");
    }
    assert_eq!(target.read_link(&path("new/link")).unwrap(), b"file 1");
    assert_eq!(target.look(&path("new/empty")).unwrap().mode, 0o550);
}

#[test]
fn what_the_servers_have_is_not_sent_again() {
    let (source, files) = tree();
    let stores = empty(3);
    let cluster = servers(&stores, None);
    uploaded(&cluster, (&source, &plan(&source, "d")));
    let name = &files[6].0;
    let holder = stores.iter().find(|store| store.look(&path(name)).is_ok()).unwrap();
    put(holder, name, b"another size");
    let again = uploaded(&cluster, (&source, &plan(&source, "d")));
    assert_eq!((again.files, again.kept), (1, 59), "{:?}", again.failed);
    assert!(get(holder, name).as_ref() == Some(&files[6].1));
}

#[test]
fn older_versions_are_replaced_where_they_are() {
    let (source, files) = tree();
    let stores = empty(3);
    stores.iter().for_each(|store| store.make_dir(&path("d"), 0o755).unwrap());
    for (n, (name, _)) in files.iter().enumerate() {
        put(&stores[n % 3], name, b"old");
        put(&stores[(n + 1) % 3], name, b"old too");
    }
    let cluster = servers(&stores, None);
    let stop = AtomicBool::new(false);
    for (existing, count) in [(Existing::Kept, 0), (Existing::Replaced, 60)] {
        let given = Given { existing, redial: &|_| None, stop: &stop, parameters: PLAIN };
        let (sent, _) = upload_with(&cluster, (&source, &plan(&source, "d")), &given);
        assert_eq!((sent.files, sent.kept), (count, 60 - count), "{:?}", sent.failed);
    }
    for (n, (name, bytes)) in files.iter().enumerate() {
        for replica in [&stores[n % 3], &stores[(n + 1) % 3]] {
            assert!(get(replica, name).as_ref() == Some(bytes), "{name}");
        }
        assert!(get(&stores[(n + 2) % 3], name).is_none(), "{name}");
    }
}

#[test]
fn files_of_a_server_that_dies_go_to_the_others() {
    let (source, files) = tree();
    let stores = empty(3);
    let cluster = servers(&stores, Some(Rate::from_bits_per_sec(100_000_000)));
    let killed = cluster.ends[1].clone();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        killed.close(1, "killed");
    });
    let stop = AtomicBool::new(false);
    let given =
        Given { existing: Existing::Replaced, redial: &|_| None, stop: &stop, parameters: PLAIN };
    let (sent, meter) = upload_with(&cluster, (&source, &plan(&source, "d")), &given);
    killer.join().unwrap();
    assert_eq!((sent.files, sent.failed.len()), (60, 0), "{:?}", sent.failed);
    assert_eq!(sent.lost.len(), 1);
    assert!(meter.servers()[1].is_lost());
    let total: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    assert_eq!(meter.written(), total, "bytes that were lost do not count");
    for (name, bytes) in &files {
        // What the dead one had named before it died is there and whole.
        let there = stores.iter().filter_map(|store| get(store, name));
        assert!(there.into_iter().all(|found| found == *bytes), "{name}");
        assert!(stores.iter().any(|store| store.look(&path(name)).is_ok()), "{name}");
    }
}

#[test]
fn a_lone_server_that_comes_back_gets_the_rest() {
    let (source, files) = tree();
    let stores = empty(1);
    let cluster = servers(&stores, Some(Rate::from_bits_per_sec(200_000_000)));
    let again = servers(&stores, None);
    let killed = cluster.ends[0].clone();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        killed.close(1, "killed");
    });
    let stop = AtomicBool::new(false);
    let redial = |_| Some(again.clients[0].clone());
    let meter = Meter::new(1);
    let mut plan = plan(&source, "d");
    let channels = fetchers(&source, 3).unwrap();
    plan.is_from(channels.len());
    let job = UploadJob {
        servers: &cluster.clients,
        redial: &redial,
        source: Source { channels: &channels, redial: &|_| None, counted: Counted::Target },
        plan: &plan,
        existing: Existing::Replaced,
        same: Same::SizeAndTime,
        times: Times::Kept,
        pass: Pass::Copy,
        dress: crate::Dress::Usual { umask: 0 },
        parameters: Parameters::default(),
        patience: Duration::from_secs(20),
        meter: &meter,
        stop: &stop,
    };
    let sent = upload(&job).unwrap();
    killer.join().unwrap();
    assert_eq!((sent.files, sent.failed.len(), sent.lost.len()), (60, 0, 1), "{:?}", sent.failed);
    assert!(files.iter().all(|(name, bytes)| get(&stores[0], name).as_ref() == Some(bytes)));
}

#[test]
fn files_that_no_server_can_take_any_more_fail() {
    let (source, _) = tree();
    let stores = empty(2);
    stores[1].make_dir(&path("d"), 0o755).unwrap();
    put(&stores[1], "d/file 6", b"old");
    let cluster = servers(&stores, Some(Rate::from_bits_per_sec(20_000_000)));
    let killed = cluster.ends.clone();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        killed.iter().for_each(|end| end.close(1, "killed"));
    });
    let sent = uploaded(&cluster, (&source, &plan(&source, "d")));
    killer.join().unwrap();
    assert_eq!(sent.files + sent.failed.len() as u64, 60, "{:?}", sent.failed);
    assert!(sent.failed.iter().any(|(_, error)| *error == FetchError::NoTaker));
    assert_eq!(sent.lost.len(), 2);
}

#[test]
fn holes_of_a_file_are_not_sent_and_become_holes() {
    let all = Memory::default();
    all.make_dir(&path("d"), 0o755).unwrap();
    let mib = MB as usize;
    // Holes at the begin, in the middle, and at the end; a segment that is partly a hole; no data at all.
    let files: Files = [
        (40 * mib, vec![(20 * mib, mib), (30 * mib + 5, 70_000)]),
        (3 * mib + 100, vec![(0, 10), (3 * mib, 100)]),
        (9 * mib, Vec::new()),
    ]
    .into_iter()
    .enumerate()
    .map(|(number, (size, data))| {
        let draft = all.create(&path(&format!("d/{number}")), &Make::default()).unwrap();
        let mut bytes = vec![0; size];
        for (at, length) in data {
            bytes[at..at + length].copy_from_slice(&random(at as u64, length));
            draft.write_at(at as u64, &bytes[at..at + length]).unwrap();
        }
        draft.set_len(size as u64).unwrap();
        draft.name(Naming::Replace, &Finish::default()).unwrap();
        (format!("d/{number}"), bytes)
    })
    .collect();
    let source: Arc<dyn Store> = Arc::new(all);
    let stores = empty(1);
    let cluster = servers(&stores, None);
    let sent = uploaded(&cluster, (&source, &plan(&source, "d")));
    assert_eq!((sent.files, sent.failed.len()), (3, 0), "{:?}", sent.failed);
    for (name, bytes) in &files {
        assert!(get(&stores[0], name).as_ref() == Some(bytes), "{name}");
        let used = |store: &dyn Store| store.look(&path(name)).unwrap().allocated;
        let (before, after) = (used(&*source), used(&*stores[0]));
        assert!(after <= before.next_multiple_of(MB) + 3 * MB, "{name}: {before}, {after}");
    }
}

#[test]
fn a_file_that_changed_since_it_was_found_fails_alone() {
    let (source, _) = tree();
    let plan = plan(&source, "d");
    for changed in ["d/file 5", "d/file 6"] {
        // The file keeps its size and time: its content has another version.
        let found = source.look(&path(changed)).unwrap();
        let draft = source.create(&path(changed), &Make::default()).unwrap();
        draft.write_at(0, &vec![1; found.size as usize]).unwrap();
        let finish = Finish { modified: Some(found.modified), ..Finish::default() };
        draft.name(Naming::Replace, &finish).unwrap();
    }
    let stores = empty(2);
    let sent = uploaded(&servers(&stores, None), (&source, &plan));
    assert_eq!((sent.files, sent.failed.len()), (58, 2), "{:?}", sent.failed);
    let is_change = |error: &FetchError| match error {
        FetchError::Source(error) => error.kind == ErrorKind::Changed,
        _ => false,
    };
    assert!(sent.failed.iter().all(|(_, error)| is_change(error)));
    assert!(stores.iter().all(|store| store.look(&path("d/file 6")).is_err()));
}

#[test]
fn a_full_server_leaves_files_to_the_others() {
    let (source, files) = tree();
    let small = Arc::new(Memory::with_room(4 * MB));
    let stores = [small.clone(), Arc::default()];
    let sent = uploaded(&servers(&stores, None), (&source, &plan(&source, "d")));
    assert_eq!((sent.files, sent.failed.len()), (60, 0), "{:?}", sent.failed);
    for (name, bytes) in &files {
        let found = stores.iter().find_map(|store| get(store, name));
        assert!(found.as_ref() == Some(bytes), "{name}");
    }
    // Where all are full, what does not fit fails, and says why.
    let sent = uploaded(
        &servers(&[Arc::new(Memory::with_room(4 * MB))], None),
        (&source, &plan(&source, "d")),
    );
    assert!(sent.files > 0 && !sent.failed.is_empty());
    assert_eq!(sent.files + sent.failed.len() as u64, 60);
    let is_full = |error: &FetchError| match error {
        FetchError::Server(RemoteError::Refused { kind, .. }) => *kind == ErrorKind::NoSpace,
        _ => false,
    };
    assert!(sent.failed.iter().all(|(_, error)| is_full(error)), "{:?}", sent.failed);
}

#[test]
fn an_upload_that_is_stopped_leaves_whole_files_only() {
    let (source, files) = tree();
    let stores = empty(2);
    let cluster = servers(&stores, Some(Rate::from_bits_per_sec(50_000_000)));
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        told.store(true, Ordering::Relaxed);
    });
    let given =
        Given { existing: Existing::Replaced, redial: &|_| None, stop: &stop, parameters: PLAIN };
    let (sent, _) = upload_with(&cluster, (&source, &plan(&source, "d")), &given);
    stopper.join().unwrap();
    assert!(sent.failed.iter().any(|(_, error)| *error == FetchError::Stopped));
    for (name, bytes) in &files {
        assert!(stores.iter().filter_map(|store| get(store, name)).all(|found| found == *bytes));
    }
}

#[test]
fn a_directory_in_the_place_of_a_file_is_told() {
    let (source, _) = tree();
    let stores = empty(2);
    stores[1].make_dir(&path("d"), 0o755).unwrap();
    stores[1].make_dir(&path("d/file 3"), 0o755).unwrap();
    let sent = uploaded(&servers(&stores, None), (&source, &plan(&source, "d")));
    assert_eq!((sent.files, sent.failed.len()), (59, 1), "{:?}", sent.failed);
    assert!(sent.failed[0].1.to_string().contains("is a directory"), "{:?}", sent.failed);
}

#[test]
fn a_server_that_may_not_be_written_to_refuses_each_file() {
    let (source, _) = tree();
    let read_only = cluster_with(vec![(Arc::default(), None)], Limits::default());
    let sent = uploaded(&read_only, (&source, &plan(&source, "d")));
    assert_eq!(sent.files, 0);
    let is_refusal = |error: &FetchError| error.to_string().contains("read-only");
    assert!(sent.failed.iter().all(|(_, error)| is_refusal(error)), "{:?}", sent.failed);
}

#[test]
fn a_server_whose_turn_has_not_come_gets_nothing() {
    let (source, _) = tree();
    let stores = empty(2);
    let cluster = servers(&stores, None);
    let stop = AtomicBool::new(false);
    let parameters = ClientParameters { stagger: HOUR, ..PLAIN };
    let given = Given { existing: Existing::Replaced, redial: &|_| None, stop: &stop, parameters };
    let (sent, meter) = upload_with(&cluster, (&source, &plan(&source, "d")), &given);
    assert_eq!((sent.files, sent.failed.len()), (60, 0), "{:?}", sent.failed);
    assert!(meter.servers()[0].bytes() > 0);
    assert_eq!(meter.servers()[1].bytes(), 0);
}

#[test]
fn a_stream_that_pauses_sends_no_second_file() {
    let (source, _) = tree();
    let stores = empty(1);
    let cluster = servers(&stores, None);
    let stop = AtomicBool::new(false);
    let parameters = ClientParameters { pause: HOUR, streams: 2, ..PLAIN };
    let given = Given { existing: Existing::Replaced, redial: &|_| None, stop: &stop, parameters };
    let sent = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            stop.store(true, Ordering::Relaxed);
        });
        upload_with(&cluster, (&source, &plan(&source, "d")), &given).0
    });
    // Each of the two streams has sent one, at most.
    assert!(sent.files <= 2, "{}", sent.files);
}
