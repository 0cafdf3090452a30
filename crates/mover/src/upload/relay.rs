//! Files that come by the channels of a source, while they are sent on.

use super::lane::{Sent, Trouble, Way, first};
use super::run::{At, Attempt, Run};
use super::source::{Counted, unreadable};
use crate::census::ServerId;
use crate::fetch::FetchError;
use hikyaku_remote::{RequestId, SMALL_BYTES_MAX};
use hikyaku_store::{Asked, Cut, ErrorKind, FetchError as Failure, Wanted};
use hikyaku_transfer::Geometry;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes of one request of a file. The target has room when the request begins, and gets all of it.
const REQUEST_BYTES: u64 = 8 << 20;
/// Small files of one request, and their bytes.
pub(super) const GROUP_MAX: usize = 64;
pub(super) const GROUP_BYTES: u64 = 2 << 20;
/// Requests in a row for the same bytes.
const TRIES: u32 = 4;

/// The next bytes of a file.
enum Piece<'a> {
    Bytes(&'a [u8]),
    /// So many zeros that are no bytes of the source.
    Hole(u64),
}

/// A small file of a group, and what came of the request for it.
type Content = (Attempt, Result<Vec<u8>, FetchError>);

impl Run<'_> {
    /// Fetches small files.
    pub(super) fn contents(&self, at: At, group: Vec<Attempt>) -> Vec<Content> {
        let is_empty = |one: &Attempt| self.job.plan.files[one.file].seen.size == 0;
        let (empty, mut open): (Vec<_>, Vec<_>) = group.into_iter().partition(is_empty);
        let mut done: Vec<Content> = empty.into_iter().map(|one| (one, Ok(Vec::new()))).collect();
        let mut tries = 0;
        while let Some(begun) = open.first() {
            let servers = &self.job.plan.files[begun.file].at;
            let call = match self.channels.call(servers, || self.is_ended()) {
                Ok(call) => call,
                Err(error) => {
                    done.push((open.remove(0), Err(error)));
                    continue;
                }
            };
            let is_there = |one: &Attempt| self.job.plan.files[one.file].at.contains(&call.server);
            let (asked, later): (Vec<_>, Vec<_>) = open.into_iter().partition(is_there);
            open = later;
            asked.iter().for_each(|one| self.begins(at, *one, call.server));
            let wanted: Vec<Wanted> =
                asked.iter().map(|one| self.job.plan.files[one.file].wanted()).collect();
            let mut answers: Vec<Option<Result<Vec<u8>, ErrorKind>>> = vec![None; asked.len()];
            let begin = Instant::now();
            let outcome = call.fetcher.small(
                &wanted.iter().collect::<Vec<_>>(),
                &Cut::default(),
                &|bytes| self.came(call.server, bytes),
                &mut |index, content| answers[index] = Some(content),
            );
            self.has_waited(begin);
            if matches!(outcome, Err(Failure::Lost(_))) {
                call.lost();
                tries += 1;
            }
            for (attempt, answer) in asked.into_iter().zip(answers) {
                let file = &self.job.plan.files[attempt.file];
                let source = |kind| unreadable(file, kind);
                match (answer, &outcome) {
                    (Some(Ok(bytes)), _) if bytes.len() as u64 == file.seen.size => {
                        done.push((attempt, Ok(bytes)));
                    }
                    (Some(Err(kind)), _) => done.push((attempt, Err(source(kind)))),
                    (None, Err(Failure::File(kind))) => done.push((attempt, Err(source(*kind)))),
                    (None, Err(Failure::Lost(_))) if tries < TRIES => open.push(attempt),
                    (None, Err(Failure::Lost(_))) => {
                        done.push((attempt, Err(FetchError::OutOfReach)));
                    }
                    (Some(Ok(_)) | None, _) => done.push((attempt, Err(FetchError::Damaged))),
                }
            }
        }
        done
    }

    /// Fetches a file, and passes its bytes to `each` in order. `each` returns whether more bytes are wanted.
    fn ranges(
        &self,
        way: &Way<'_>,
        has_room: impl Fn() -> bool,
        mut each: impl FnMut(u64, Piece<'_>) -> bool,
    ) -> Result<Sent, FetchError> {
        let file = &self.job.plan.files[way.attempt.file];
        let (wanted, size) = (file.wanted(), file.seen.size);
        let geometry = Geometry::new(size).ok_or(FetchError::TooLarge)?;
        let (mut holes, mut done, mut tries) = (None, 0, 0);
        while done < size {
            if !has_room() {
                return Ok(Sent::Unwanted);
            }
            let call = self.channels.call(&file.at, || self.is_ended())?;
            self.begins(way.at, way.attempt, call.server);
            let known = match &mut holes {
                Some(holes) => holes,
                None if file.data >= size => holes.insert(VecDeque::new()),
                None => match call.fetcher.holes(&wanted) {
                    Ok(found) => holes.insert(found.into()),
                    Err(Failure::File(kind)) => return Err(unreadable(file, kind)),
                    Err(Failure::Full | Failure::Lost(_)) if tries < TRIES => {
                        tries += 1;
                        call.lost();
                        continue;
                    }
                    Err(Failure::Full | Failure::Lost(_)) => return Err(FetchError::OutOfReach),
                },
            };
            let next = known.front().map_or(size, |hole| hole.start);
            if next <= done {
                let hole = known.pop_front().unwrap_or_default();
                done = hole.end;
                if !each(hole.start, Piece::Hole(hole.end - hole.start)) {
                    return Ok(Sent::Unwanted);
                }
                continue;
            }
            let (begin, cut) = (done, Cut::default());
            let asked = begin..next.min(begin + REQUEST_BYTES);
            let (mut is_wanted, mut since) = (true, Instant::now());
            let outcome = call.fetcher.ranges(
                &wanted,
                &Asked::whole(std::slice::from_ref(&asked)),
                &cut,
                &|bytes| self.came(call.server, bytes),
                &mut |segment| {
                    self.has_waited(since);
                    // The bytes after a damaged segment are requested again.
                    let range = geometry.range(segment.index).filter(|range| range.start == done);
                    if let Some(range) = range.filter(|_| is_wanted) {
                        // A server of the source reports no holes, but how many bytes are in none.
                        let is_hole = file.data < size && segment.bytes.iter().all(|it| *it == 0);
                        let piece = match is_hole {
                            true => Piece::Hole(range.end - range.start),
                            false => Piece::Bytes(segment.bytes),
                        };
                        is_wanted = each(range.start, piece);
                        done = range.end;
                        if !is_wanted {
                            cut.at(0);
                        }
                    }
                    since = Instant::now();
                },
            );
            self.has_waited(since);
            if !is_wanted {
                return Ok(Sent::Unwanted);
            }
            tries = if done > begin { 0 } else { tries + 1 };
            match outcome {
                Ok(_) if tries < TRIES => {}
                Ok(_) => return Err(FetchError::Damaged),
                Err(Failure::File(kind)) => return Err(unreadable(file, kind)),
                Err(Failure::Full | Failure::Lost(_)) if tries < TRIES => call.lost(),
                Err(Failure::Full | Failure::Lost(_)) => return Err(FetchError::OutOfReach),
            }
        }
        Ok(Sent::All)
    }

    /// A lane has waited for the source.
    fn has_waited(&self, since: Instant) {
        let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.reading.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Sends the bytes of a large file as they come.
    pub(super) fn relay(
        &self,
        way: &Way<'_>,
        (draft, trouble): (RequestId, &Trouble),
    ) -> Result<Sent, FetchError> {
        let (at, attempt) = (way.at, way.attempt);
        let sent = self.ranges(
            way,
            || self.waits_for_room(at, attempt),
            |mut begin, piece| {
                let bytes = match piece {
                    Piece::Bytes(bytes) => bytes,
                    Piece::Hole(length) => {
                        self.hole(way, (draft, trouble), begin..begin + length);
                        return first(trouble).is_none();
                    }
                };
                for piece in bytes.chunks(SMALL_BYTES_MAX as usize) {
                    let length = piece.len() as u64;
                    if first(trouble).is_some() || !self.sends(at, attempt, length) {
                        return false;
                    }
                    self.piece(way, (draft, trouble), begin, piece);
                    begin += length;
                }
                true
            },
        )?;
        first(trouble).map_or(Ok(sent), |error| Err(FetchError::Server(error)))
    }

    /// Fetches a small file that has a request of its own.
    pub(super) fn content(&self, way: &Way<'_>) -> Result<Vec<u8>, FetchError> {
        let mut content = Vec::new();
        self.ranges(
            way,
            || true,
            |_, piece| {
                match piece {
                    Piece::Bytes(bytes) => content.extend_from_slice(bytes),
                    Piece::Hole(length) => content.resize(content.len() + length as usize, 0),
                }
                true
            },
        )?;
        Ok(content)
    }

    /// A file begins: for the log, at the server that the meter counts it for.
    fn begins(&self, at: At, attempt: Attempt, channel: ServerId) {
        let file = &self.job.plan.files[attempt.file];
        let server = match self.job.source.counted {
            Counted::Source => channel,
            Counted::Target => at.server,
        };
        self.job.meter.file_begins(file.to.as_bytes(), file.seen.size, server);
    }
}
