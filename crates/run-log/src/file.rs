//! A file of lines that stays small.

use crate::line::Line;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The treatment of a log that has reached its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Samples become rarer: the log of one run, of at most 64 MiB.
    Thinned,
    /// The file gets the name `NAME.1.jsonl`, and a new one begins: the log of a daemon. Both have at most 32 MiB.
    Turned,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot write the log", dir.display())]
pub struct LogError {
    dir: PathBuf,
    source: io::Error,
}

/// The lines of a run, as they are written.
#[derive(Debug)]
pub(crate) struct LogFile {
    file: File,
    path: PathBuf,
    bytes: u64,
    room: Room,
    /// The lines with which a file begins.
    head: Vec<u8>,
    /// The first error of writing. Nothing is written after it.
    lost: Option<io::Error>,
    limits: Limits,
}

/// Bytes of a log.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Of one run.
    run: u64,
    /// Of one of the two files of a daemon.
    daemon: u64,
    /// Bytes that are reserved in the log of a run for its last line.
    last: u64,
}

const LIMITS: Limits = Limits { run: 64 << 20, daemon: 32 << 20, last: 64 << 10 };
/// The machines and other lines that are written again into a new file of a daemon.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Names that are tried.
const NAMES_MAX: u32 = 100;

impl LogFile {
    /// Makes the directory, if it does not exist, and a file in it. Only their owner may read them.
    pub(crate) fn create(dir: &Path, name: &str, room: Room) -> Result<Self, LogError> {
        let error = |source| LogError { dir: dir.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(error)?;
        let (file, path) = match room {
            Room::Thinned => new_file(dir, name),
            Room::Turned => turned(&dir.join(format!("{name}.jsonl"))),
        }
        .map_err(error)?;
        let head = Vec::new();
        Ok(Self { file, path, bytes: 0, room, head, lost: None, limits: LIMITS })
    }

    /// Where the lines are.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Of how many samples one is to be written.
    ///
    /// Whenever half of what was free has been filled, samples become four times rarer, so that each half takes twice as
    /// long to fill as the one before.
    pub(crate) fn thinning(&self) -> u64 {
        if self.room == Room::Turned {
            return 1;
        }
        let free = self.limits.run.saturating_sub(self.bytes).max(1);
        let halves = (self.limits.run / free).ilog2();
        4_u64.saturating_pow(halves)
    }

    /// Writes lines with which each file begins.
    pub(crate) fn write_head(&mut self, lines: &[Line]) {
        let text = text_of(lines);
        if self.room == Room::Turned && self.head.len() + text.len() <= HEAD_BYTES_MAX {
            self.head.extend_from_slice(&text);
        }
        self.put(&text);
    }

    /// Writes lines by one call of the system, so that a program that is killed leaves whole lines.
    pub(crate) fn write(&mut self, lines: &[Line]) {
        let text = text_of(lines);
        match self.room {
            Room::Thinned
                if self.bytes + text.len() as u64 + self.limits.last > self.limits.run => {}
            Room::Thinned => self.put(&text),
            Room::Turned => {
                if self.bytes + text.len() as u64 > self.limits.daemon {
                    self.turn();
                }
                self.put(&text);
            }
        }
    }

    /// Writes the last line, for which room was kept.
    pub(crate) fn write_last(&mut self, line: Line) {
        self.put(&text_of(&[line]));
    }

    /// The first error of writing.
    pub(crate) fn take_lost(&mut self) -> Option<io::Error> {
        self.lost.take()
    }

    fn turn(&mut self) {
        match turned(&self.path) {
            Ok((file, _)) => {
                self.file = file;
                self.bytes = 0;
                let head = std::mem::take(&mut self.head);
                self.put(&head);
                self.head = head;
            }
            Err(error) => self.lost = Some(error),
        }
    }

    fn put(&mut self, text: &[u8]) {
        if self.lost.is_some() {
            return;
        }
        match self.file.write_all(text) {
            Ok(()) => self.bytes += text.len() as u64,
            Err(error) => self.lost = Some(error),
        }
    }
}

/// A new file whose name no other has.
fn new_file(dir: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    for number in 0..NAMES_MAX {
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        let path = dir.join(format!("{name}{suffix}.jsonl"));
        match create(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// A new file of this name. The one that has it is renamed, and replaces the one before it.
fn turned(path: &Path) -> io::Result<(File, PathBuf)> {
    match fs::rename(path, path.with_extension("1.jsonl")) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok((create(path)?, path.to_owned()))
}

/// A new file that only its owner may read: it has names of files and of machines.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)
}

fn text_of(lines: &[Line]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in lines {
        // Numbers that are none become null; nothing else in a line can fail.
        if let Ok(line) = serde_json::to_vec(line) {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
    }
    text
}

#[cfg(test)]
mod tests;
