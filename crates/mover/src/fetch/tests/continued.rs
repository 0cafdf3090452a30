//! Transfers that are stopped and continued: what the second run fetches is what the first one has not brought.

use super::{get, put, random, same_names};
use crate::census::store_census;
use crate::{Dress, FetchError, Fetched, Job, Meter, Same, fetch};
use hikyaku_job::{Base, JournalFile, Opened, Place};
use hikyaku_store::{
    Access, Asked, Cut, ErrorKind, Faulty, FetchError as Unfetched, Fetcher, FetcherTraits, Memory,
    Operation, Segment, Store, StorePath, Versions, Wanted, Writes, fetchers,
};
use hikyaku_transfer::{Remains, SEGMENT, Write};
use hikyaku_units::Rate;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bytes of the large file: more than forty segments.
const LARGE: usize = (43 << 20) + 11;

/// A channel that counts the bytes that it brings, and stops the transfer after `stops_after` of them.
struct Counted {
    fetcher: Arc<dyn Fetcher>,
    bytes: AtomicU64,
    stops_after: u64,
    stop: Arc<AtomicBool>,
}

impl Fetcher for Counted {
    fn traits(&self) -> FetcherTraits {
        self.fetcher.traits()
    }

    fn ranges(
        &self,
        file: &Wanted,
        asked: &Asked<'_>,
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, Unfetched> {
        self.fetcher.ranges(file, asked, cut, arrived, &mut |segment| {
            let bytes = segment.bytes.len() as u64;
            // The channel loses the segments that come after the stop.
            if self.bytes.load(Ordering::SeqCst) < self.stops_after {
                each(segment);
                self.bytes.fetch_add(bytes, Ordering::SeqCst);
            } else {
                self.stop.store(true, Ordering::SeqCst);
            }
        })
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), Unfetched> {
        self.fetcher.small(files, cut, arrived, each)
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

/// How the version of the source is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    Strong,
    SizeAndTime,
    Not,
}

/// The ends of a transfer, and the folder of its journal.
struct Scene {
    source: Memory,
    target: Arc<Memory>,
    known: Known,
    write: Write,
    folder: PathBuf,
}

impl Scene {
    fn new(name: &str, known: Known) -> Self {
        let folder = std::env::temp_dir().join(format!("hikyaku-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let source = Memory::default();
        put(&source, "large", &random(7, LARGE));
        Self { source, target: Arc::new(Memory::default()), known, write: Write::Beside, folder }
    }

    /// Runs the transfer until it has brought `stops_after` bytes of the large file. Returns the bytes that it brought.
    fn run(&self, stops_after: u64) -> (Fetched, u64, Meter) {
        self.run_onto(self.target.clone(), stops_after)
    }

    /// Runs the transfer as `run` does, but onto another store.
    fn run_onto(&self, target: Arc<dyn Store>, stops_after: u64) -> (Fetched, u64, Meter) {
        self.run_with(target, stops_after, Same::SizeAndTime)
    }

    /// Runs it with this rule for files that count as copied.
    fn run_with(
        &self,
        target: Arc<dyn Store>,
        stops_after: u64,
        same: Same,
    ) -> (Fetched, u64, Meter) {
        let place = Place::of("memory", Base::Address("memory:"), None);
        let opened: Opened = JournalFile::open_in(&self.folder, &place, "memory").unwrap();
        let mut all = BTreeMap::new();
        for item in self.source.list(&StorePath::ROOT, None, 100).unwrap().items {
            all.insert(item.name.as_bytes().to_vec(), item.found);
        }
        let source: Arc<dyn Store> = Arc::new(self.source.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let counted = Arc::new(Counted {
            fetcher: fetchers(&source, 1).unwrap().remove(0),
            bytes: AtomicU64::new(0),
            stops_after,
            stop: stop.clone(),
        });
        let servers: [Arc<dyn Fetcher>; 1] = [counted.clone()];
        let mut plan = same_names(store_census(&all, 1));
        for file in plan.files.iter_mut().filter(|_| self.known != Known::Strong) {
            file.content = None;
        }
        if self.known == Known::Not {
            plan.versions = Versions::Nothing;
        }
        let meter = Meter::new(1);
        let fetched = fetch(&Job {
            dress: Dress::Usual { umask: 0 },
            times: crate::Times::Kept,
            same,
            patience: Duration::from_millis(300),
            journal: Some(&opened),
            writing: crate::Writing { write: self.write, ..crate::Writing::default() },
            ..Job::new(&servers, &plan, target, (&meter, &stop))
        });
        (fetched.unwrap(), counted.bytes.load(Ordering::SeqCst), meter)
    }

    fn journals(&self) -> usize {
        fs::read_dir(&self.folder).into_iter().flatten().count()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_second_run_fetches_what_the_first_one_has_not_brought() {
    for (known, compared) in [(Known::Strong, 0), (Known::SizeAndTime, 4), (Known::Not, 20)] {
        let scene = Scene::new(&format!("continued-{known:?}"), known);
        let (stopped, first, meter) = scene.run(20 * SEGMENT);
        assert_eq!(first, 20 * SEGMENT, "{known:?}");
        let is_stopped = |(path, error): &(Vec<u8>, FetchError)| {
            path == b"large" && *error == FetchError::Stopped
        };
        assert!(stopped.failed.iter().any(is_stopped), "{known:?}: {stopped:?}");
        // The message of a stopped command depends on this value.
        assert_eq!(meter.is_continued(), known != Known::Not, "{known:?}");
        assert!(get(&scene.target, "large").is_none() && scene.journals() == 1, "{known:?}");
        let (done, second, meter) = scene.run(u64::MAX);
        assert!(done.failed.is_empty(), "{known:?}: {done:?}");
        let kept = (20 - compared) * SEGMENT;
        assert_eq!(second, LARGE as u64 - kept, "{known:?}");
        assert!(meter.kept() >= kept, "{known:?}: {}", meter.kept());
        assert!(get(&scene.target, "large") == Some(random(7, LARGE)), "{known:?}");
        assert_eq!(scene.journals(), 0, "{known:?}");
    }
}

#[test]
fn a_file_that_is_written_in_order_goes_on_behind_its_first_bytes() {
    for (known, compared) in [(Known::Strong, 0), (Known::SizeAndTime, 4)] {
        let scene = Scene::new(&format!("continued-in-order-{known:?}"), known);
        let target = || Arc::new(Faulty::new((*scene.target).clone()).far(Writes::Runs));
        let (stopped, first, meter) = scene.run_onto(target(), 20 * SEGMENT);
        assert_eq!((first, stopped.failed.len()), (20 * SEGMENT, 1), "{known:?}: {stopped:?}");
        assert!(meter.is_continued() && scene.journals() == 1, "{known:?}");
        let (done, second, _) = scene.run_onto(target(), u64::MAX);
        assert!(done.failed.is_empty(), "{known:?}: {done:?}");
        assert_eq!(second, LARGE as u64 - (20 - compared) * SEGMENT, "{known:?}");
        assert!(get(&scene.target, "large") == Some(random(7, LARGE)), "{known:?}");
        assert_eq!(scene.journals(), 0, "{known:?}");
    }
}

#[test]
fn a_file_that_is_written_in_place_goes_on_where_it_has_the_bytes_of_the_first_run() {
    let path = StorePath::new(b"large").unwrap();
    for (changed, again) in [(None, 0), (Some(3 * SEGMENT + 5), 1)] {
        let mut scene = Scene::new(&format!("continued-in-place-{again}"), Known::Strong);
        scene.write = Write::InPlace;
        put(&scene.target, "large", b"older");
        let (stopped, first, meter) = scene.run(20 * SEGMENT);
        assert_eq!((first, stopped.failed.len()), (20 * SEGMENT, 1), "{stopped:?}");
        assert!(meter.is_continued() && scene.journals() == 1);
        // Another program writes to the file, which has its name.
        let file = scene.target.open(&path, Access::Update).unwrap();
        assert!(file.found().unwrap().size > 5, "it is written in place");
        changed.iter().for_each(|at| file.write_at(*at, b"other").unwrap());
        let (done, second, _) = scene.run(u64::MAX);
        assert!(done.failed.is_empty(), "{done:?}");
        assert_eq!(second, LARGE as u64 - (20 - again) * SEGMENT);
        assert!(get(&scene.target, "large") == Some(random(7, LARGE)));
        assert_eq!(scene.journals(), 0);
    }
}

#[test]
fn other_bytes_of_the_same_size_and_time_are_not_mixed_with_those_of_the_first_run() {
    let scene = Scene::new("continued-other", Known::SizeAndTime);
    scene.run(20 * SEGMENT);
    let path = StorePath::new(b"large").unwrap();
    let modified = Some(scene.source.look(&path).unwrap().modified);
    let other = random(8, LARGE);
    put(&scene.source, "large", &other);
    scene.source.change(&path, &hikyaku_store::Change { modified, ..Default::default() }).unwrap();
    let (done, second, meter) = scene.run(u64::MAX);
    assert!(done.failed.is_empty(), "{done:?}");
    assert!(get(&scene.target, "large") == Some(other));
    assert!(second >= LARGE as u64, "{second}");
    assert!(meter.kept() < LARGE as u64, "what did not count was taken back");
    assert_eq!(scene.journals(), 0);
}

#[test]
fn a_copy_that_compares_no_files_leaves_out_those_of_a_run_with_a_failure() {
    let scene = Scene::new("continued-never", Known::SizeAndTime);
    put(&scene.source, "other", &random(9, 5_000));
    let blocked = StorePath::new(b"other").unwrap();
    scene.target.make_dir(&blocked, 0o755).unwrap();
    let run = || scene.run_with(scene.target.clone(), u64::MAX, Same::Never);
    let (failed, first, _) = run();
    assert_eq!((failed.failed.len(), first), (1, LARGE as u64), "{failed:?}");
    assert_eq!(scene.journals(), 1);
    // Without a complete file it knows nothing.
    let other = Scene::new("continued-nothing", Known::SizeAndTime);
    other.target.make_dir(&StorePath::new(b"large").unwrap(), 0o755).unwrap();
    let (failed, ..) = other.run_with(other.target.clone(), u64::MAX, Same::Never);
    assert_eq!((failed.failed.len(), other.journals()), (1, 0), "{failed:?}");
    scene.target.remove(&blocked, hikyaku_store::Kind::Dir).unwrap();
    // A small file is asked for with others, and only ranges are counted.
    let (done, second, _) = run();
    assert!(done.failed.is_empty(), "{done:?}");
    assert_eq!((done.kept, done.bytes, second, scene.journals()), (1, 5_000, 0, 0), "{done:?}");
    // After a success all files are copied again.
    let (again, third, _) = run();
    assert_eq!((again.kept, third), (0, LARGE as u64), "{again:?}");
}

#[test]
fn bytes_that_are_not_there_any_more_are_fetched_again() {
    let scene = Scene::new("continued-lost", Known::Strong);
    scene.run(20 * SEGMENT);
    // The machine crashed, and the file with it.
    let (crashed, known) = (Arc::new(Memory::default()), scene.known);
    let after = Scene {
        target: crashed,
        known,
        write: scene.write,
        source: scene.source.clone(),
        folder: scene.folder.clone(),
    };
    let (done, second, _) = after.run(u64::MAX);
    assert!(done.failed.is_empty(), "{done:?}");
    assert!(second >= LARGE as u64);
    assert!(get(&after.target, "large") == Some(random(7, LARGE)));
}

#[test]
fn an_end_that_is_not_that_of_the_source_is_fetched_again() {
    let scene = Scene::new("continued-damaged", Known::Strong);
    scene.run(20 * SEGMENT);
    let place = Place::of("memory", Base::Address("memory:"), None);
    let opened: Opened = JournalFile::open_in(&scene.folder, &place, "memory").unwrap();
    let Some(Remains::Part(part)) = opened.remains.get(&b"large"[..]) else {
        panic!("{:?}", opened.remains)
    };
    let token = hikyaku_store::Token(part.record.partial.clone());
    let draft = scene.target.take_up(&StorePath::new(b"large").unwrap(), &token).unwrap();
    draft.write_at(20 * SEGMENT - 100, b"not these").unwrap();
    draft.keep();
    drop((draft, opened));
    let (done, ..) = scene.run(u64::MAX);
    assert!(done.failed.is_empty(), "{done:?}");
    assert!(get(&scene.target, "large") == Some(random(7, LARGE)));
}

/// The state of both disks when the machine stopped.
struct Crashed {
    target: Memory,
    journals: Vec<(PathBuf, Vec<u8>)>,
}

impl Crashed {
    fn now(target: &Memory, folder: &Path) -> Self {
        let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let read = |path: PathBuf| Some((path.clone(), fs::read(path).ok()?));
        Self { target: target.crash(), journals: paths.filter_map(read).collect() }
    }
}

/// Runs a transfer, and returns the state before the step of the target with this number; `None` if there are fewer steps.
fn crashed_at(scene: &Scene, step: u32) -> Option<Crashed> {
    let (target, folder) = (Memory::default(), scene.folder.clone());
    let (store, steps) = (Faulty::new(target.clone()), AtomicU32::new(0));
    let crashed: Arc<Mutex<Option<Crashed>>> = Arc::default();
    let seen = crashed.clone();
    store.on_call(move |operation| {
        let is_step = !matches!(operation, Operation::Look | Operation::List | Operation::Read);
        if is_step && steps.fetch_add(1, Ordering::SeqCst) + 1 == step {
            *seen.lock().unwrap() = Some(Crashed::now(&target, &folder));
        }
    });
    let (done, ..) = scene.run_onto(Arc::new(store), u64::MAX);
    assert!(done.failed.is_empty(), "{done:?}");
    crashed.lock().unwrap().take()
}

#[test]
fn after_a_crash_at_any_step_no_name_has_other_bytes_and_the_second_run_completes() {
    for known in [Known::Strong, Known::SizeAndTime] {
        let scene = Scene::new(&format!("continued-crash-{known:?}"), known);
        let contents = [("large", random(7, 9 << 20)), ("small", random(3, 70_000))];
        contents.iter().for_each(|(name, bytes)| put(&scene.source, name, bytes));
        let is_right =
            |store: &Memory, name: &str, bytes: &Vec<u8>| get(store, name).as_ref() == Some(bytes);
        let mut step = 0;
        while let Some(Crashed { target, journals }) = {
            step += 1;
            crashed_at(&scene, step)
        } {
            for (name, bytes) in &contents {
                let is_absent = get(&target, name).is_none();
                assert!(is_absent || is_right(&target, name, bytes), "{known:?} {step}: {name}");
            }
            fs::create_dir_all(&scene.folder).unwrap();
            journals.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
            let (done, ..) = scene.run_onto(Arc::new(target.clone()), u64::MAX);
            assert!(done.failed.is_empty(), "{known:?} {step}: {done:?}");
            for (name, bytes) in &contents {
                assert!(is_right(&target, name, bytes), "{known:?} {step}: {name}");
            }
            assert_eq!(scene.journals(), 0, "{known:?} {step}");
        }
        assert!(step > 15, "{step} steps");
    }
}
