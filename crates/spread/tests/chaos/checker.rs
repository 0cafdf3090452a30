//! Invariants of each command, whatever happened before.

use hikyaku_spread::{AskId, FileId, SEGMENT_BYTES, ServerId, ServerSettings, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A segment of a file.
pub(crate) type Segment = (u32, u64);

/// A file, as the client knows it.
pub(crate) struct File {
    pub(crate) size: u64,
    pub(crate) replicas: BTreeSet<u16>,
    pub(crate) proven: BTreeSet<u64>,
    pub(crate) done: bool,
}

impl File {
    pub(crate) fn segments(&self) -> u64 {
        self.size.div_ceil(SEGMENT_BYTES)
    }

    pub(crate) fn range(&self, segment: u64) -> Range<u64> {
        segment * SEGMENT_BYTES..self.size.min((segment + 1) * SEGMENT_BYTES)
    }
}

/// The state of a server that the client has reported to the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Away,
    Up,
}

/// The state that the commands are checked against.
pub(crate) struct Checker {
    pub(crate) files: Vec<File>,
    pub(crate) told: Vec<Told>,
    /// The requests under way at each server.
    pub(crate) limits: Vec<ServerSettings>,
    /// Servers that were retried and have not answered: they may be asked for one segment as a copy.
    pub(crate) retried: BTreeSet<u16>,
    /// Which ask owns a segment.
    pub(crate) owners: BTreeMap<Segment, AskId>,
    /// Asks that were made.
    asks: BTreeSet<AskId>,
    pub(crate) seed: u64,
}

impl Checker {
    pub(crate) fn new(seed: u64, files: Vec<File>, limits: Vec<ServerSettings>) -> Self {
        Self {
            files,
            told: vec![Told::Away; limits.len()],
            limits,
            retried: BTreeSet::new(),
            owners: BTreeMap::new(),
            asks: BTreeSet::new(),
            seed,
        }
    }

    /// Checks an ask. Returns its segments in the order in which they are sent.
    pub(crate) fn ask(&mut self, server: ServerId, ask: AskId, work: &Work) -> Vec<Segment> {
        let seed = self.seed;
        assert!(self.asks.insert(ask), "seed {seed}: {ask:?} is not new");
        assert_eq!(self.told[usize::from(server.0)], Told::Up, "seed {seed}: {server:?} is away");
        let segments = self.segments(work);
        assert!(!segments.is_empty(), "seed {seed}: an ask for nothing");
        if let Work::Files(files) = work {
            let most = self.limits[usize::from(server.0)].small_file.bytes();
            let is_small = |file: &FileId| self.files[file.0 as usize].size <= most;
            assert!(files.iter().all(is_small), "seed {seed}: {work:?} at once of {server:?}");
        }
        let is_copy = self.retried.contains(&server.0);
        assert!(!is_copy || segments.len() == 1, "seed {seed}: {work:?} of a quiet server");
        for &(file, segment) in &segments {
            let found = &self.files[file as usize];
            assert!(found.replicas.contains(&server.0), "seed {seed}: {server:?} has not {file}");
            let is_proven = found.proven.contains(&segment);
            assert!(!is_proven, "seed {seed}: {file} {segment} is proven");
            if !is_copy {
                let owner = self.owners.insert((file, segment), ask);
                assert_eq!(owner, None, "seed {seed}: {file} {segment} is owned");
            }
        }
        segments
    }

    /// Checks the number of requests of a server that were not taken back.
    pub(crate) fn count(&self, server: ServerId, asks: usize) {
        let most = self.limits[usize::from(server.0)].asks_max;
        assert!(asks <= most, "seed {}: {asks} asks of {server:?}", self.seed);
    }

    fn segments(&self, work: &Work) -> Vec<Segment> {
        match work {
            Work::Files(files) => {
                let one = |file: &FileId| {
                    assert!(self.files[file.0 as usize].segments() == 1, "{file:?} is not small");
                    (file.0, 0)
                };
                files.iter().map(one).collect()
            }
            Work::Ranges { file, ranges } => {
                let size = self.files[file.0 as usize].size;
                let sorted = ranges.windows(2).all(|two| two[0].end <= two[1].start);
                let whole = ranges.iter().all(|range| {
                    let ends = range.end == size || range.end.is_multiple_of(SEGMENT_BYTES);
                    range.start.is_multiple_of(SEGMENT_BYTES) && ends && range.end <= size
                });
                assert!(sorted && whole, "seed {}: {ranges:?} of {size}", self.seed);
                let of = |range: &Range<u64>| {
                    range.start / SEGMENT_BYTES..range.end.div_ceil(SEGMENT_BYTES)
                };
                ranges.iter().flat_map(of).map(|segment| (file.0, segment)).collect()
            }
        }
    }

    /// The scheduler reports a file as done.
    pub(crate) fn done(&mut self, file: FileId) {
        let found = &mut self.files[file.0 as usize];
        let is_whole = found.proven.len() as u64 == found.segments();
        assert!(is_whole && !found.done, "seed {}: {file:?} is not done, or twice", self.seed);
        found.done = true;
    }

    /// The ask does not own these segments any more.
    pub(crate) fn release(&mut self, ask: AskId, segments: &[Segment]) {
        for segment in segments {
            if self.owners.get(segment) == Some(&ask) {
                self.owners.remove(segment);
            }
        }
    }
}

impl Checker {
    /// The first segment of an ask that ends after the offset in its bytes.
    pub(crate) fn position(&self, segments: &[Segment], offset: u64) -> usize {
        let mut end = 0;
        let is_before = |&(file, segment): &Segment| {
            let range = self.files[file as usize].range(segment);
            end += range.end - range.start;
            end <= offset
        };
        segments.iter().copied().take_while(is_before).count()
    }
}
