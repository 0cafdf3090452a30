//! Small files of a tree between two servers, asked for several at once over the same data connection.
//!
//! A file by itself costs a few round trips, however small it is. In a batch the commands of the next files are at the server
//! while it sends or stores the one before. Those that have come get their names together at its end, when it is known that
//! nobody has written to their sources meanwhile. A file that a batch has not copied is copied by itself afterwards, so a
//! batch does not try again and has no journal.

mod between;

pub(crate) use between::relay_all;

use crate::paths::partial_name;
use crate::session::Session;
use crate::several::Between;
use anyhow::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// The largest file of a batch. Larger ones are worth connections of their own.
pub(crate) const SMALL_BYTES_MAX: u64 = 1 << 20;
/// Files of a batch: their names are in memory, and the directory of each is open.
const FILES_MAX: usize = 256;
/// Files of a batch if there are helpers, so that each has some.
const FILES_MAX_OF_HELPER: usize = 64;
/// Bytes of a batch: so much is lost if it is interrupted.
const BYTES_MAX: u64 = 32 << 20;

/// A temporary name beside each path.
fn partials<'f>(paths: impl Iterator<Item = &'f [u8]>) -> Result<Vec<Vec<u8>>> {
    paths.map(partial_name).collect()
}

/// Small files that wait until there are enough of them.
pub(crate) struct Waiting {
    files: Vec<Between>,
    bytes: u64,
    enough: usize,
}

impl Waiting {
    /// Nothing waits. So many helpers carry out batches.
    pub(crate) const fn new(helpers: u32) -> Self {
        let enough = if helpers > 1 { FILES_MAX_OF_HELPER } else { FILES_MAX };
        Self { files: Vec::new(), bytes: 0, enough }
    }

    /// Adds a file. Returns all of them if there are enough.
    pub(crate) fn add(&mut self, file: Between) -> Option<Vec<Between>> {
        self.bytes += file.bytes_of_whole().unwrap_or(0);
        self.files.push(file);
        (self.files.len() >= self.enough || self.bytes >= BYTES_MAX).then(|| self.take())
    }

    /// All that wait.
    pub(crate) fn take(&mut self) -> Vec<Between> {
        self.bytes = 0;
        std::mem::take(&mut self.files)
    }
}

/// What became of the files of a batch.
struct Fates(Mutex<Vec<Fate>>);

enum Fate {
    /// It was not asked for, or is not complete.
    Open,
    Done,
    Failed(Error),
}

impl Fates {
    fn new(files: usize) -> Self {
        Self(Mutex::new(std::iter::repeat_with(|| Fate::Open).take(files).collect()))
    }

    fn set(&self, number: usize, fate: Result<()>) {
        let mut fates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fates[number] = fate.map_or_else(Fate::Failed, |()| Fate::Done);
    }

    /// Copies the files that are open by `copy`. Returns all failures; the first one ends it unless all files are wanted.
    fn finish<T>(
        self,
        session: &mut Session<'_>,
        files: Vec<T>,
        mut copy: impl FnMut(&mut Session<'_>, T) -> Result<()>,
    ) -> Vec<Error> {
        let mut failures = Vec::new();
        let fates = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (fate, file) in fates.into_iter().zip(files) {
            let result = match fate {
                Fate::Done => Ok(()),
                Fate::Failed(error) => Err(error),
                Fate::Open if failures.is_empty() || session.goes_on() => copy(session, file),
                Fate::Open => Ok(()),
            };
            failures.extend(result.err());
        }
        failures
    }
}
