//! A file that comes in order by one answer: a small file, a file for an output, and a file of a server without ranges or
//! versions.
//!
//! One connection carries it. An output does not give written bytes back: if the connection breaks, another one continues
//! there, but only if the server sends the same version, or if a digest of the whole is compared at the end. A file begins
//! anew.

use super::first::{FirstRange, ask, known, tell_waiting};
use super::{Added, Job, Tools, Unfetched, check_size, damaged};
use crate::metalink::Expect;
use crate::output::Output;
use crate::target::{Spot, discard};
use crate::verify::{Sums, Verdict};
use anyhow::{Error, Result};
use hikyaku_console::with_remedy;
use hikyaku_fs::{Draft, Name};
use hikyaku_http::{Answer, Attempts, Fault, First, Known, Proof, Source, Turn};
use hikyaku_job::JournalFile;
use hikyaku_transfer::{FileRecord, Geometry, Record, SEGMENT, SegmentHash, Version};
use std::sync::atomic::Ordering;

/// Bytes that are read at once, at most.
const PIECE_BYTES: usize = 256 << 10;

/// A draft, and the number of bytes that are written to it.
struct Pipe<'a> {
    tools: &'a Tools<'a>,
    source: &'a Source,
    draft: Draft,
    known: &'a Known,
    sums: Sums<'a>,
    /// Bytes that are written.
    at: u64,
    /// The size of the file, if it is known.
    total: Option<u64>,
}

/// Fetches a file to an output.
pub(super) fn pipe(tools: &Tools<'_>, job: &Job, output: &Output) -> Result<(), Unfetched> {
    let sources = job.sources();
    let mut used = vec![true; sources.len()];
    let expected = (&job.expect, FirstRange::Part);
    let (source, first) = ask(tools, &sources, &mut used, expected)?;
    let (known, expect) = known(&first.offer, &job.expect);
    let total = known.offer.total;
    tools.add(Added { total_bytes: total.unwrap_or(0), kept_bytes: 0 });
    let First { answer, range, .. } = first;
    // A part is of no use if the next one may be of another version.
    let is_used = known.proof != Proof::None || range.is_none_or(|range| Some(range.end) == total);
    let sums = Sums::new(total, &expect);
    let draft = output.open(tools.interrupted).map_err(|error| stopped(tools, error))?;
    let source = &sources[source];
    let mut pipe = Pipe { tools, source, draft, known: &known, sums, at: 0, total };
    pipe.run(is_used.then_some(answer))?;
    if total.is_none() {
        tools.add(Added { total_bytes: pipe.at, kept_bytes: 0 });
    }
    pipe.draft.close().map_err(|error| Unfetched::Local(error.into()))?;
    let size = pipe.at;
    check_size(size, &expect).map_err(Unfetched::Local)?;
    match pipe.sums.verdict(size) {
        Verdict::Right => {}
        _ => return Err(Unfetched::Local(damaged(&expect, "written already").into())),
    }
    tools.show.count(|counts| counts.files += 1);
    Ok(())
}

/// Fetches a file from a server that gives no parts. Nothing of it can be kept for a later attempt.
pub(super) fn stream(
    tools: &Tools<'_>,
    spot: &Spot,
    (source, first): (&Source, First),
    (known, expect): (&Known, &Expect),
) -> Result<(), Unfetched> {
    let local = Unfetched::Local;
    let (store, opened) = spot.open(&source.place.first.to_string()).map_err(local)?;
    if let Err(error) = tools.existing.get().check(&spot.place) {
        let is_named = spot.is_named(&*store, &opened, version());
        discard(&*store, &opened);
        opened.journal.remove();
        return if is_named { Ok(()) } else { Err(local(error)) };
    }
    discard(&*store, &opened);
    let total = first.offer.total;
    tools.add(Added { total_bytes: total.unwrap_or(0), kept_bytes: 0 });
    // A part is of no use if the next one may be of another version.
    let is_whole = first.range.is_none_or(|range| Some(range.end) == total);
    let (mut answer, mut attempts) =
        (is_whole.then_some(first.answer), Attempts::new(tools.conduct.retry));
    let done = loop {
        let counted = tools.show.sent();
        let draft = made(spot, &opened.journal).map_err(local)?;
        let sums = Sums::new(total, expect);
        let mut pipe = Pipe { tools, source, draft, known, sums, at: 0, total };
        let fault = match pipe.write_answer(answer.take()) {
            Ok(()) if pipe.total.is_none_or(|total| pipe.at >= total) => {
                break pipe.finish((spot, &opened.journal), expect);
            }
            Ok(()) => Fault::Closed,
            Err(Unfetched::Fault(fault)) => fault,
            Err(error) => {
                pipe.draft.discard();
                break Err(error);
            }
        };
        pipe.draft.discard();
        let Some(wait) = attempts.next(&fault, tools.conduct.retries) else {
            break Err(Unfetched::Fault(fault));
        };
        tools.interrupted.sleep(wait);
        tools.show.forget(tools.show.sent().saturating_sub(counted));
    };
    opened.journal.remove();
    done
}

/// A new unfinished file, which the journal names: if this process is killed, the next one removes it.
fn made(spot: &Spot, journal: &JournalFile) -> Result<Draft> {
    let name = spot.place.partial()?;
    journal.append(&[record(spot, &name, 0)]);
    Ok(spot.place.make(name)?)
}

/// The record of an unfinished file of this name.
fn record(spot: &Spot, partial: &Name, size: u64) -> Record {
    let (path, partial) = (spot.place.name.as_bytes().to_vec(), partial.as_bytes().to_vec());
    Record::File(FileRecord { path, partial, size, version: version() })
}

/// A version that no file has which comes in parts: nothing of such a file is continued.
fn version() -> Version {
    Version::of(&[])
}

/// Records all segments of a file that is about to get its name: if this process is killed, the next one knows the file.
fn record_whole(spot: &Spot, journal: &JournalFile, (draft, size): (&Draft, u64)) -> Result<()> {
    let Some(geometry) = Geometry::new(size) else { return Ok(()) };
    journal.append(&[record(spot, draft.partial(), size)]);
    let mut bytes = vec![0; SEGMENT as usize];
    for first in geometry.indices() {
        let range = geometry.range(first).unwrap_or_default();
        let bytes = &mut bytes[..(range.end - range.start) as usize];
        draft.read_exact_at(range.start, bytes)?;
        let hashes = Vec::from_iter(SegmentHash::new(geometry, first, bytes));
        let path = spot.place.name.as_bytes().to_vec();
        journal.append(&[Record::Segments { path, first, hashes }]);
    }
    Ok(())
}

/// The error of an output: one that nobody reads is waited for until the command is to end.
fn stopped(tools: &Tools<'_>, error: Error) -> Unfetched {
    match tools.interrupted.is_set() {
        true => Unfetched::Fault(Fault::Stopped),
        false => Unfetched::Local(error),
    }
}

impl Pipe<'_> {
    /// Writes the file to its end, by as many answers as that takes.
    fn run(&mut self, answer: Option<Answer>) -> Result<(), Unfetched> {
        let (mut answer, mut attempts) = (answer, Attempts::new(self.tools.conduct.retry));
        loop {
            let before = self.at;
            let fault = match self.write_answer(answer.take()) {
                Ok(()) if self.total.is_none_or(|total| self.at >= total) => return Ok(()),
                Ok(()) if self.at > before => continue,
                Ok(()) => Fault::Closed,
                Err(Unfetched::Fault(fault)) => fault,
                Err(error) => return Err(error),
            };
            if self.at > before {
                attempts.succeed();
            }
            let wait = attempts.next(&fault, self.tools.conduct.retries);
            let Some(wait) = wait.filter(|_| self.may_go_on()) else {
                return Err(self.lost(fault));
            };
            tell_waiting(self.tools, fault, wait);
            self.tools.interrupted.sleep(wait);
        }
    }

    /// Gives a file that is right its name.
    fn finish(
        self,
        (spot, journal): (&Spot, &JournalFile),
        expect: &Expect,
    ) -> Result<(), Unfetched> {
        let Self { tools, draft, sums, at: size, total, .. } = self;
        if total.is_none() {
            tools.add(Added { total_bytes: size, kept_bytes: 0 });
        }
        let check = || -> Result<()> {
            check_size(size, expect)?;
            match sums.verdict(size) {
                Verdict::Right => {}
                _ => return Err(damaged(expect, "removed").into()),
            }
            spot.place.complete(&draft)?;
            record_whole(spot, journal, (&draft, size))?;
            // Not every file system can refuse to replace a file in the renaming itself.
            tools.existing.get().check(&spot.place)?;
            Ok(spot.place.give_name(&draft)?)
        };
        let done = check().map_err(Unfetched::Local);
        if done.is_err() {
            draft.discard();
        }
        done
    }

    /// Whether another answer can go on with what is missing.
    fn may_go_on(&self) -> bool {
        self.at == 0 || self.known.proof != Proof::None && self.total.is_some()
    }

    /// The error for a fault after which the file does not go on.
    fn lost(&self, fault: Fault) -> Unfetched {
        if self.at == 0 || matches!(fault, Fault::Stopped) {
            return Unfetched::Fault(fault);
        }
        let text =
            format!("{} bytes of the file are written already, and the rest is missing", self.at);
        let remedy = "-o FILE: a download into a file begins anew where it cannot be resumed";
        Unfetched::Local(with_remedy(Error::from(fault).context(text), Some(remedy)))
    }

    /// Asks for what is missing, unless `answer` has it, and writes what comes.
    fn write_answer(&mut self, answer: Option<Answer>) -> Result<(), Unfetched> {
        let answer = match answer {
            Some(answer) => Ok(answer),
            None => self.ask(),
        };
        let Answer { mut connection, .. } = answer.map_err(Unfetched::Fault)?;
        let tools = self.tools;
        loop {
            let most = tools.limit.piece_bytes(PIECE_BYTES);
            let left = self.total.map_or(u64::MAX, |total| total.saturating_sub(self.at));
            let most = most.min(usize::try_from(left).unwrap_or(usize::MAX));
            let bytes = connection.read(most).map_err(Unfetched::Fault)?;
            if bytes.is_empty() {
                break;
            }
            let written = self.draft.pour(|output| output.write_all(&bytes));
            written.map_err(|error| stopped(tools, error.into()))?;
            self.sums.update(&bytes);
            let length = bytes.len() as u64;
            self.at += length;
            tools.show.counted().fetch_add(length, Ordering::Relaxed);
            tools.limit.wait(length, || tools.interrupted.is_set());
        }
        tools.client.keep(connection);
        Ok(())
    }

    /// Asks for the file from where it is missing.
    fn ask(&mut self) -> Result<Answer, Fault> {
        let (tools, source) = (self.tools, self.source);
        let how = (tools.interrupted, Turn::Waits);
        let (true, Some(total)) = (self.at > 0, self.total) else {
            let (answer, offer) = source.whole(tools.client, how)?;
            self.total = offer.total;
            return Ok(answer);
        };
        Ok(source.part(tools.client, &(self.at..total), self.known, how)?.0)
    }
}
