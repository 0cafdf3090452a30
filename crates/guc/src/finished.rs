//! Files of a tree that a server has completely, recorded in the journal of the copy for a later attempt of the same command.
//!
//! A record has the version of a source, and the size and time of the file that was made of it. So a source that was changed
//! since is copied again, and so is one whose file was changed. The journal is removed when the whole tree is complete.
//!
//! What a server says of a file is asked of many files at once, when they are complete: the last few of a command that is
//! killed are not recorded.

use crate::session::Session;
use crate::several::Up;
use anyhow::Result;
use hikyaku_gridftp::{Facts, Kind};
use hikyaku_job::{Base, JournalFile, Opened, Place, Remembered};
use hikyaku_transfer::{Done, Reached, Record, Remains, Version};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What an earlier attempt has completed, and where more is recorded.
pub(crate) struct Finished {
    opened: Opened,
    noted: Mutex<Noted>,
}

/// Files that a server has stored, and that it was not asked about.
#[derive(Debug, Default)]
struct Noted {
    /// When the first of them came.
    since: Option<Instant>,
    files: Vec<Stored>,
    /// The number of those that were recorded.
    recorded: usize,
}

#[derive(Debug)]
struct Stored {
    path: Vec<u8>,
    bytes: u64,
    /// The version of the source.
    version: Version,
}

/// Which files are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// Those of a while, if there are enough of them or it was long enough.
    Due,
    /// All: the command ends.
    AtEnd,
}

/// So many files are asked about together.
const ENOUGH: usize = 256;
/// Or those of this time.
const WHILE: Duration = Duration::from_secs(5);

impl Finished {
    /// Of a tree that is copied from `source` to `target`.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn of(source: &str, target: &str) -> Result<Self> {
        let place = Place::of(source, Base::Address(target), None);
        let opened = JournalFile::open_at_once(&place, source)?;
        Ok(Self { opened, noted: Mutex::default() })
    }

    /// Whether files are recorded: no other process makes the same copy.
    pub(crate) const fn is_open(&self) -> bool {
        self.opened.journal.is_open()
    }

    /// Whether an earlier attempt has completed this file, and neither it nor its source was changed since. The server has told
    /// this of it before it was to be copied.
    pub(crate) fn has_there(&self, up: &Up, before: &Facts) -> bool {
        let remains = self.opened.remains.get(below_root(&up.path));
        let Some(Remains::Whole(done)) = remains else { return false };
        done.version == version(up) && made(up.bytes, before) == Some(done.made)
    }

    /// Notes that the server has stored a file.
    pub(crate) fn note(&self, up: &Up) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.since.get_or_insert_with(Instant::now);
        let (path, bytes, version) = (up.path.clone(), up.bytes, version(up));
        noted.files.push(Stored { path, bytes, version });
    }

    /// Asks the server about files that were noted, and records them. One that it does not tell of is copied again.
    pub(crate) fn record_noted(&self, session: &mut Session<'_>, when: When) {
        let files = {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            let is_long = noted.since.is_some_and(|since| since.elapsed() >= WHILE);
            if when == When::Due && noted.files.len() < ENOUGH && !is_long {
                return;
            }
            noted.since = None;
            std::mem::take(&mut noted.files)
        };
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let told = session.try_look(&paths);
        let done = files.into_iter().zip(told).filter_map(|(file, facts)| {
            let Stored { path, bytes: size, version } = file;
            let made = made(size, &facts?)?;
            let (path, hash) = (below_root(&path).to_vec(), None);
            // A server has stored what it has confirmed.
            Some(Record::Done(Done { path, size, version, made, hash, reached: Reached::Disk }))
        });
        let done: Vec<_> = done.collect();
        if self.opened.journal.append(&done) == Remembered::Yes {
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).recorded += done.len();
        }
    }

    /// The command ends before the tree is complete. A journal of nothing is of no use.
    pub(crate) fn end(&self) {
        let recorded = self.noted.lock().unwrap_or_else(PoisonError::into_inner).recorded;
        if recorded == 0 && self.opened.remains.is_empty() {
            self.forget();
        }
    }

    /// The whole tree is complete.
    pub(crate) fn forget(&self) {
        self.opened.journal.remove();
    }
}

/// The version of a source, which its name and its target are parts of.
fn version(up: &Up) -> Version {
    hashed(&up.copy())
}

/// The version of a file of a server; `None` if it is none of this size, or the server tells no time.
// fuzz: none, what `ftp_replies` has read is compared
fn made(bytes: u64, facts: &Facts) -> Option<Version> {
    let is_whole = facts.kind == Kind::File && facts.size == Some(bytes);
    let modified = facts.modified.as_ref().filter(|_| is_whole)?;
    Some(hashed(&format!("{bytes} {modified}")))
}

fn hashed(text: &str) -> Version {
    Version(*blake3::hash(text.as_bytes()).as_bytes())
}

/// A path as the journal has it.
// fuzz: none, the user's own words
fn below_root(path: &[u8]) -> &[u8] {
    path.strip_prefix(b"/").unwrap_or(path)
}
