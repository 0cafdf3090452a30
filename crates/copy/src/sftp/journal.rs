//! What an attempt of a copy by SFTP has done, so that the same command goes on from there.
//!
//! A journal is a text file in the user's state directory, one for each host, sources and target. Each line is about one
//! version of a source: `done KEY SIZE TIME`, where size and time are those of the file at the target, or
//! `part KEY BYTES TOKEN`, where the token names the unfinished file. The last line of a key counts. A line that a killed
//! process has not finished is none.

use hikyaku_console::Folder;
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Files of a copy that are remembered.
const FILES_MAX: usize = 1 << 20;
/// The longest journal that is read: some 100 bytes a file, and some lines for each unfinished one.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;

/// A version of a source, and where it goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key([u8; 16]);

/// What is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Past {
    /// It is complete: the size and the modification time of the file at the target, in seconds since 1970.
    Done { size: u64, modified: i64 },
    /// So many bytes of it are in the unfinished file of this token.
    Part { bytes: u64, token: Vec<u8> },
}

/// The journal of a copy. Another copy of the same sources to the same target has none meanwhile.
pub(crate) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    known: HashMap<Key, Past>,
}

impl Key {
    /// Of a source with this size and modification time.
    pub(super) fn new(from: &[u8], to: &[u8], size: u64, modified: i64) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [from, to, &size.to_be_bytes(), &modified.to_be_bytes()] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(key)
    }

    // fuzz: none, a file of this user
    fn parse(text: &str) -> Option<Self> {
        Some(Self(unhex(text)?.try_into().ok()?))
    }
}

impl Journal {
    /// The journal of a copy, which `names` tell: host, sources and target. `None` if none can be kept.
    pub(crate) fn open(names: &[&[u8]]) -> Option<Self> {
        Self::open_in(Folder::State.of_user().ok()?.join("sftp"), names)
    }

    fn open_in(folder: PathBuf, names: &[&[u8]]) -> Option<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
        let mut hasher = blake3::Hasher::new();
        for name in names {
            hasher.update(&(name.len() as u64).to_be_bytes());
            hasher.update(name);
        }
        let path = folder.join(&hasher.finalize().to_hex()[..32]);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(&path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let mut text = String::new();
        // Without its past the copy begins anew.
        let read = (&mut file).take(JOURNAL_BYTES_MAX).read_to_string(&mut text);
        let mut known = HashMap::new();
        if read.is_ok() {
            for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                if let Some((key, past)) = parse(line)
                    && (known.len() < FILES_MAX || known.contains_key(&key))
                {
                    known.insert(key, past);
                }
            }
        }
        let journal = Self { path, file: Mutex::new(file), known };
        if !text.is_empty() && !text.ends_with('\n') {
            journal.write("");
        }
        Some(journal)
    }

    /// What an earlier attempt has done of a source.
    pub(super) fn past(&self, key: Key) -> Option<&Past> {
        self.known.get(&key)
    }

    /// Adds what has been done of a source.
    pub(super) fn add(&self, key: Key, past: &Past) {
        self.write(&line(key, past));
    }

    /// Adds files that are done.
    pub(super) fn add_all(&self, done: &[(Key, Past)]) {
        let lines: Vec<_> = done.iter().map(|(key, past)| line(*key, past)).collect();
        if !lines.is_empty() {
            self.write(&lines.join("\n"));
        }
    }

    fn write(&self, line: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A line that is missing costs a later attempt what it would have spared.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }

    /// The copy is complete: nothing is to be gone on with.
    pub(crate) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn line(key: Key, past: &Past) -> String {
    let key = hex(&key.0);
    match past {
        Past::Done { size, modified } => format!("done {key} {size} {modified}"),
        Past::Part { bytes, token } => format!("part {key} {bytes} {}", hex(token)),
    }
}

// fuzz: none, a file of this user
fn parse(line: &str) -> Option<(Key, Past)> {
    let mut words = line.split_whitespace();
    let (verb, key) = (words.next()?, Key::parse(words.next()?)?);
    let (number, last) = (words.next()?.parse().ok()?, words.next()?);
    let past = match verb {
        "done" => Past::Done { size: number, modified: last.parse().ok()? },
        "part" => Past::Part { bytes: number, token: unhex(last)? },
        _ => return None,
    };
    words.next().is_none().then_some((key, past))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_file_counts_and_half_a_line_does_not() {
        let folder =
            std::env::temp_dir().join(format!("hikyaku-sftp-journal-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let names: [&[u8]; 2] = [b"far", b"target"];
        let open = || Journal::open_in(folder.clone(), &names);
        let (a, b) = (Key::new(b"a", b"x", 5, 7), Key::new(b"b", b"x", 5, 7));
        let part = |bytes| Past::Part { bytes, token: b".a.t\xff".to_vec() };
        let journal = open().unwrap();
        assert_eq!(journal.past(a), None);
        journal.add(a, &part(3));
        journal.add(a, &part(4));
        journal.add(b, &Past::Done { size: 5, modified: -1 });
        assert!(open().is_none(), "two copies have one journal");
        let path = journal.path.clone();
        drop(journal);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 4]).unwrap();
        let journal = open().unwrap();
        assert_eq!((journal.past(a), journal.past(b)), (Some(&part(4)), None));
        journal.add(b, &Past::Done { size: 6, modified: 8 });
        drop(journal);
        let journal = open().unwrap();
        assert_eq!(journal.past(b), Some(&Past::Done { size: 6, modified: 8 }));
        assert!(Journal::open_in(folder.clone(), &[b"fart", b"arget"]).unwrap().known.is_empty());
        journal.remove();
        assert!(open().unwrap().known.is_empty());
        assert_ne!(Key::new(b"a", b"x", 5, 8), a);
        fs::remove_dir_all(&folder).unwrap();
    }
}
