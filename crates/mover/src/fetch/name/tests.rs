//! Files that go into stores behind a network, which take their bytes in order or whole.

use crate::tests::{cluster_of, fetched_with, get, path, put, stores};
use crate::{FetchError, Fetched, Meter, Parameters, census};
use hikyaku_store::{ErrorKind, Fault, Faulty, Memory, Operation, Store, StorePath, When, Writes};
use std::sync::Arc;

fn target(writes: Writes) -> Arc<Faulty<Memory>> {
    Arc::new(Faulty::new(Memory::default()).far(writes))
}

fn strike(target: &Faulty<Memory>, operation: Operation, at: &str, times: u32, kind: ErrorKind) {
    let when = When { operation, path: Some(path(at)), nth: 1, times };
    target.add(when, Fault::Error(kind));
}

fn fetched(from: &[Arc<Memory>], target: &Arc<Faulty<Memory>>) -> (Fetched, Meter) {
    let cluster = cluster_of(from);
    let meter = Meter::new(from.len());
    let census = census(&cluster.clients, &StorePath::ROOT);
    (fetched_with(&cluster, &census, target, &meter, Parameters::default()), meter)
}

#[test]
fn files_of_several_servers_arrive_in_the_order_that_a_store_takes() {
    let (servers, files) = stores();
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    for writes in [Writes::InOrder, Writes::Runs, Writes::Window { bytes: 1 << 20 }] {
        let target = target(writes);
        let (done, meter) = fetched(&servers, &target);
        assert_eq!((done.files, done.failed.len()), (60, 0), "{writes:?}: {:?}", done.failed);
        assert_eq!(meter.written(), bytes as u64);
        for (name, bytes) in &files {
            assert!(get(target.inner(), name).as_ref() == Some(bytes), "{writes:?} {name}");
        }
        let again = fetched(&servers, &target).0;
        assert_eq!((again.files, again.kept), (0, 60), "{writes:?}");
    }
}

#[test]
fn a_file_whose_place_is_lost_begins_anew() {
    let (servers, files) = stores();
    let target = target(Writes::InOrder);
    // A large file is lost while it is written and before it has its name, and a small one once.
    strike(&target, Operation::Write, "d/file 6", 1, ErrorKind::Unreachable);
    strike(&target, Operation::Name, "d/file 6", 1, ErrorKind::TimedOut);
    strike(&target, Operation::Create, "d/file 2", 1, ErrorKind::Gone);
    let (done, meter) = fetched(&servers, &target);
    assert_eq!((done.files, done.failed.len()), (60, 0), "{:?}", done.failed);
    assert!(files.iter().all(|(name, bytes)| get(target.inner(), name).as_ref() == Some(bytes)));
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!((target.struck(), meter.written()), (3, bytes as u64));
}

#[test]
fn a_place_that_stays_lost_and_other_errors_fail_a_file() {
    let server = Arc::new(Memory::default());
    for name in ["away", "full", "good"] {
        put(&server, name, &vec![7; 3 << 20]);
    }
    put(&server, "small", b"x");
    let target = target(Writes::InOrder);
    strike(&target, Operation::Write, "away", 100, ErrorKind::Unreachable);
    strike(&target, Operation::Write, "full", 1, ErrorKind::NoSpace);
    strike(&target, Operation::Create, "small", 1, ErrorKind::Denied);
    let (done, meter) = fetched(&[server], &target);
    let mut failed: Vec<_> = done.failed.iter().collect();
    failed.sort_by(|one, other| one.0.cmp(&other.0));
    let kind = |(path, error): &(Vec<u8>, FetchError)| match error {
        FetchError::Target(error) => (String::from_utf8_lossy(path).into_owned(), error.kind),
        other => panic!("{other}"),
    };
    let failed: Vec<_> = failed.into_iter().map(kind).collect();
    let wanted = [
        ("away", ErrorKind::Unreachable),
        ("full", ErrorKind::NoSpace),
        ("small", ErrorKind::Denied),
    ];
    assert_eq!(failed, wanted.map(|(name, kind)| (name.to_owned(), kind)));
    // A file without a name does not count.
    assert_eq!((done.files, meter.written()), (1, 3 << 20));
    let names = target.list(&StorePath::ROOT, None, 10).unwrap().items;
    assert_eq!(names.len(), 1);
}
