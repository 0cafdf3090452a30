//! Journals of unfinished copies, as other commands see them.

use super::{SUFFIX, folder, request};
use hikyaku_fs::{FsError, Token};
use hikyaku_transfer::{Begun, EarlierFile, Journal, JournalError, Remains, read_earlier};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How the names of journals of protocol 2 end.
const EARLIER: &str = "journal";

/// The journal of an unfinished copy.
pub struct Unfinished {
    /// Its file.
    pub path: PathBuf,
    /// The time of its last record.
    pub touched: Option<SystemTime>,
    /// Whether the copy runs.
    pub state: State,
    /// The content of the journal.
    pub content: Journaled,
}

/// Whether the copy runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It does not run. The command that began it continues it.
    Waiting,
    /// A process has locked the journal.
    UnderWay,
}

/// The contents of a journal.
pub enum Journaled {
    /// A copy that the same command continues.
    Known(Known),
    /// Of protocol 2, which does not contain the destination.
    Earlier(BTreeMap<Vec<u8>, EarlierFile>),
    /// Nothing that can be read, and why.
    Unreadable(String),
}

/// A copy, as its journal knows it.
pub struct Known {
    /// The record of its start.
    pub begun: Begun,
    /// In the names of its unfinished files.
    pub token: Token,
    /// Files that earlier attempts have left, by path.
    pub files: BTreeMap<Vec<u8>, Remains>,
}

/// All journals of this user, sorted by the names of their files; `None` if this user has no state folder.
///
/// # Errors
///
/// The folder of the journals cannot be listed.
pub fn unfinished() -> Result<Option<Vec<Unfinished>>, FsError> {
    let Some(folder) = folder() else { return Ok(None) };
    let about = || folder.as_os_str().as_bytes();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(Vec::new())),
        Err(error) => return Err(FsError::io("list", about(), &error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| FsError::io("list", about(), &error))?.path();
        if path.extension().is_some_and(|end| end == SUFFIX || end == EARLIER) {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    // A copy that has ended in the meantime has no journal.
    Ok(Some(paths.into_iter().filter_map(look).collect()))
}

fn look(path: PathBuf) -> Option<Unfinished> {
    let unreadable = |error: FsError| Journaled::Unreadable(error.reason());
    let (touched, state, content) = match open(&path, OpenOptions::new().read(true)) {
        Ok(None) => return None,
        Ok(Some(mut file)) => {
            let state = match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => State::UnderWay,
                // On a file system without locks no process has one.
                _ => State::Waiting,
            };
            let touched = file.metadata().and_then(|meta| meta.modified()).ok();
            (touched, state, read(&mut file, &path).unwrap_or_else(unreadable))
        }
        Err(error) => (None, State::Waiting, unreadable(error)),
    };
    Some(Unfinished { path, touched, state, content })
}

/// A journal that is locked for this process.
pub struct Held {
    /// The content of the journal.
    pub content: Journaled,
    path: PathBuf,
    _file: File,
}

/// Why a journal cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotHeld {
    /// A process has locked the journal.
    UnderWay,
    /// Its copy has come to its end.
    Gone,
}

impl Held {
    /// The journal at `path`, unless its copy is under way. That is not asked to give way.
    pub fn hold(path: &Path) -> Result<Result<Self, NotHeld>, FsError> {
        // Written to as well: over a network only what is can be had alone.
        let opened = open(path, OpenOptions::new().read(true).write(true))?;
        let Some(mut file) = opened else { return Ok(Err(NotHeld::Gone)) };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Err(NotHeld::UnderWay)),
            // Without locks the state is not known.
            Err(errno) => {
                let error = io::Error::from(errno);
                return Err(FsError::io("lock", path.as_os_str().as_bytes(), &error));
            }
        }
        let is_at = is_at(&file, path)
            .map_err(|error| FsError::io("look at", path.as_os_str().as_bytes(), &error))?;
        if !is_at {
            return Ok(Err(NotHeld::Gone));
        }
        let content = read(&mut file, path)?;
        Ok(Ok(Self { content, path: path.to_path_buf(), _file: file }))
    }

    /// Nothing goes on with the copy any more.
    pub fn remove(self) -> Result<(), FsError> {
        let _ = fs::remove_file(request(&self.path));
        fs::remove_file(&self.path)
            .map_err(|error| FsError::io("remove", self.path.as_os_str().as_bytes(), &error))
    }
}

/// Whether this open file is the one that has the name.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match fs::symlink_metadata(path) {
        Ok(named) => Ok(identity(named) == identity(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// `None` if there is none any more.
fn open(path: &Path, options: &mut OpenOptions) -> Result<Option<File>, FsError> {
    // Nothing but a plain file of this name is a journal; a FIFO must not hold us.
    let calm = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(calm.bits()).unwrap_or_default();
    match options.custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FsError::io("open", path.as_os_str().as_bytes(), &error)),
    }
}

fn read(file: &mut File, path: &Path) -> Result<Journaled, FsError> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| FsError::io("read", path.as_os_str().as_bytes(), &error))?;
    if let Ok(files) = read_earlier(&bytes) {
        return Ok(Journaled::Earlier(files));
    }
    Ok(match Journal::read(&bytes) {
        Ok(Journal { begun: Some(begun), files, .. }) => match Token::parse(&begun.token) {
            Some(token) => Journaled::Known(Known { token, begun, files }),
            None => Journaled::Unreadable(JournalError::Unknown.to_string()),
        },
        Ok(_) => Journaled::Unreadable("nothing is in it".to_owned()),
        Err(error) => Journaled::Unreadable(error.to_string()),
    })
}
