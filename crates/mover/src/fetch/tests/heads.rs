//! Transfers that end within a segment: what comes afterwards is the rest of it.

use super::{get, put, random, same_names};
use crate::census::store_census;
use crate::{Dress, Fetched, Job, Meter, Same, fetch};
use hikyaku_job::{Base, JournalFile, Opened, Place};
use hikyaku_store::{
    Asked, Begins, Change, ConnectionCount, Cut, Cutting, ErrorKind, FetchError as Unfetched,
    Fetcher, FetcherTraits, Memory, Segment, Segments, Store, StorePath, Wanted,
};
use hikyaku_transfer::{Geometry, Remains, SEGMENT};
use hikyaku_units::Rate;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of the file.
const LARGE: u64 = (30 << 20) + 11;
/// Bytes that come at once: a segment is no multiple of them.
const BLOCK_BYTES: usize = 100_003;
/// A channel ends with the first block behind these bytes, within a segment.
const ENDS_AFTER: u64 = 9 * SEGMENT + 300_000;

/// The effect of the end of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The user stops the transfer.
    Stops,
    /// Others go on.
    IsLost,
}

/// A channel that counts the bytes that it brings, and ends after some of them.
struct Channel {
    content: Vec<u8>,
    begins: Begins,
    ends: Option<(u64, End)>,
    stop: Arc<AtomicBool>,
    bytes: AtomicU64,
    is_closed: AtomicBool,
}

impl Fetcher for Channel {
    fn traits(&self) -> FetcherTraits {
        FetcherTraits {
            requests_max: 1,
            request_bytes: Some(8 * SEGMENT),
            small_bytes: 0,
            cutting: Cutting::Never,
            connections: ConnectionCount::Own,
            begins: self.begins,
        }
    }

    fn ranges(
        &self,
        file: &Wanted,
        asked: &Asked<'_>,
        _: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, Unfetched> {
        let mut segments = Segments::new(Geometry::new(file.size).unwrap(), asked);
        for range in asked.ranges {
            for at in range.clone().step_by(BLOCK_BYTES) {
                if self.is_closed.load(Ordering::SeqCst) {
                    return Err(Unfetched::Lost("closed".to_owned()));
                }
                let end = range.end.min(at + BLOCK_BYTES as u64);
                arrived(end - at);
                segments.add(at, &self.content[at as usize..end as usize], each);
                let all = self.bytes.fetch_add(end - at, Ordering::SeqCst) + end - at;
                if let Some((_, end)) = self.ends.filter(|(after, _)| all > *after) {
                    self.stop.fetch_or(end == End::Stops, Ordering::SeqCst);
                    self.close("");
                }
            }
        }
        segments.end(each);
        Ok(0)
    }

    fn small(
        &self,
        _: &[&Wanted],
        _: &Cut,
        _: &(dyn Fn(u64) + Sync),
        _: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), Unfetched> {
        Err(Unfetched::File(ErrorKind::Unreachable))
    }

    fn limit(&self, _: Option<Rate>) {}

    fn round_trip(&self) -> Duration {
        Duration::ZERO
    }

    fn is_alive(&self) -> bool {
        self.ends.is_none()
    }

    fn close(&self, _: &str) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

/// The ends of a transfer, and the folder of its journal.
struct Scene {
    source: Memory,
    target: Arc<Memory>,
    folder: PathBuf,
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("hikyaku-heads-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let source = Memory::default();
        put(&source, "large", &random(7, LARGE as usize));
        Self { source, target: Arc::default(), folder }
    }

    fn opened(&self) -> Opened {
        let place = Place::of("memory", Base::Address("memory:"), None);
        JournalFile::open_in(&self.folder, &place, "memory").unwrap()
    }

    /// Runs the transfer over channels with these ends. Returns the bytes that they brought in all.
    fn run(
        &self,
        ends: &[Option<(u64, End)>],
        (begins, is_strong): (Begins, bool),
    ) -> (Fetched, u64, Meter) {
        let opened = self.opened();
        let found = self.source.look(&StorePath::new(b"large").unwrap()).unwrap();
        let all = BTreeMap::from([(b"large".to_vec(), found)]);
        let stop = Arc::new(AtomicBool::new(false));
        let channel = |ends: &Option<(u64, End)>| {
            let (content, is_closed) =
                (get(&self.source, "large").unwrap(), AtomicBool::new(false));
            let (ends, stop, bytes) = (*ends, stop.clone(), AtomicU64::new(0));
            Arc::new(Channel { content, begins, ends, stop, bytes, is_closed })
        };
        let channels: Vec<Arc<Channel>> = ends.iter().map(channel).collect();
        let servers: Vec<Arc<dyn Fetcher>> =
            channels.iter().map(|channel| channel.clone() as Arc<dyn Fetcher>).collect();
        let mut plan = same_names(store_census(&all, servers.len()));
        for file in plan.files.iter_mut().filter(|_| !is_strong) {
            file.content = None;
        }
        let meter = Meter::new(servers.len());
        let fetched = fetch(&Job {
            dress: Dress::Usual { umask: 0 },
            times: crate::Times::Kept,
            same: Same::SizeAndTime,
            patience: Duration::from_millis(300),
            journal: Some(&opened),
            ..Job::new(&servers, &plan, self.target.clone(), (&meter, &stop))
        });
        (
            fetched.unwrap(),
            channels.iter().map(|channel| channel.bytes.load(Ordering::SeqCst)).sum(),
            meter,
        )
    }

    fn is_right(&self, bytes: &[u8]) -> bool {
        get(&self.target, "large").as_deref() == Some(bytes)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn the_second_run_fetches_the_rest_of_the_segment_in_which_the_first_one_ended() {
    for (name, begins) in [("anywhere", Begins::Anywhere), ("segments", Begins::WithSegment)] {
        let scene = Scene::new(name);
        let stopped = [Some((ENDS_AFTER, End::Stops))];
        let (fetched, first, meter) = scene.run(&stopped, (begins, true));
        assert_eq!(fetched.failed.len(), 1, "{name}: {fetched:?}");
        let kept = if begins == Begins::Anywhere { first } else { first - first % SEGMENT };
        assert_eq!(meter.written(), kept, "{name}");
        assert!(first > ENDS_AFTER && first % SEGMENT != 0, "{name}: {first}");
        let (done, second, meter) = scene.run(&[None], (begins, true));
        assert!(done.failed.is_empty() && scene.is_right(&random(7, LARGE as usize)), "{name}");
        let lost = if begins == Begins::Anywhere { 0 } else { first % SEGMENT };
        assert_eq!(first + second, LARGE + lost, "{name}");
        // Each byte is counted once.
        assert_eq!(meter.kept() + meter.written(), LARGE, "{name}");
    }
}

#[test]
fn each_of_several_runs_goes_on_where_the_last_one_ended() {
    let scene = Scene::new("several");
    let mut all = 0;
    for run in 0..4 {
        // Two channels end within segments, and one of them in the first one.
        let ends = [Some((200_000 + run, End::IsLost)), Some((4 * SEGMENT + 500_000, End::Stops))];
        let (fetched, bytes, _) = scene.run(&ends, (Begins::Anywhere, true));
        assert_eq!(fetched.failed.len(), 1, "{fetched:?}");
        all += bytes;
    }
    let (done, bytes, _) = scene.run(&[None, None], (Begins::Anywhere, true));
    assert!(done.failed.is_empty() && scene.is_right(&random(7, LARGE as usize)), "{done:?}");
    assert_eq!(all + bytes, LARGE);
}

#[test]
fn the_rest_of_a_segment_whose_channel_is_lost_comes_over_another() {
    let scene = Scene::new("lost");
    let ends = [Some((300_000, End::IsLost)), Some((SEGMENT + 600_000, End::IsLost)), None];
    let (done, bytes, meter) = scene.run(&ends, (Begins::Anywhere, true));
    assert!(done.failed.is_empty() && scene.is_right(&random(7, LARGE as usize)), "{done:?}");
    assert_eq!((bytes, done.lost.len()), (LARGE, 2));
    assert_eq!(meter.written(), LARGE);
}

#[test]
fn a_head_is_not_mixed_with_other_bytes_of_the_same_size_and_time() {
    for is_other in [false, true] {
        let scene = Scene::new(&format!("alike-{is_other}"));
        let (_, first, _) = scene.run(&[Some((ENDS_AFTER, End::Stops))], (Begins::Anywhere, false));
        let mut bytes = random(7, LARGE as usize);
        if is_other {
            let path = StorePath::new(b"large").unwrap();
            let modified = Some(scene.source.look(&path).unwrap().modified);
            bytes = random(8, LARGE as usize);
            put(&scene.source, "large", &bytes);
            scene.source.change(&path, &Change { modified, ..Change::default() }).unwrap();
        }
        let (done, second, meter) = scene.run(&[None], (Begins::Anywhere, false));
        assert!(done.failed.is_empty() && scene.is_right(&bytes), "{is_other}: {done:?}");
        // The last four segments are compared.
        assert!(is_other || first + second == LARGE + 4 * SEGMENT, "{first} {second}");
        assert_eq!(meter.kept() + meter.written(), LARGE, "{is_other}");
    }
}

#[test]
fn a_head_that_is_not_in_the_file_any_more_is_fetched_again() {
    let scene = Scene::new("damaged");
    let (_, first, _) = scene.run(&[Some((ENDS_AFTER, End::Stops))], (Begins::Anywhere, true));
    let opened = scene.opened();
    let Some(Remains::Part(part)) = opened.remains.get(&b"large"[..]) else { panic!() };
    let [head] = part.heads[..] else { panic!("{:?}", part.heads) };
    let at = head.range(part.proven.file()).unwrap();
    let token = hikyaku_store::Token(part.record.partial.clone());
    let draft = scene.target.take_up(&StorePath::new(b"large").unwrap(), &token).unwrap();
    draft.write_at(at.end - 10, b"not these").unwrap();
    draft.keep();
    drop((draft, opened));
    let (done, second, _) = scene.run(&[None], (Begins::Anywhere, true));
    assert!(done.failed.is_empty() && scene.is_right(&random(7, LARGE as usize)), "{done:?}");
    assert_eq!(first + second, LARGE + (at.end - at.start));
}
