//! One ask: bytes of a server become bytes of files.

use super::FetchError;
use super::run::{Run, State, server_id};
use crate::census::ServerId;
use crate::server::Server;
use crate::target::Next;
use hikyaku_remote::RemoteError;
use hikyaku_spread::{AskId, FileId};
use hikyaku_store::{ErrorKind, StoreError, StorePath};
use hikyaku_transfer::{Geometry, SegmentHash, SegmentIndex};
use hikyaku_units::DataSize;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Who is asked, and the scheduler's number of the ask.
type Asked<'a> = (&'a Server, ServerId, AskId);

/// Segments of a file that may come damaged before it is given up.
const DAMAGED_MAX: u32 = 16;

/// Requests to a store for the same bytes. Each of them was sent several times by the store's own client.
const ATTEMPTS_MAX: u32 = 4;

impl Run<'_> {
    /// Fetches ranges of a file.
    pub(super) fn ranges(
        &self,
        (asked, server, ask): Asked<'_>,
        id: FileId,
        ranges: &[Range<u64>],
    ) {
        let number = self.numbers[id.0 as usize];
        let file = &self.job.plan.files[number];
        self.begins(number, server);
        let begun = |request| {
            self.state().requests.insert(ask, (server, request));
        };
        let arrived = |bytes| self.arrived((server, ask), bytes);
        let outcome = asked.ranges(file, ranges, begun, arrived, |segment| {
            self.write(number, (segment.index, segment.hash), segment.bytes);
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
            Err(error) if error.is_of_server() => {
                if matches!(asked, Server::Store(_)) {
                    self.count_attempt(&mut state, number, ranges);
                }
                self.lose(&mut state, server, error);
            }
            Err(error) => self.refused((&mut state, server), number, error),
        }
        drop(state);
        self.over((server, ask));
    }

    /// A request to a store has failed. The service may be there and still never answer this one.
    fn count_attempt(&self, state: &mut State, number: usize, ranges: &[Range<u64>]) {
        let begin = ranges.first().map_or(0, |range| range.start);
        let count = state.attempts.entry((number, begin)).or_default();
        *count += 1;
        if *count >= ATTEMPTS_MAX {
            self.give_up(state, number, FetchError::OutOfReach);
        }
    }

    /// Fetches small files.
    pub(super) fn many(&self, (asked, server, ask): Asked<'_>, files: &[FileId]) {
        let plan = self.job.plan;
        let numbers: Vec<usize> = files.iter().map(|id| self.numbers[id.0 as usize]).collect();
        let wanted: Vec<_> = numbers.iter().map(|number| &plan.files[*number]).collect();
        numbers.iter().for_each(|number| self.begins(*number, server));
        let begun = |request| {
            self.state().requests.insert(ask, (server, request));
        };
        let arrived = |bytes| self.arrived((server, ask), bytes);
        let outcome = asked.many(&wanted, begun, arrived, |index, content| {
            let number = numbers[index];
            match content {
                Ok(bytes) => self.write_small(number, &bytes),
                Err(kind) => {
                    let path = StorePath::from(plan.files[number].path.clone());
                    let text = StoreError::new("read", &path, kind).to_string();
                    let error = RemoteError::Refused { kind, text };
                    self.refused((&mut self.state(), server), number, error);
                }
            }
        });
        if let Err(error) = outcome {
            self.lose(&mut self.state(), server, error);
        }
        self.over((server, ask));
    }

    /// A server cannot give a file. If it only lacks it by now, the others that had it are asked.
    fn refused(&self, (state, server): (&mut State, ServerId), number: usize, error: RemoteError) {
        let is_gone = matches!(error, RemoteError::Refused { kind: ErrorKind::Gone, .. });
        let file = &self.job.plan.files[number];
        let lacking = state.lacking.entry(number).or_default();
        if !lacking.contains(&server) {
            lacking.push(server);
        }
        let has_others = file.at.iter().any(|at| !lacking.contains(at));
        match self.id(number) {
            Some(id) if is_gone && has_others => {
                state.spread.handle_missing(server_id(server), id);
            }
            _ => self.give_up(state, number, FetchError::Server(error)),
        }
    }

    fn begins(&self, number: usize, server: ServerId) {
        let file = &self.job.plan.files[number];
        self.job.meter.file_begins(file.path.as_bytes(), file.seen.size, server);
    }

    fn arrived(&self, (server, ask): (ServerId, AskId), bytes: u64) {
        self.job.meter.add_moved(server, bytes);
        let now = self.now();
        self.state().spread.handle_progress(
            server_id(server),
            ask,
            DataSize::from_bytes(bytes),
            now,
        );
    }

    fn over(&self, (server, ask): (ServerId, AskId)) {
        let mut state = self.state();
        state.requests.remove(&ask);
        state.asks -= 1;
        let now = self.now();
        state.spread.handle_end(server_id(server), ask, now);
        drop(state);
        self.wake();
    }

    fn write_small(&self, number: usize, bytes: &[u8]) {
        let index = SegmentIndex(0);
        let file = Geometry::new(bytes.len() as u64);
        if let Some(hash) = file.and_then(|file| SegmentHash::new(file, index, bytes)) {
            self.write(number, (index, hash), bytes);
        }
    }

    fn write(&self, number: usize, (index, hash): (SegmentIndex, SegmentHash), bytes: &[u8]) {
        let Some(target) = &self.targets[number] else { return };
        let tried = target.tries();
        let written = self.writing(|| {
            if target.is_whole() {
                self.hold(bytes.len() as u64);
            }
            target.write((index, hash), bytes)
        });
        if target.is_whole() && written != Ok(Next::Whole) {
            self.release(bytes.len() as u64);
        }
        match written {
            Ok(next) => {
                if next != Next::Unwanted {
                    self.job.meter.add_written(bytes.len() as u64);
                }
                let mut state = self.state();
                let range = Geometry::new(self.job.plan.files[number].seen.size)
                    .and_then(|file| file.range(index));
                if let (Some(id), Some(range)) = (self.id(number), range) {
                    state.spread.handle_proven(id, range);
                    if let Some((taken, window)) = target.taken().zip(target.window()) {
                        let end = taken.saturating_add(window.bytes());
                        state.spread.handle_reach(id, DataSize::from_bytes(end));
                    }
                }
                if next == Next::Whole {
                    self.on_whole(&mut state, number);
                    drop(state);
                    self.wake();
                }
            }
            Err(error) => self.fail(&mut self.state(), (number, tried), error),
        }
    }

    /// Counts a call of the store that writes bytes which have come.
    pub(super) fn writing<T>(&self, work: impl FnOnce() -> T) -> T {
        self.writes.0.fetch_add(1, Ordering::Relaxed);
        let done = work();
        self.writes.1.fetch_add(1, Ordering::Relaxed);
        self.writes.0.fetch_sub(1, Ordering::Relaxed);
        done
    }
}
