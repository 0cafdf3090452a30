//! Small files of a request, several of which are requested at once.

use super::{FtpFetcher, compare};
use crate::batch::{Batch, Steps};
use crate::chunker::Attempt;
use hikyaku_gridftp::{Channel, FtpError, Mode, Part, Plan, Store, Wanted as WantedPart};
use hikyaku_store::{Cut, ErrorKind, FetchError, StorePath, Wanted};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest file that is fetched with others.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
/// Files of a batch, whose facts are requested together.
const FILES_MAX: usize = 256;
/// Bytes of a batch, which are in memory.
const BYTES_MAX: u64 = 16 << 20;
/// Files whose facts are requested at once.
const QUESTIONS: usize = 64;

/// The number of the first of these files that make a batch.
pub(super) fn batch_of(files: &[&Wanted]) -> usize {
    let mut bytes = 0;
    let fits = |file: &&&Wanted| {
        bytes += file.size;
        bytes <= BYTES_MAX
    };
    files.iter().take(FILES_MAX).take_while(fits).count().max(1)
}

/// How far a file of a batch has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// It was not requested: it is behind the cut.
    Unwanted,
    Requested,
    Whole,
    Failed(ErrorKind),
}

impl FtpFetcher {
    /// Fetches a batch, up to a cut. `before` is the number of bytes before it.
    pub(super) fn batch(
        &self,
        files: &[&Wanted],
        (cut, before): (&Cut, &mut u64),
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), FetchError> {
        let paths: Vec<Vec<u8>> = files.iter().map(|file| self.ftp.full(&file.path)).collect();
        let content = |file: &&Wanted| Mutex::new(vec![0; usize::try_from(file.size).unwrap_or(0)]);
        let contents: Vec<Mutex<Vec<u8>>> = files.iter().map(content).collect();
        let wanted = |number: usize| {
            let (length, content) = (files[number].size, &contents[number]);
            let store = move |at: u64, bytes: &[u8]| {
                arrived(bytes.len() as u64);
                self.pace.wait(bytes.len() as u64);
                let mut content = content.lock().unwrap_or_else(PoisonError::into_inner);
                content[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                Ok(())
            };
            let with: Arc<Store<'_>> = Arc::new(store);
            let part = Part { path: &paths[number], offset: 0, length };
            WantedPart { part, connections: 1, with }
        };
        let mut stages = vec![Stage::Unwanted; files.len()];
        let mut first = 0;
        while first < files.len() && !cut.is_reached(*before) {
            let (mut whole, mut open) = (Vec::new(), Vec::new());
            let mut prepare = |at: usize| {
                let number = first + at;
                if stages[number] == Stage::Unwanted {
                    if cut.is_reached(*before) {
                        return None;
                    }
                    *before += files[number].size;
                }
                // A server need not send an empty file.
                let is_empty = files[number].size == 0;
                stages[number] = if is_empty { Stage::Whole } else { Stage::Requested };
                (!is_empty).then(|| (wanted(number), ()))
            };
            let mut done = |at: usize, ()| whole.push(first + at);
            let steps = Steps { prepare: &mut prepare, done: &mut done };
            let moved = self.with(|channel, chunker| {
                // A name is checked while no other command is under way.
                let odd = paths[first..].iter().find(|path| !path.is_ascii());
                odd.map_or(Ok(()), |path| channel.check_name(path))?;
                let is_ahead = channel.mode() == Mode::Extended && chunker.works_ahead();
                let depth = if is_ahead { self.reading.ahead } else { 1 };
                let mut batch = Batch::new(files.len() - first, depth, steps);
                let moved = chunker.batch(channel, &mut batch, &download, &AtomicU64::new(0));
                open.extend(batch.left().next().map(|at| first + at));
                moved
            });
            whole.into_iter().for_each(|number| stages[number] = Stage::Whole);
            if matches!(moved, Ok(Attempt::Whole)) {
                break;
            }
            // The file at which a batch has failed is fetched alone, which returns the reason. Another batch has the others.
            let is_open =
                |number: &usize| matches!(stages[*number], Stage::Unwanted | Stage::Requested);
            let Some(number) = open.pop().or_else(|| (first..files.len()).find(is_open)) else {
                break;
            };
            let WantedPart { part, with, .. } = wanted(number);
            let alone = self.with_retries(|channel| match part.length {
                0 => Ok(()),
                _ => {
                    channel.get(&part, 1, &AtomicU64::new(0), |at, bytes| with(at, bytes)).map(drop)
                }
            });
            if stages[number] == Stage::Unwanted {
                *before += files[number].size;
            }
            let path = &files[number].path;
            stages[number] = match alone.map_err(|error| self.failed(path, error)) {
                Ok(()) => Stage::Whole,
                Err(FetchError::File(kind)) => Stage::Failed(kind),
                Err(lost) => return Err(lost),
            };
            first = number + 1;
        }
        let facts = self.with_retries(|channel| channel.facts_of_each(&paths, QUESTIONS));
        let facts = facts.map_err(|error| self.failed(&StorePath::ROOT, error))?;
        for (number, content) in contents.into_iter().enumerate() {
            let facts = facts.get(number).and_then(Option::as_ref);
            let result = match stages[number] {
                Stage::Unwanted | Stage::Requested => continue,
                Stage::Whole => compare(files[number], facts, self.reading.links),
                Stage::Failed(kind) => Err(kind),
            };
            each(
                number,
                result.map(|()| content.into_inner().unwrap_or_else(PoisonError::into_inner)),
            );
        }
        Ok(())
    }
}

/// Downloads the parts of a plan.
fn download<'p>(
    channel: &mut Channel,
    plan: &mut dyn Plan<'p, Arc<Store<'p>>>,
    counted: &AtomicU64,
) -> Result<(), FtpError> {
    channel.download(plan, counted)
}
