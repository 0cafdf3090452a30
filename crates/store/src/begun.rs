//! Records of drafts that processes of this user have begun in stores and not ended, so that a later process can remove the
//! drafts of a killed one.
//!
//! A process has a file in a folder of the user for each store that it writes to. The file is locked (flock(2)) while the
//! process lives, so that no other process takes its drafts for abandoned. Each draft has a slot of a fixed size in the file, which is
//! used again when the draft has ended: the file stays as small as the number of drafts at a time. Nothing in it is synced:
//! after a crash of the machine the file may be missing, and the drafts stay.

use hikyaku_fs::{Dir, FsError, PeerPath, Token, remove_unfinished};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, read_dir, remove_file};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a slot. A name that does not fit with the zero byte behind it is not recorded.
const SLOT_BYTES: usize = 4096;
/// Slots of a file.
const SLOTS_MAX: u64 = 65_536;
/// Files of the folder that are looked at.
const FILES_MAX: usize = 10_000;
/// A file without a place may be one that is just being begun.
const FRESH: Duration = Duration::from_secs(60);

/// The records of this process for one store.
#[derive(Debug)]
pub struct Begun {
    file: File,
    path: PathBuf,
    slots: Mutex<Slots>,
}

#[derive(Debug)]
struct Slots {
    free: Vec<u64>,
    /// The first one that was never used. The place of the store has number 0.
    next: u64,
}

/// Something that was begun. It is noted until this is dropped.
#[derive(Debug)]
pub struct Note {
    begun: Arc<Begun>,
    slot: u64,
}

/// The result for a draft of a killed process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// It is not there any more.
    Removed,
    /// The draft exists, and the next process may try again.
    Stays,
}

impl Begun {
    /// Begins the records for the store at `place`, in `folder`, which is made if it does not exist.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, or its file system has no locks.
    pub fn new(folder: &Path, place: &[u8]) -> io::Result<Arc<Self>> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let name = Token::random().map_err(|error| io::Error::other(error.to_string()))?;
        let path = folder.join(OsStr::from_bytes(name.as_bytes()));
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let locked =
            flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from);
        let begun = Self { file, path, slots: Mutex::new(Slots { free: Vec::new(), next: 1 }) };
        locked?;
        match begun.write(0, place) {
            true => Ok(Arc::new(begun)),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Notes what is begun; `None` if it cannot be.
    pub fn note(self: &Arc<Self>, what: &[u8]) -> Option<Note> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            match slots.free.pop() {
                Some(slot) => slot,
                None if slots.next < SLOTS_MAX => {
                    slots.next += 1;
                    slots.next - 1
                }
                None => return None,
            }
        };
        let note = Note { begun: self.clone(), slot };
        self.write(slot, what).then_some(note)
    }

    /// Writes a slot, with a zero byte at its end. Returns whether all of it was written.
    fn write(&self, slot: u64, what: &[u8]) -> bool {
        let is_possible = what.len() < SLOT_BYTES && !what.contains(&0);
        let bytes = [what, b"\0"].concat();
        is_possible && self.file.write_all_at(&bytes, slot * SLOT_BYTES as u64).is_ok()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // A file that stays is taken for one of a killed process, which had begun nothing.
        let _ = remove_file(&self.path);
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.begun.write(self.slot, b"");
        let mut slots = self.begun.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.free.push(self.slot);
    }
}

/// Hands to `remove` what killed processes have left at places for which `is_meant` holds: the place, and what was noted.
pub fn left_over(
    folder: &Path,
    is_meant: impl Fn(&[u8]) -> bool,
    mut remove: impl FnMut(&[u8], &[u8]) -> Left,
) {
    // Without the folder nothing was begun.
    let entries = read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    let names = entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| Token::parse(name.as_bytes()).is_some())
    });
    for path in names {
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        // The process that holds the lock is alive.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        match slot(&file, 0) {
            Some(place) if place.is_empty() && is_fresh(&file) => {}
            Some(place) if !is_meant(&place) => {}
            Some(place) => {
                let noted = (1..SLOTS_MAX).map_while(|number| slot(&file, number));
                let noted = noted.filter(|what| !what.is_empty());
                let stays = noted.filter(|what| remove(&place, what) == Left::Stays).count();
                if stays == 0 {
                    // Another process may have been as quick.
                    let _ = remove_file(&path);
                }
            }
            // Nothing was written to it.
            None if is_fresh(&file) => {}
            None => drop(remove_file(&path)),
        }
    }
}

/// Removes the unfinished files of killed processes on this machine. Files that a process writes to are kept.
pub fn left_here(folder: &Path) {
    left_over(folder, |place| place.starts_with(b"/"), remove_left);
}

/// Removes a draft of a killed process below `root`. It has to have the name of a draft, and no process may write to it.
fn remove_left(root: &[u8], path: &[u8]) -> Left {
    let Ok(path) = PeerPath::new(path) else { return Left::Removed };
    if Token::of(&path.name()).is_none() {
        return Left::Removed;
    }
    let dir = Dir::open(Path::new(OsStr::from_bytes(root))).and_then(|root| root.parent(&path));
    match dir.and_then(|(dir, name)| remove_unfinished(&dir, &name)) {
        Ok(_) => Left::Removed,
        Err(error) if error.errno() == Some(Errno::NOENT) => Left::Removed,
        // A name that is no regular file any more is not the draft.
        Err(FsError::Special { .. }) => Left::Removed,
        Err(_) => Left::Stays,
    }
}

fn is_fresh(file: &File) -> bool {
    let modified = file.metadata().and_then(|meta| meta.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < FRESH))
}

/// The record in a slot: empty if it is free; `None` behind the last one.
fn slot(file: &File, number: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; SLOT_BYTES];
    let mut filled = 0;
    while filled < SLOT_BYTES {
        let at = number * SLOT_BYTES as u64 + filled as u64;
        match file.read_at(&mut bytes[filled..], at) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    (filled > 0).then(|| bytes.split(|&byte| byte == 0).next().unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests;
