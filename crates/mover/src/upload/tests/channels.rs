//! Uploads of what the channels of a source bring.

use super::*;
use crate::census::census;
use crate::tests::{cluster_of, same_names};
use hikyaku_store::{Fetcher, StorePath};

/// What came of an upload of these files by these channels.
fn passed_on(target: &Cluster, channels: &[Arc<dyn Fetcher>], plan: &Plan) -> (Fetched, Meter) {
    let meter = Meter::new(channels.len());
    let job = UploadJob {
        servers: &target.clients,
        redial: &|_| None,
        source: Source { channels, redial: &|_| None, counted: Counted::Source },
        plan,
        existing: Existing::Replaced,
        same: Same::SizeAndTime,
        times: Times::Kept,
        pass: Pass::Copy,
        dress: crate::Dress::Usual { umask: 0o022 },
        parameters: Parameters::default(),
        patience: Duration::from_millis(300),
        meter: &meter,
        stop: &AtomicBool::new(false),
    };
    let uploaded = upload(&job).unwrap();
    (uploaded, meter)
}

/// Each of the files is on one of the servers.
fn is_on_one(stores: &[Arc<Memory>], files: &Files) {
    for (name, bytes) in files {
        let found: Vec<_> = stores.iter().filter_map(|store| get(store, name)).collect();
        assert!(matches!(&found[..], [found] if found == bytes), "{name}: {}", found.len());
    }
}

/// The plan of everything that these servers have.
fn plan_of(source: &Cluster) -> Plan {
    let mut plan = same_names(census(&source.clients, &StorePath::ROOT));
    plan.roots.push(path("d"));
    plan
}

fn channels_of(source: &Cluster) -> Vec<Arc<dyn Fetcher>> {
    let fetcher = |client: &Client| -> Arc<dyn Fetcher> { Arc::new(client.clone()) };
    source.clients.iter().map(fetcher).collect()
}

#[test]
fn files_of_daemons_go_to_other_daemons_each_to_one() {
    let (sources, files) = stores();
    let source = cluster_of(&sources);
    let targets = empty(3);
    // An older version is replaced where it is, and a file that is there is not sent.
    targets[2].make_dir(&path("d"), 0o755).unwrap();
    put(&targets[2], &files[5].0, b"old");
    put(&targets[2], &files[4].0, &files[4].1);
    let target = servers(&targets, None);
    let (sent, meter) = passed_on(&target, &channels_of(&source), &plan_of(&source));
    assert_eq!((sent.files, sent.kept, sent.failed.len()), (59, 1, 0), "{:?}", sent.failed);
    is_on_one(&targets, &files);
    assert!(get(&targets[2], &files[5].0).as_ref() == Some(&files[5].1));
    let total: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(meter.written(), (total - files[4].1.len()) as u64);
    assert!(meter.servers().iter().all(|server| server.bytes() > 0 && !server.is_lost()));
}

#[test]
fn files_of_a_store_come_by_channels_of_one_request_each() {
    let (source, files) = tree();
    for count in [1, 16] {
        let mut plan = plan(&source, "d");
        let channels = fetchers(&source, count).unwrap();
        plan.is_from(channels.len());
        let targets = empty(3);
        let (sent, _) = passed_on(&servers(&targets, None), &channels, &plan);
        assert_eq!((sent.files, sent.failed.len()), (60, 0), "{:?}", sent.failed);
        is_on_one(&targets, &files);
        assert!(targets.iter().all(|store| store.look(&path("d/empty")).is_ok()));
    }
}

#[test]
fn a_source_that_dies_leaves_its_files_to_those_that_have_them_as_well() {
    let (sources, files) = stores();
    let rate = Some(Rate::from_bits_per_sec(100_000_000));
    let slow = sources.iter().map(|store| (store.clone(), rate)).collect();
    let source = cluster_with(slow, Limits::default());
    let targets = empty(2);
    let plan = plan_of(&source);
    let killed = source.ends[1].clone();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        killed.close(1, "killed");
    });
    let (sent, _) = passed_on(&servers(&targets, None), &channels_of(&source), &plan);
    killer.join().unwrap();
    assert_eq!((sent.files, sent.failed.len()), (60, 0), "{:?}", sent.failed);
    is_on_one(&targets, &files);
}

#[test]
fn a_file_that_no_source_has_any_more_fails_alone() {
    let (sources, files) = stores();
    let source = cluster_of(&sources);
    let plan = plan_of(&source);
    let (gone, changed) = (&files[6].0, &files[12].0);
    for store in &sources {
        let _ = store.remove(&path(gone), hikyaku_store::Kind::File);
        if store.look(&path(changed)).is_ok() {
            put(store, changed, b"another size");
        }
    }
    let targets = empty(2);
    let (sent, _) = passed_on(&servers(&targets, None), &channels_of(&source), &plan);
    assert_eq!((sent.files, sent.failed.len()), (58, 2), "{:?}", sent.failed);
    assert!(sent.failed.iter().all(|(_, error)| matches!(error, FetchError::Source(_))));
    assert!(targets.iter().all(|store| store.look(&path(changed)).is_err()));
}
