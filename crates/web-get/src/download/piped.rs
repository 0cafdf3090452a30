//! A file that is written to an output, in order, as it comes.
//!
//! One connection carries it, and what is written cannot be taken back. If the connection breaks, another one goes on where
//! it broke, but only if the server says that it has the same version, or if a digest of the whole is compared at the end.

use super::first::{ask, known, tell_waiting};
use super::{Added, Job, Tools, repair};
use crate::fetch::Unfetched;
use crate::output::Output;
use crate::standing::Fate;
use crate::verify::{Sums, Verdict};
use anyhow::Error;
use hikyaku_console::with_remedy;
use hikyaku_fs::{Draft, Replace};
use hikyaku_http::{Answer, Attempts, Fault, First, Known, Proof, Source};
use std::sync::atomic::Ordering;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// An output, and the number of bytes written to it.
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
    let mut fates = vec![Fate::Used; sources.len()];
    let (source, first) = ask(tools, &sources, &mut fates, &job.expect)?;
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
    pipe.draft.name(Replace::Allowed).map_err(|error| Unfetched::Local(error.into()))?;
    let size = pipe.at;
    repair::check_size(size, &expect).map_err(Unfetched::Local)?;
    match pipe.sums.verdict(size) {
        Verdict::Right => {}
        _ => return Err(Unfetched::Local(repair::damaged(&expect, "written already").into())),
    }
    tools.show.count(|counts| counts.files += 1);
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
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let room = tools.limit.piece_bytes(buffer.len());
            let left = self.total.map_or(u64::MAX, |total| total.saturating_sub(self.at));
            let room = room.min(usize::try_from(left).unwrap_or(usize::MAX));
            let length = connection.read(&mut buffer[..room]).map_err(Unfetched::Fault)?;
            if length == 0 {
                break;
            }
            let written = self.draft.pour(|output| output.write_all(&buffer[..length]));
            written.map_err(|error| stopped(tools, error.into()))?;
            self.sums.update(&buffer[..length]);
            self.at += length as u64;
            tools.show.counted().fetch_add(length as u64, Ordering::Relaxed);
            tools.limit.wait(length as u64, || tools.interrupted.is_set());
        }
        Ok(())
    }

    /// Asks for the file from where it is missing.
    fn ask(&mut self) -> Result<Answer, Fault> {
        let (tools, source) = (self.tools, self.source);
        let (true, Some(total)) = (self.at > 0, self.total) else {
            let (answer, offer) = source.whole(tools.client, None, tools.interrupted)?;
            self.total = offer.total;
            return Ok(answer);
        };
        let (range, stop) = (self.at..total, tools.interrupted);
        Ok(source.part(tools.client, None, &range, self.known, stop)?.0)
    }
}
