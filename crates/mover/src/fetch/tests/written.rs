//! How files are written: read back, in place, without a sync; and the list of their hashes.

use super::{filled, get, put, random, same_names};
use crate::census::store_census;
use crate::{
    AfterFailure, DirMeta, Dress, Expected, FetchError, Fetched, File, Hashes, Job, Meter, ReadAt,
    Writing, fetch,
};
use hikyaku_store::{
    ErrorKind, Fault, Faulty, Memory, Operation, Store, StoreError, StorePath, When, fetchers,
};
use hikyaku_transfer::{Durable, FileHash, Geometry, SegmentHash, SegmentIndex, Verify, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Copies the files of [`filled`] onto this store.
fn run(target: &Faulty<Memory>, writing: Writing) -> Fetched {
    run_checked(target, writing, (None, AfterFailure::GoOn))
}

/// Copies them, and compares each with what is expected.
fn run_checked(
    target: &Faulty<Memory>,
    writing: Writing,
    (expected, after_failure): (Option<&dyn Expected>, AfterFailure),
) -> Fetched {
    let (source, _, all) = filled();
    let source: Arc<dyn Store> = Arc::new(source);
    let servers = fetchers(&source, 2).unwrap();
    let fetched = fetch(&Job {
        dress: Dress::Usual { umask: 0 },
        same: crate::Same::SizeAndTime,
        times: crate::Times::Kept,
        patience: Duration::from_millis(300),
        writing,
        hashes: Hashes::Listed,
        expected,
        after_failure,
        ..Job::new(
            &servers,
            &same_names(store_census(&all, 2)),
            Arc::new(target.clone()),
            (&Meter::new(2), &AtomicBool::new(false)),
        )
    });
    fetched.unwrap()
}

#[test]
fn names_in_a_new_directory_are_not_looked_at() {
    let (source, files, all) = filled();
    let source: Arc<dyn Store> = Arc::new(source);
    let servers = fetchers(&source, 2).unwrap();
    let mut plan = same_names(store_census(&all, 2));
    let meta = DirMeta { mode: 0o755, modified: None };
    plan.dirs.push((StorePath::new(b"d").unwrap(), meta));
    for file in &mut plan.files {
        file.to = StorePath::new(&[b"d/", file.path.as_bytes()].concat()).unwrap();
    }
    let (target, looks) = (Faulty::new(Memory::default()), Arc::new(AtomicU32::new(0)));
    let counted = looks.clone();
    target.on_call(move |operation| {
        counted.fetch_add(u32::from(operation == Operation::Look), Ordering::Relaxed);
    });
    for (run, least) in [(0, 0), (1, files.len())] {
        let ends = (&Meter::new(2), &AtomicBool::new(false));
        let fetched = fetch(&Job::new(&servers, &plan, Arc::new(target.clone()), ends)).unwrap();
        assert!(fetched.failed.is_empty(), "{fetched:?}");
        let looks = looks.swap(0, Ordering::Relaxed) as usize;
        assert!(looks >= least && (run == 1 || looks == 0), "{run}: {looks}");
    }
}

#[test]
fn a_file_that_reads_back_differently_gets_no_name() {
    for (verify, failed) in [(Verify::Arrived, 0), (Verify::ReadBack, 6)] {
        let target = Faulty::new(Memory::default());
        let when = When { operation: Operation::Read, path: None, nth: 1, times: u32::MAX };
        target.add(when, Fault::FlippedBit);
        let done = run(&target, Writing { verify, ..Writing::default() });
        // An empty file has no bytes that could differ.
        assert_eq!(done.failed.len(), failed, "{verify:?}: {done:?}");
        let is_damaged = |text: String| text.ends_with(&ErrorKind::Damaged.to_string());
        assert!(done.failed.iter().all(|(_, error)| is_damaged(error.to_string())), "{done:?}");
        let named = target.inner().list(&StorePath::ROOT, None, 100).unwrap().items.len();
        assert_eq!(named, 7 - failed, "{verify:?}");
    }
}

/// All files but two, whose comparison fails.
struct OtherThan;

impl Expected for OtherThan {
    fn is_met(&self, file: &File, read: &ReadAt<'_>) -> Result<bool, StoreError> {
        let mut first = [0];
        assert_eq!(read(0, &mut first)?, file.seen.size.min(1) as usize);
        let path = StorePath::from(file.path.clone());
        match path.as_bytes() {
            b"f2" | b"f5" => Err(StoreError::new("compare", &path, ErrorKind::Damaged)),
            _ => Ok(true),
        }
    }
}

#[test]
fn a_file_that_differs_from_its_source_gets_no_name_and_may_end_the_transfer() {
    for after_failure in [AfterFailure::GoOn, AfterFailure::Stop] {
        let target = Faulty::new(Memory::default());
        let done = run_checked(&target, Writing::default(), (Some(&OtherThan), after_failure));
        let is_of = |(_, error): &&(Vec<u8>, FetchError)| matches!(error, FetchError::Target(_));
        let failed = done.failed.iter().filter(is_of).count();
        let stopped = done.failed.len() - failed;
        match after_failure {
            AfterFailure::GoOn => assert_eq!((failed, stopped), (2, 0), "{done:?}"),
            AfterFailure::Stop => assert!(failed > 0, "{done:?}"),
        }
        assert_eq!(done.files as usize + done.failed.len(), 7, "{after_failure:?}: {done:?}");
        assert!(get(target.inner(), "f2").is_none() && get(target.inner(), "f5").is_none());
    }
}

#[test]
fn after_a_failure_nothing_more_is_fetched_if_its_user_wants_that() {
    for (after_failure, wanted) in [(AfterFailure::GoOn, 6), (AfterFailure::Stop, 0)] {
        let target = Faulty::new(Memory::default());
        // It is found before the first byte comes.
        target.make_dir(&StorePath::new(b"f4").unwrap(), 0o755).unwrap();
        let done = run_checked(&target, Writing::default(), (None, after_failure));
        let has = |name: &str| get(target.inner(), name).is_some_and(|bytes| !bytes.is_empty());
        let copied = ["f1", "f2", "f3", "f5", "f6"].iter().filter(|name| has(name)).count();
        // The empty file needs no bytes.
        assert_eq!(copied + 1, if wanted == 0 { 1 } else { wanted }, "{after_failure:?}: {done:?}");
    }
}

#[test]
fn a_file_that_is_written_in_place_stays_the_same_file() {
    for (write, is_same) in [(Write::Beside, false), (Write::InPlace, true)] {
        let target = Faulty::new(Memory::default());
        put(target.inner(), "f3", &random(99, 100_000));
        let path = StorePath::new(b"f3").unwrap();
        let before = target.look(&path).unwrap().identity;
        let done = run(&target, Writing { write, ..Writing::default() });
        assert!(done.failed.is_empty(), "{done:?}");
        let after = target.look(&path).unwrap();
        assert_eq!((after.identity == before, after.size), (is_same, 70_000), "{write:?}");
        for (name, bytes) in filled().1 {
            assert!(get(target.inner(), &name) == Some(bytes), "{write:?} {name}");
        }
    }
}

#[test]
fn without_fsync_nothing_is_synced() {
    for (durable, is_synced) in [(Durable::Disk, true), (Durable::Cache, false)] {
        let (target, syncs) = (Faulty::new(Memory::default()), Arc::new(AtomicU32::new(0)));
        let counted = syncs.clone();
        target.on_call(move |operation| {
            let is_sync = matches!(operation, Operation::SyncFile | Operation::SyncDir);
            counted.fetch_add(u32::from(is_sync), Ordering::SeqCst);
        });
        let done = run(&target, Writing { durable, ..Writing::default() });
        assert!(done.failed.is_empty(), "{done:?}");
        assert_eq!(syncs.load(Ordering::SeqCst) > 0, is_synced, "{durable:?}");
    }
}

#[test]
fn the_list_has_files_that_were_fetched_and_files_that_were_there() {
    let target = Faulty::new(Memory::default());
    let hash = |bytes: &[u8]| {
        let file = Geometry::new(bytes.len() as u64).unwrap();
        let all: Vec<SegmentHash> = file
            .indices()
            .map(|index: SegmentIndex| {
                let range = file.range(index).unwrap();
                SegmentHash::new(file, index, &bytes[range.start as usize..range.end as usize])
                    .unwrap()
            })
            .collect();
        FileHash::new(file, &all).unwrap()
    };
    let wanted = filled().1.into_iter().map(|(name, bytes)| (name.into_bytes(), hash(&bytes)));
    let wanted: std::collections::BTreeMap<_, _> = wanted.collect();
    for kept in [0, 7] {
        let done = run(&target, Writing::default());
        assert_eq!(done.hashes, wanted, "{kept}");
    }
}
