//! The journal on disk: a file in the state directory of the receiving user for each pair of sources and destination.

mod unfinished;

pub use unfinished::{Held, Journaled, Known, NotHeld, State, Unfinished, unfinished};

use hikyaku_console::Folder;
use hikyaku_fs::{FsError, Token};
use hikyaku_transfer::{Begun, Journal, Record, Remains};
use rustix::fs::FlockOperation;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An end that lost the other one finds out within this time (see `Watch`).
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);
/// Suffix of journals' names. Older versions used `journal`, and their journals are not resumed.
const SUFFIX: &str = "journal2";
/// Maximum size of the first record, which contains a path and the sources.
const LONGEST_HEAD: u64 = 64 << 10;
/// Characters of the sources that are kept for a person.
const LONGEST_FROM: usize = 1000;

/// A journal, open for the duration of the copy. A copy without a journal works, but cannot be resumed.
pub struct JournalFile {
    open: Option<(Mutex<File>, PathBuf)>,
    /// In the names of this copy's unfinished files.
    token: Token,
}

/// An open journal with the results of earlier attempts.
pub struct Opened {
    /// The open journal.
    pub journal: JournalFile,
    /// Files that earlier attempts have left, by path.
    pub remains: BTreeMap<Vec<u8>, Remains>,
    /// Whether there were earlier attempts.
    pub attempt: Attempt,
}

impl Opened {
    /// No journal.
    fn nothing(token: Token) -> Self {
        let (journal, attempt) = (JournalFile::none(token), Attempt::First);
        Self { journal, remains: BTreeMap::new(), attempt }
    }
}

/// Which attempt at a copy this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// No attempt is recorded.
    First,
    /// An earlier attempt was not completed.
    Later,
    /// Another process has the journal: it makes the same copy now.
    Beside,
}

/// How the copy proceeds while another process has the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IfHeld {
    /// It is asked to give way, and waited for: it may not have noticed yet that its peer is lost.
    Awaited,
    /// The copy begins without a journal.
    Left,
}

/// Whether records were written for the next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remembered {
    /// They were written.
    Yes,
    /// There is no journal, or it cannot be written.
    No,
}

impl JournalFile {
    /// No journal.
    pub const fn none(token: Token) -> Self {
        Self { open: None, token }
    }

    /// The journal of copies of these sources to `place`, and what there is of earlier ones. If the
    /// same copy is under way it keeps its journal ([`Attempt::Beside`]): its process is asked to give way, and waited for,
    /// because it may not have noticed yet that its peer is lost. `from` are the sources for a person.
    pub fn open(place: &Place<'_>, from: &str) -> Result<Opened, FsError> {
        Self::open_of_user(place, from, IfHeld::Awaited)
    }

    /// Opens the journal as [`Self::open`] does, and does not wait for a process that has it.
    pub fn open_at_once(place: &Place<'_>, from: &str) -> Result<Opened, FsError> {
        Self::open_of_user(place, from, IfHeld::Left)
    }

    /// Opens the journal as [`Self::open_at_once`] does, but among the journals of this folder.
    pub fn open_in(folder: &Path, place: &Place<'_>, from: &str) -> Result<Opened, FsError> {
        Self::open_with(folder, place, from, IfHeld::Left)
    }

    fn open_of_user(place: &Place<'_>, from: &str, if_held: IfHeld) -> Result<Opened, FsError> {
        match folder() {
            Some(folder) => Self::open_with(&folder, place, from, if_held),
            None => Ok(Opened::nothing(Token::random()?)),
        }
    }

    fn open_with(
        folder: &Path,
        place: &Place<'_>,
        from: &str,
        if_held: IfHeld,
    ) -> Result<Opened, FsError> {
        let token = Token::random()?;
        let nothing = Opened::nothing(token);
        Ok(match Self::try_open(folder, place, (from, token), if_held) {
            Ok(Some(opened)) => opened,
            Ok(None) => Opened { attempt: Attempt::Beside, ..nothing },
            // A full disk, an unreadable file: nothing of it hurts the copy.
            Err(_) => nothing,
        })
    }

    fn try_open(
        folder: &Path,
        place: &Place<'_>,
        (from, token): (&str, Token),
        if_held: IfHeld,
    ) -> io::Result<Option<Opened>> {
        let dir = place.base()?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(place.journal()?);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = loop {
            let file = options.open(&path)?;
            if !lock(&file, &path, if_held) {
                return Ok(None);
            }
            // The previous owner may have removed the file. A journal without a name could not be resumed.
            // If the name cannot be checked, the copy has no journal.
            if unfinished::is_at(&file, &path)? {
                break file;
            }
        };
        let is_new = file.metadata().is_ok_and(|meta| meta.len() == 0);
        let (known, token) = begin(&mut file, place, dir, from, token).inspect_err(|_| {
            // Half a first record is of no use to a later attempt.
            if is_new {
                let _ = fs::remove_file(&path);
            }
        })?;
        let attempt = if known.begun.is_some() { Attempt::Later } else { Attempt::First };
        let journal = Self { open: Some((Mutex::new(file), path)), token };
        Ok(Some(Opened { journal, remains: known.files, attempt }))
    }

    /// In the names of this copy's unfinished files.
    pub const fn token(&self) -> Token {
        self.token
    }

    /// Appends records.
    pub fn append(&self, records: &[Record]) -> Remembered {
        let Some((file, _)) = &self.open else { return Remembered::No };
        if records.is_empty() {
            return Remembered::Yes;
        }
        let bytes: Vec<u8> = records.iter().flat_map(Journal::frame).collect();
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        match file.write_all(&bytes) {
            Ok(()) => Remembered::Yes,
            // A reader takes an incomplete record for the end of the journal.
            Err(_) => Remembered::No,
        }
    }

    /// The length of the journal, to be passed to [`Self::synced`] once the data of its records are synced.
    pub fn length(&self) -> u64 {
        let Some((file, _)) = &self.open else { return 0 };
        let file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.metadata().map_or(0, |meta| meta.len())
    }

    /// Records that the data of all records in the first `length` bytes have reached the disk.
    pub fn synced(&self, length: u64, stamps: Vec<(Vec<u8>, (i64, u32))>) {
        self.append(&[Record::Synced { length, stamps }]);
        if let Some((file, _)) = &self.open {
            let _ = file.lock().unwrap_or_else(PoisonError::into_inner).sync_data();
        }
    }

    /// Whether another attempt at the same copy waits for it.
    pub fn is_wanted(&self) -> bool {
        self.open.as_ref().is_some_and(|(_, path)| request(path).exists())
    }

    /// Whether there is a journal that can be written.
    pub const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The copy is done: there is nothing to go on with.
    pub fn remove(&self) {
        if let Some((_, path)) = &self.open {
            let _ = fs::remove_file(path);
        }
    }
}

/// Reads the records of earlier attempts and records a new attempt. Returns the token of the copy, which is that of the
/// first attempt.
fn begin(
    file: &mut File,
    place: &Place<'_>,
    dir: Vec<u8>,
    from: &str,
    token: Token,
) -> io::Result<(Journal, Token)> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut known = Journal::read(&bytes).unwrap_or_default();
    file.set_len(known.whole as u64)?;
    file.seek(SeekFrom::End(0))?;
    if known.whole == 0 {
        file.write_all(Journal::magic())?;
    }
    let earlier = known.begun.as_ref().and_then(|begun| Token::parse(&begun.token));
    if earlier.is_none() {
        known.begun = None;
    }
    let token = earlier.unwrap_or(token);
    let begun = Begun {
        token: token.as_bytes().to_vec(),
        dir,
        name: place.name.map(<[u8]>::to_vec),
        from: from.chars().take(LONGEST_FROM).collect(),
    };
    file.write_all(&Journal::frame(&Record::Begun(begun)))?;
    Ok((known, token))
}

/// Tokens in the names of unfinished files, of all copies that can be resumed.
pub fn live_tokens() -> BTreeSet<Token> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
    let journals = entries.flatten().map(|entry| entry.path());
    let journals = journals.filter(|path| path.extension().is_some_and(|end| end == SUFFIX));
    journals.filter_map(|path| token_of(&path)).collect()
}

/// The token of a journal, which stands in its first record.
fn token_of(journal: &Path) -> Option<Token> {
    let mut head = Vec::new();
    File::open(journal).ok()?.take(LONGEST_HEAD).read_to_end(&mut head).ok()?;
    Token::parse(&Journal::read(&head).ok()?.begun?.token)
}

/// The directory or the storage that receives the files of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base<'a> {
    /// A directory of this machine.
    Dir(&'a Path),
    /// A place of another storage, as an address without a slash at its begin. Paths in the journal are those of the storage.
    Address(&'a str),
}

/// The copy that a journal belongs to.
pub struct Place<'a> {
    /// A hash of the sources.
    pub of: [u8; 32],
    /// The directory or the storage that receives the files.
    pub base: Base<'a>,
    /// The name of a single source at the destination, if it differs from its own name.
    pub name: Option<&'a [u8]>,
}

impl<'a> Place<'a> {
    /// The copy of a source with this name.
    pub fn of(source: &str, base: Base<'a>, name: Option<&'a [u8]>) -> Self {
        Self { of: *blake3::hash(source.as_bytes()).as_bytes(), base, name }
    }

    /// Whether a copy to it was begun and not finished.
    pub fn is_begun(&self) -> bool {
        folder().zip(self.journal().ok()).is_some_and(|(folder, name)| folder.join(name).exists())
    }

    fn base(&self) -> io::Result<Vec<u8>> {
        match self.base {
            Base::Dir(dir) => Ok(fs::canonicalize(dir)?.into_os_string().into_vec()),
            Base::Address(address) => Ok(address.as_bytes().to_vec()),
        }
    }

    /// The name of the journal's file.
    fn journal(&self) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new_keyed(&self.of);
        hasher.update(&self.base()?);
        // No path has this byte in it.
        hasher.update(b"\0").update(self.name.unwrap_or_default());
        Ok(format!("{}.{SUFFIX}", &hasher.finalize().to_hex()[..32]))
    }
}

/// Locks it; an earlier attempt whose other end is silent is asked to give way, if it is awaited.
fn lock(file: &File, path: &Path, if_held: IfHeld) -> bool {
    let try_lock = || rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let request = request(path);
    if try_lock() {
        // A process that requested the journal may have been killed.
        let _ = fs::remove_file(&request);
        return true;
    }
    if if_held == IfHeld::Left {
        return false;
    }
    // Without it the other attempt ends by itself, if it does.
    let _ = File::create(&request);
    let begin = Instant::now();
    let mut has_it = false;
    while !has_it && begin.elapsed() < PATIENCE {
        thread::sleep(LOOK);
        has_it = try_lock();
    }
    let _ = fs::remove_file(&request);
    has_it
}

/// The file that exists while another process waits for the journal.
fn request(path: &Path) -> PathBuf {
    path.with_extension("wanted")
}

/// `$XDG_STATE_HOME/hikyaku/copies`.
fn folder() -> Option<PathBuf> {
    Some(Folder::State.of_user().ok()?.join("copies"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_another_process_has_is_not_waited_for() {
        let folder = std::env::temp_dir().join(format!("hikyaku-beside-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let place = Place::of("source", Base::Address("far:d"), None);
        let first = JournalFile::open_in(&folder, &place, "source").unwrap();
        assert!(first.journal.is_open() && first.attempt == Attempt::First);
        let beside = JournalFile::open_in(&folder, &place, "source").unwrap();
        assert!(!beside.journal.is_open() && beside.attempt == Attempt::Beside);
        assert!(!first.journal.is_wanted(), "the first one is not asked to give way");
        drop(first);
        let later = JournalFile::open_in(&folder, &place, "source").unwrap();
        assert!(later.journal.is_open() && later.attempt == Attempt::Later);
        fs::remove_dir_all(&folder).unwrap();
    }
}
