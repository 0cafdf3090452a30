//! A worker: a thread with a connection, which asks for one range after the other.

use crate::fetch::{Cut, End, Fetch, Ready, State};
use crate::ranges::LeaseId;
use crate::show::Show;
use crate::standing::Fate;
use anyhow::Error;
use hikyaku_console::causes;
use hikyaku_http::{Answer, Connection, Fault};
use hikyaku_units::RetryPolicy;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// A range is not smaller than this many bytes, unless no more is missing.
const RANGE_BYTES_MIN: u64 = 1 << 20;
/// A range may be as large as this many bytes before anything is known of the path.
const RANGE_BYTES_FIRST: u64 = 16 << 20;
/// A range is no more than a connection carries in this many seconds.
const RANGE_SECONDS: f64 = 4.0;

/// Work that was taken.
struct Job {
    id: LeaseId,
    range: Range<u64>,
    source: usize,
    ready: Option<Answer>,
}

/// Why a job was not done.
enum Failure {
    Fault(Fault),
    Local(Error),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A connection that is open between two ranges.
type Kept = Option<(usize, Connection)>;

struct Worker<'a, 'b> {
    fetch: &'a Fetch<'b>,
    index: usize,
    kept: Kept,
    buffer: Box<[u8]>,
    /// The source from which bytes flow to it: it counts among those at work.
    flowing: Option<usize>,
}

/// Works until the fetch is over. `first` is an answer that is there already.
pub(crate) fn work(fetch: &Fetch<'_>, index: usize, first: Option<Ready>) {
    let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
    let mut worker = Worker { fetch, index, kept: None, buffer, flowing: None };
    let mut job = first.and_then(|ready| take_ready(fetch, ready));
    while let Some(next) = job.take().or_else(|| worker.next()) {
        let (id, source, begun) = (next.id, next.source, Instant::now());
        let done = worker.carry_out(next);
        worker.after((id, source), begun, done);
        fetch.notify();
    }
    worker.set_flowing(&mut fetch.state(), None);
}

/// A lease on the range of an answer, if that is missing.
fn take_ready(fetch: &Fetch<'_>, mut ready: Ready) -> Option<Job> {
    ready.answer.connection.end_with(&fetch.over);
    let mut state = fetch.state();
    if state.board.first_missing() != Some(ready.range.start) {
        return None;
    }
    let length = ready.range.end - ready.range.start;
    let (id, range) = state.board.take(length, ready.source, Instant::now())?;
    state.standings[ready.source].workers += 1;
    Some(Job { id, range, source: ready.source, ready: Some(ready.answer) })
}

impl Worker<'_, '_> {
    /// The next job; `None` when the fetch is over.
    fn next(&mut self) -> Option<Job> {
        let fetch = self.fetch;
        let mut state = fetch.state();
        loop {
            if state.end.is_some() || fetch.over.is_set() {
                return None;
            }
            if state.board.left() == 0 {
                drop(state);
                fetch.end(End::Done);
                return None;
            }
            if self.index < state.wanted.min(state.cap)
                && let Some(job) = self.take(&mut state)
            {
                return Some(job);
            }
            self.set_flowing(&mut state, None);
            if self.index >= state.wanted.min(state.cap) {
                // A server counts open connections: this one is for the others.
                self.kept = None;
            }
            state = fetch.wait(state);
        }
    }

    fn take(&self, state: &mut State) -> Option<Job> {
        let now = Instant::now();
        let of_kept = self.kept.as_ref().map(|(source, _)| *source);
        let may = |&at: &usize| state.standings[at].may_be_asked(now);
        let all = 0..state.standings.len();
        let source = of_kept
            .filter(may)
            .or_else(|| all.filter(may).min_by_key(|&at| state.standings[at].workers))?;
        let taken = match self.range_bytes(state) {
            Some(most) => state.board.take(most, source, now),
            None if self.fetch.cut == Cut::ByRate => state.board.steal(source, now),
            None => None,
        };
        let (id, range) = taken?;
        state.standings[source].workers += 1;
        Some(Job { id, range, source, ready: None })
    }

    /// The size of the next range; `None` if all that is missing is being fetched.
    fn range_bytes(&self, state: &State) -> Option<u64> {
        let start = state.board.first_missing()?;
        if let Cut::Pieces(piece) = self.fetch.cut {
            return Some(piece - start % piece);
        }
        // Ever smaller shares of what is left keep the connections busy to the end.
        let share = state.board.left() / (2 * state.wanted.max(1) as u64);
        let by_rate = self.fetch.show.rate() / state.flowing.max(1) as f64 * RANGE_SECONDS;
        let most = RANGE_BYTES_FIRST.max(by_rate as u64);
        Some(share.clamp(RANGE_BYTES_MIN, most))
    }

    fn carry_out(&mut self, job: Job) -> Result<(), Failure> {
        let (fetch, source) = (self.fetch, &self.fetch.sources[job.source]);
        let (answer, range) = match job.ready {
            Some(answer) => (answer, job.range),
            None => {
                let kept = self.kept.take().filter(|(of, _)| *of == job.source);
                let kept = kept.map(|(_, kept)| kept);
                let (client, stop) = (fetch.client, &fetch.over);
                let part = source.part(client, kept, &job.range, fetch.known, stop)?;
                let (rtt, mut state) = (part.0.connection.rtt(), fetch.state());
                state.rtt = Some(state.rtt.map_or(rtt, |least| least.min(rtt)));
                part
            }
        };
        let mut connection = answer.connection;
        self.read(&mut connection, job.id, range, job.source)?;
        if connection.finish() {
            self.kept = Some((job.source, connection));
        }
        Ok(())
    }

    /// Reads a range and writes it to the file, as far as the lease goes: its end may have been taken over meanwhile.
    fn read(
        &mut self,
        connection: &mut Connection,
        id: LeaseId,
        range: Range<u64>,
        source: usize,
    ) -> Result<(), Failure> {
        let fetch = self.fetch;
        let mut at = range.start;
        while at < range.end {
            let room = fetch.limit.piece_bytes(self.buffer.len()) as u64;
            let room = room.min(range.end - at) as usize;
            let length = connection.read(&mut self.buffer[..room])?;
            if length == 0 {
                return Err(Fault::Closed.into());
            }
            let mut state = fetch.state();
            let (offset, taken) = state.board.reserve(id, length as u64);
            self.set_flowing(&mut state, Some(source));
            drop(state);
            if taken == 0 {
                break;
            }
            let begin = Instant::now();
            fetch.write(offset, &self.buffer[..taken as usize]).map_err(Failure::Local)?;
            let now = Instant::now();
            let mut state = fetch.state();
            state.board.wrote(id, now);
            state.disk += now - begin;
            state.bytes += taken;
            state.standings[source].succeed();
            drop(state);
            fetch.show.counted().fetch_add(taken, Ordering::Relaxed);
            fetch.limit.wait(length as u64, || fetch.over.is_set());
            if taken < length as u64 {
                break;
            }
            at += length as u64;
        }
        Ok(())
    }

    fn set_flowing(&mut self, state: &mut State, source: Option<usize>) {
        if let Some(before) = self.flowing {
            state.flowing -= 1;
            state.standings[before].flowing -= 1;
        }
        if let Some(now) = source {
            state.flowing += 1;
            state.standings[now].flowing += 1;
        }
        self.flowing = source;
    }

    /// After a job: gives the lease back, and decides what a failure means for the source.
    fn after(&mut self, (id, source): (LeaseId, usize), begun: Instant, done: Result<(), Failure>) {
        let fetch = self.fetch;
        let mut state = fetch.state();
        state.board.end(id);
        state.standings[source].workers -= 1;
        let Err(failure) = done else { return };
        self.kept = None;
        self.set_flowing(&mut state, None);
        let fault = match failure {
            Failure::Local(error) => {
                drop(state);
                return fetch.end(End::Local(error));
            }
            Failure::Fault(Fault::Stopped) => return,
            // The bytes so far and the bytes to come are of two versions.
            Failure::Fault(Fault::Changed) => {
                drop(state);
                return fetch.end(End::Fault(Fault::Changed));
            }
            Failure::Fault(fault) => fault,
        };
        let all = state.flowing;
        let standing = &mut state.standings[source];
        let is_counted = begun < standing.failed;
        let may_again = is_counted || standing.failures < fetch.conduct.retries;
        let may_wait = is_counted || standing.waited.next(&fault, Duration::ZERO).is_some();
        if fault.may_pass() && may_again && may_wait {
            if fault.is_refusal() && standing.flowing > 0 {
                // The server has enough of them. Those that are at work go on.
                state.cap = state.cap.min(all);
                return;
            }
            let wait = |failures| {
                let own = fetch.conduct.retry.wait(failures);
                // It answers at once, whatever wait it asks for: the attempts would be used up before any of its
                // connections is over.
                let least = match fault.is_busy() {
                    true => RetryPolicy::WEB_BUSY.wait(failures),
                    false => Duration::ZERO,
                };
                fault.retry_after().unwrap_or(own).max(least)
            };
            // All of those that began together were refused: half as many are tried.
            let half = (standing.workers + 1).div_ceil(2);
            let is_first = !is_counted;
            standing.fail(begun, Instant::now(), wait);
            if fault.is_busy() && is_first {
                state.cap = state.cap.min(half);
            }
            return;
        }
        if standing.fate != Fate::Used {
            return;
        }
        standing.fate = Fate::Dropped;
        let is_last = state.standings.iter().all(|standing| standing.fate != Fate::Used);
        drop(state);
        if is_last {
            return fetch.end(End::Fault(fault));
        }
        let place = &fetch.sources[source].place.first;
        tell_dropped(fetch.show, &place.to_string(), &fault.into());
    }
}

/// Shows that a mirror is not used any more.
pub(crate) fn tell_dropped(show: &Show, place: &str, why: &Error) {
    show.remark(format!("{place} is not used any more: {}", causes(why)));
}
