//! Files of a tree that a server has completely, recorded for a later attempt of the same command.
//!
//! A text file in the user's state folder beside the journals of single files. Each line is a hash of a source, its version,
//! and the size and time of the file that was made of it. So neither a source nor a file that was changed since has a line. It is removed when the whole tree is complete.
//!
//! What a server says of a file is asked of many files at once, when they are complete: the last few of a command that is
//! killed have no line.

use crate::session::Session;
use crate::several::Up;
use anyhow::{Context, Result};
use hikyaku_console::{At, Folder};
use hikyaku_gridftp::{Facts, Kind};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What an earlier attempt has completed, and where more is recorded.
#[derive(Debug)]
pub(crate) struct Finished {
    path: PathBuf,
    earlier: HashSet<String>,
    /// Opened when the first file is complete.
    file: Mutex<Option<File>>,
    noted: Mutex<Noted>,
}

/// Files that a server has stored, and that it was not asked about.
#[derive(Debug, Default)]
struct Noted {
    /// When the first of them came.
    since: Option<Instant>,
    files: Vec<Stored>,
}

#[derive(Debug)]
struct Stored {
    path: Vec<u8>,
    bytes: u64,
    /// Source, its version, and target.
    copy: String,
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
    pub(crate) fn of(source: &str, target: &str) -> Result<Self> {
        let folder = Folder::State.of_user()?.join("guc");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let name = blake3::hash(format!("tree\0{source}\0{target}").as_bytes()).to_hex();
        let path = folder.join(&name[..32]);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.at(path.display())?,
        };
        let earlier = text.lines().map(str::to_owned).collect();
        Ok(Self { path, earlier, file: Mutex::default(), noted: Mutex::default() })
    }

    /// Whether an earlier attempt has completed this file, and neither it nor its source was changed since. The server has told
    /// this of it before it was to be copied.
    pub(crate) fn has_there(&self, up: &Up, before: &Facts) -> bool {
        let known = line_there(&up.copy(), up.bytes, before);
        known.is_some_and(|line| self.earlier.contains(&line))
    }

    /// Notes that the server has stored a file.
    pub(crate) fn note(&self, up: &Up) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.since.get_or_insert_with(Instant::now);
        noted.files.push(Stored { path: up.path.clone(), bytes: up.bytes, copy: up.copy() });
    }

    /// Asks the server about files that were noted, and records them. One that it does not tell of is copied again.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) fn record_noted(&self, session: &mut Session<'_>, when: When) -> Result<()> {
        let files = {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            let is_long = noted.since.is_some_and(|since| since.elapsed() >= WHILE);
            if when == When::Due && noted.files.len() < ENOUGH && !is_long {
                return Ok(());
            }
            std::mem::take(&mut *noted).files
        };
        if files.is_empty() {
            return Ok(());
        }
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let told = session.try_look(&paths);
        let lines = files
            .iter()
            .zip(told)
            .filter_map(|(file, facts)| Some(line_there(&file.copy, file.bytes, &facts?)? + "\n"));
        self.write(&lines.collect::<String>())
    }

    fn write(&self, text: &str) -> Result<()> {
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut write = || {
            let mut file = match open.take() {
                Some(file) => file,
                None => OpenOptions::new().create(true).append(true).open(&self.path)?,
            };
            file.write_all(text.as_bytes())?;
            *open = Some(file);
            Ok::<(), std::io::Error>(())
        };
        write().at(self.path.display())
    }

    /// The whole tree is complete.
    pub(crate) fn forget(&self) {
        // A record that stays does no harm: it is about these versions only.
        let _ = fs::remove_file(&self.path);
    }
}

/// Of a file of a server; `None` if it is none of this size, or the server tells no time.
// fuzz: none, what `ftp_replies` has read is compared
fn line_there(copy: &str, bytes: u64, facts: &Facts) -> Option<String> {
    let is_whole = facts.kind == Kind::File && facts.size == Some(bytes);
    let modified = facts.modified.as_ref().filter(|_| is_whole)?;
    Some(hashed(&format!("{copy}\0{bytes} {modified}")))
}

fn hashed(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}
