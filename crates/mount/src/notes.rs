//! Which hidden names a mount has at the server, noted in the state folder of this machine, and removed at the next mount of
//! the same source after one that was killed.
//!
//! Each mount has a file that it keeps locked, whose name is that of the machine and of the mount's process. A file of this
//! machine that is not locked is one of a mount that has ended. Its lines are `+` or
//! `-`, a hidden name, and the name that the file is to get back if nothing has it, each as hexadecimal digits.

use crate::stage::name_of;
use anyhow::{Context, Result};
use hikyaku_console::Folder;
use hikyaku_remote::{Client, Edit, Holder, RemoteError};
use hikyaku_store::{ErrorKind, Kind, StorePath};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::mpsc::channel;

/// The notes of a mount.
pub(crate) struct Notes {
    dir: PathBuf,
    token: String,
    /// Made before the name is sent to the server.
    file: Option<(PathBuf, File)>,
}

/// Why a file has a hidden name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// It is removed.
    Removed,
    /// Another file is to get this name of it.
    Replaced(StorePath),
}

/// The folder of all notes, in the state folder.
const FOLDER: &str = "mounts";
/// Maximum size of the notes of a mount. A longer file is not one of this program.
const NOTES_BYTES_MAX: u64 = 64 << 20;

impl Notes {
    /// Notes of the mounts of a source.
    ///
    /// # Errors
    ///
    /// There is no state folder.
    pub(crate) fn of(source: &str, process: Holder) -> Result<Self> {
        let dir = Folder::State.of_user()?.join(FOLDER).join(name_of(source));
        Ok(Self { dir, token: hex(&process.0), file: None })
    }

    /// Makes the file by which later mounts see whether this one lives.
    ///
    /// # Errors
    ///
    /// Those of the file system of this machine.
    pub(crate) fn live(&mut self) -> io::Result<()> {
        self.file().map(drop)
    }

    /// The part of the hidden names that is unique to this mount.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// A file is about to get a hidden name.
    ///
    /// # Errors
    ///
    /// Those of the file system of this machine.
    pub(crate) fn begin(&mut self, hidden: &StorePath, why: &Why) -> io::Result<()> {
        let back = match why {
            Why::Removed => String::new(),
            Why::Replaced(path) => hex(path.as_bytes()),
        };
        let line = format!("+ {} {back}\n", hex(hidden.as_bytes()));
        self.file()?.write_all(line.as_bytes())
    }

    /// The hidden name was removed.
    pub(crate) fn end(&mut self, hidden: &StorePath) {
        let line = format!("- {} \n", hex(hidden.as_bytes()));
        if let Ok(file) = self.file() {
            // A name that is noted and not there is no harm.
            let _ = file.write_all(line.as_bytes());
        }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            // The file gets its name when it is locked, so that other processes do not take this mount for one that has ended.
            let name = format!("{}.{}", machine(), self.token);
            let (path, new) = (self.dir.join(&name), self.dir.join(format!(".{name}")));
            let file = File::options().append(true).create_new(true).mode(0o600).open(&new)?;
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            fs::rename(&new, &path)?;
            self.file = Some((path, file));
        }
        let file = self.file.as_mut().map(|(_, file)| file);
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The mount has ended. Notes of names that are still there stay.
    pub(crate) fn end_all(self) {
        let Some((path, _)) = self.file else { return };
        if fs::read_to_string(&path).is_ok_and(|text| left(&text).is_empty()) {
            let _ = fs::remove_file(path);
        }
    }

    /// The mounts of the source that were killed.
    ///
    /// # Errors
    ///
    /// The notes cannot be read.
    pub(crate) fn killed(&self) -> Result<Vec<Killed>> {
        let mut killed = Vec::new();
        let Ok(entries) = fs::read_dir(&self.dir) else { return Ok(killed) };
        let of_here = format!("{}.", machine());
        for entry in entries {
            let entry = entry.context("cannot read the notes of earlier mounts")?;
            let (path, name) = (entry.path(), entry.file_name().into_encoded_bytes());
            let Some(token) = name.strip_prefix(of_here.as_bytes()) else { continue };
            let Ok(file) = File::open(&path) else { continue };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                // Its mount lives.
                continue;
            }
            let process = str::from_utf8(token).ok().and_then(bytes);
            let process = process.and_then(|name| Some(Holder(name.try_into().ok()?)));
            killed.push(Killed { path, file, process });
        }
        Ok(killed)
    }
}

/// A name of this machine. Several may share a state folder, and whether a file there is locked is known on one of them only.
fn machine() -> String {
    let mut name = blake3::Hasher::new();
    name.update(rustix::system::uname().nodename().to_bytes());
    name.update(&fs::read("/etc/machine-id").unwrap_or_default());
    name.finalize().to_hex().chars().take(16).collect()
}

/// A mount that was killed. The lock on its notes keeps other mounts from cleaning up after it.
pub(crate) struct Killed {
    path: PathBuf,
    file: File,
    process: Option<Holder>,
}

impl Killed {
    /// The name of its process.
    pub(crate) const fn process(&self) -> Option<Holder> {
        self.process
    }

    /// Removes its hidden names.
    ///
    /// # Errors
    ///
    /// The notes cannot be read, or the server is lost.
    pub(crate) fn sweep(self, client: &Client) -> Result<()> {
        let mut text = String::new();
        self.file.take(NOTES_BYTES_MAX).read_to_string(&mut text)?;
        for (hidden, why) in left(&text) {
            swept(client, &hidden, &why)?;
        }
        fs::remove_file(&self.path)?;
        Ok(())
    }
}

/// Removes a hidden name, or gives the file its own back.
fn swept(client: &Client, hidden: &StorePath, why: &Why) -> Result<()> {
    let is_done = |edit: Edit| -> Result<bool> {
        let (tell, hear) = channel();
        client.edit_then(edit, &[], move |done| drop(tell.send(done)));
        match hear.recv().context("the server does not answer")? {
            Ok(_) | Err(RemoteError::Refused { kind: ErrorKind::NotFound, .. }) => Ok(true),
            // The file stays: this user may not remove it any more.
            Err(RemoteError::Refused { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    };
    let from = hidden.as_bytes().to_vec();
    if let Why::Replaced(to) = why {
        // A file that was to replace it may not have come.
        let to = to.as_bytes().to_vec();
        if is_done(Edit::Rename { from: from.clone(), to, replaces: false })? {
            return Ok(());
        }
    }
    is_done(Edit::Remove { path: from, kind: Kind::File }).map(drop)
}

/// The hidden names in notes that were not removed.
fn left(text: &str) -> BTreeMap<StorePath, Why> {
    let mut left = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (sign, hidden, back) = (words.next(), words.next(), words.next());
        let path =
            |word: Option<&str>| StorePath::new(&bytes(word.filter(|w| !w.is_empty())?)?).ok();
        let Some(hidden) = path(hidden) else { continue };
        match sign {
            Some("+") => {
                left.insert(hidden, path(back).map_or(Why::Removed, Why::Replaced));
            }
            _ => {
                left.remove(&hidden);
            }
        }
    }
    left.retain(|path, _| path.split().is_some_and(|(_, name)| crate::unnamed::is_hidden(&name)));
    left
}

/// The digits of the name of a process.
pub(crate) const TOKEN_DIGITS: usize = 32;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> StorePath {
        StorePath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_noted_and_not_ended_is_left() {
        let dir = std::env::temp_dir().join(format!("hikyaku-notes-{}", std::process::id()));
        let mut notes = Notes { dir: dir.clone(), token: "7".repeat(TOKEN_DIGITS), file: None };
        let hidden = |n: u32| format!(".hikyaku-open-{}-{n}", notes.token);
        let [a, b] = [format!("d/{}", hidden(1)), hidden(2)].map(|name| path(&name));
        // A name that a program may have given is not removed.
        let c = path("d/.hikyaku-open-t-1");
        notes.begin(&a, &Why::Replaced(path("d/ a\n"))).unwrap();
        notes.begin(&b, &Why::Removed).unwrap();
        notes.begin(&c, &Why::Removed).unwrap();
        let file = dir.join(format!("{}.{}", machine(), notes.token));
        let text = fs::read_to_string(&file).unwrap();
        let expected = [(b.clone(), Why::Removed), (a.clone(), Why::Replaced(path("d/ a\n")))];
        assert_eq!(left(&text), BTreeMap::from(expected));
        notes.end(&b);
        notes.end(&a);
        assert!(left(&fs::read_to_string(&file).unwrap()).is_empty());
        assert!(left("+ zz \n+\n- \n+ 2e \nx\n+ 6 \n").is_empty());
        // Neither a mount that lives nor one of another machine was killed, as far as it is known here.
        let next = Notes { dir: dir.clone(), token: "8".repeat(TOKEN_DIGITS), file: None };
        fs::write(dir.join(format!("0123456789abcdef.{}", notes.token)), "").unwrap();
        assert_eq!(next.killed().unwrap().len(), 0);
        drop(notes);
        assert_eq!(next.killed().unwrap().len(), 1);
        fs::remove_dir_all(dir).unwrap();
    }
}
