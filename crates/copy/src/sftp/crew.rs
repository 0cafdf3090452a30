//! Several files at a time: while one waits for an answer, others are under way.

use super::Run;
use super::fault::Trouble;
use anyhow::{Error, Result};
use hikyaku_console::Kept;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Files that are copied at once. Each holds at most what [`super::file::WINDOW`] requests carry, 2 MiB.
const WORKERS: usize = 32;
/// Files that were found and wait.
const FOUND_MAX: usize = 1024;

/// What was found, on its way to those who copy it.
pub(super) struct Jobs<'a, J> {
    queue: SyncSender<J>,
    is_over: &'a AtomicBool,
}

impl<J> Jobs<'_, J> {
    /// Adds a file; waits while many wait.
    pub(super) fn add(&self, job: J) -> Result<(), Trouble> {
        // If all workers are gone, the first of them says why.
        if self.is_over.load(Ordering::Relaxed) || self.queue.send(job).is_err() {
            return Err(Trouble::Stopped);
        }
        Ok(())
    }
}

/// Lets `walk` find files on this thread and `work` copy them on others. Failures of files are counted.
pub(super) fn run<J: Send>(
    run: &Run<'_>,
    walk: impl FnOnce(&Jobs<'_, J>) -> Result<(), Trouble>,
    work: impl Fn(J) -> Result<(), Trouble> + Sync,
) -> Result<()> {
    let (queue, found) = sync_channel::<J>(FOUND_MAX);
    let (found, end, is_over) =
        (Mutex::new(found), Mutex::new(None::<Error>), AtomicBool::new(false));
    let tell = |trouble: Trouble| match trouble {
        Trouble::File(place, failure) => run.meter.add_failure(place, &failure),
        Trouble::End(error) => {
            end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            is_over.store(true, Ordering::Relaxed);
        }
        Trouble::Stopped => is_over.store(true, Ordering::Relaxed),
    };
    let next = || found.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(job) = next() {
                    if is_over.load(Ordering::Relaxed) {
                        continue;
                    }
                    work(job).unwrap_or_else(&tell);
                }
            });
        }
        walk(&Jobs { queue, is_over: &is_over }).unwrap_or_else(&tell);
    });
    if run.is_stopped() {
        let kept = if run.journal.is_some() { Kept::Everything } else { Kept::Unrecorded };
        return Err(kept.into());
    }
    match end.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
