//! One ask: bytes of a server become bytes of files.

use super::FetchError;
use super::asked::{is_kept, reach, server_id};
use super::run::{Run, State};
use super::threads::Request;
use crate::census::ServerId;
use crate::target::{Come, Next, Target};
use hikyaku_spread::{AskId, FileId, Work};
use hikyaku_store::{
    Asked, ErrorKind, FetchError as Trouble, Segment, StoreError, StorePath, Wanted,
};
use hikyaku_transfer::{Geometry, SegmentHash, SegmentIndex};
use hikyaku_units::DataSize;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Segments of a file that may come damaged before it is given up.
const DAMAGED_MAX: u32 = 16;

/// Requests to a store for the same bytes. Each of them was sent several times by the store's own client.
const ATTEMPTS_MAX: u32 = 4;

impl Run<'_> {
    /// Carries out a request, unless nothing of it is wanted any more.
    pub(super) fn carry_out(&self, request: &Request) {
        if !request.cut.is_reached(0) {
            match &request.work {
                Work::Ranges { file, .. } => self.ranges(request, *file),
                Work::Files(files) => self.small(request, files),
            }
        }
        self.over(request);
    }

    /// Fetches ranges of a file.
    fn ranges(&self, request: &Request, id: FileId) {
        let (ranges, heads) = (&request.rest.ranges, request.rest.heads.as_ref());
        let asked = Asked { ranges, heads: heads.map(|heads| &**heads) };
        let (number, server) = (self.numbers[id.0 as usize], request.server);
        let wanted = self.job.plan.files[number].wanted();
        self.begins(number, server);
        let arrived = |bytes| self.arrived((server, request.ask), bytes);
        let outcome =
            request.fetcher.ranges(&wanted, &asked, &request.cut, &arrived, &mut |segment| {
                let Segment { index, hash, bytes } = segment;
                let upon = heads.filter(|_| asked.has_head(index));
                self.write(number, &Come { index, hash, bytes, upon });
            });
        let mut state = self.state();
        match outcome {
            Ok(0) => {}
            Ok(damaged) => {
                let count = state.damaged.entry(number).or_default();
                *count += damaged as u32;
                if *count > DAMAGED_MAX {
                    self.give_up(&mut state, number, FetchError::Damaged);
                }
            }
            Err(Trouble::Lost(why)) => {
                if is_kept(request.fetcher.traits()) {
                    self.count_attempt(&mut state, number, ranges);
                }
                self.lose(&mut state, server, why);
            }
            Err(Trouble::Full) => self.is_full(&mut state, server),
            Err(Trouble::File(kind)) => {
                state.stands(server);
                self.refused((&mut state, server), number, kind);
            }
        }
    }

    /// A request has failed to a service that cannot be told to stop. It may be there and still never answer this one.
    fn count_attempt(&self, state: &mut State<'_>, number: usize, ranges: &[Range<u64>]) {
        let begin = ranges.first().map_or(0, |range| range.start);
        let count = state.attempts.entry((number, begin)).or_default();
        *count += 1;
        if *count >= ATTEMPTS_MAX {
            self.give_up(state, number, FetchError::OutOfReach);
        }
    }

    /// Fetches small files.
    fn small(&self, request: &Request, files: &[FileId]) {
        let server = request.server;
        let numbers: Vec<usize> = files.iter().map(|id| self.numbers[id.0 as usize]).collect();
        let wanted = |number: &usize| self.job.plan.files[*number].wanted();
        let wanted: Vec<Wanted> = numbers.iter().map(wanted).collect();
        let wanted: Vec<&Wanted> = wanted.iter().collect();
        numbers.iter().for_each(|number| self.begins(*number, server));
        let arrived = |bytes| self.arrived((server, request.ask), bytes);
        let outcome =
            request.fetcher.small(&wanted, &request.cut, &arrived, &mut |index, content| {
                let number = numbers[index];
                match content {
                    Ok(bytes) => self.write_small(number, &bytes),
                    Err(kind) => self.refused((&mut self.state(), server), number, kind),
                }
            });
        match outcome {
            Ok(()) => {}
            Err(Trouble::Lost(why)) => self.lose(&mut self.state(), server, why),
            Err(Trouble::Full) => self.is_full(&mut self.state(), server),
            // It is about no file in particular: the server cannot answer the request.
            Err(Trouble::File(kind)) => {
                self.lose(&mut self.state(), server, kind.to_string());
            }
        }
    }

    /// A server cannot give a file. If it only lacks it by now, the others that had it are asked.
    fn refused(&self, (state, server): (&mut State<'_>, ServerId), number: usize, kind: ErrorKind) {
        let file = &self.job.plan.files[number];
        let lacking = state.lacking.entry(number).or_default();
        if !lacking.contains(&server) {
            lacking.push(server);
        }
        let has_others = file.at.iter().any(|at| !lacking.contains(at));
        match self.id(number) {
            Some(id) if kind == ErrorKind::Gone && has_others => {
                state.spread.handle_missing(server_id(server), id);
            }
            _ => {
                let path = StorePath::from(file.path.clone());
                let error = StoreError::new("read", &path, kind);
                self.give_up(state, number, FetchError::Source(error));
            }
        }
    }

    fn begins(&self, number: usize, server: ServerId) {
        let file = &self.job.plan.files[number];
        self.job.meter.file_begins(file.path.as_bytes(), file.seen.size, server);
    }

    fn arrived(&self, (server, ask): (ServerId, AskId), bytes: u64) {
        self.job.meter.add_moved(server, bytes);
        self.come.fetch_add(bytes, Ordering::Relaxed);
        let now = self.now();
        let mut state = self.state();
        let is_first = state.flows(server, bytes);
        state.spread.handle_progress(server_id(server), ask, DataSize::from_bytes(bytes), now);
        drop(state);
        if is_first {
            self.wake();
        }
    }

    fn over(&self, request: &Request) {
        let mut state = self.state();
        state.requests.remove(&request.ask);
        state.ends(request.server);
        let now = self.now();
        state.spread.handle_end(server_id(request.server), request.ask, now);
        drop(state);
        self.wake();
    }

    fn write_small(&self, number: usize, bytes: &[u8]) {
        let index = SegmentIndex(0);
        let file = Geometry::new(bytes.len() as u64);
        if let Some(hash) = file.and_then(|file| SegmentHash::new(file, index, bytes)) {
            self.write(number, &Come { index, hash, bytes, upon: None });
        }
    }

    fn write(&self, number: usize, segment: &Come<'_>) {
        let Come { index, bytes, .. } = *segment;
        let Some(target) = &self.targets[number] else { return };
        let (tried, written) = self.writing(|| {
            if target.is_whole() {
                self.hold(bytes.len() as u64);
            }
            target.write(segment, &|bytes| self.taken(number, target, bytes))
        });
        match written {
            Ok(Next::Differs) => {
                self.differs(&mut self.state(), (number, tried));
                self.wake();
                return;
            }
            // The end of the request makes it missing again.
            Ok(Next::Outdated) => return,
            _ => {}
        }
        if target.is_whole() && written != Ok(Next::Whole) {
            self.release(bytes.len() as u64);
        }
        match written {
            Ok(next) => {
                let mut state = self.state();
                self.announce_room(&mut state);
                let range = Geometry::new(self.job.plan.files[number].seen.size)
                    .and_then(|file| file.range(index));
                // The bytes of a lost try are missing again.
                let is_present = target.tries() == tried;
                if let (true, Some(id), Some(range)) = (is_present, self.id(number), range) {
                    state.spread.handle_proven(id, range);
                }
                if is_present && next == Next::Whole {
                    self.on_whole(&mut state, number);
                    drop(state);
                    self.wake();
                }
            }
            Err(error) => self.fail(&mut self.state(), (number, tried), error),
        }
    }

    /// The target of a file has taken bytes. If it takes them in order, it has room for others.
    fn taken(&self, number: usize, target: &Target<'_>, bytes: u64) {
        self.job.meter.add_written(bytes);
        if reach(self.job, target).is_some() {
            self.roomy.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
            self.wake();
        }
    }

    /// Gives the scheduler the room of the targets that have taken bytes in order.
    pub(super) fn announce_room(&self, state: &mut State<'_>) {
        let roomy = std::mem::take(&mut *self.roomy.lock().unwrap_or_else(PoisonError::into_inner));
        for number in roomy {
            let Some(target) = &self.targets[number] else { continue };
            if let (Some(id), Some(end)) = (self.id(number), reach(self.job, target)) {
                state.spread.handle_reach(id, end);
            }
        }
    }

    /// The time that all calls of the store have taken which write.
    pub(super) fn time_of_writes(&self) -> Duration {
        Duration::from_nanos(self.writing.load(Ordering::Relaxed))
    }

    /// Counts a call of the store that writes bytes which have come.
    pub(super) fn writing<T>(&self, work: impl FnOnce() -> T) -> T {
        self.writes.0.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        let done = work();
        let took = begin.elapsed().as_nanos();
        self.writing.fetch_add(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.writes.1.fetch_add(1, Ordering::Relaxed);
        self.writes.0.fetch_sub(1, Ordering::Relaxed);
        done
    }
}
