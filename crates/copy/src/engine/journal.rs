//! The journal on disk: in the state directory of the user who receives, one file for the same
//! sources and the same target.

use crate::folders;
use hikyaku_transfer::{Journal, Record, Remains};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An end that lost the other one finds out within this time (see `Watch`).
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// A journal, open for as long as the copy lasts. Without one a copy works, and is not taken up again.
pub(crate) struct JournalFile {
    open: Option<(Mutex<File>, PathBuf)>,
}

impl JournalFile {
    /// No journal.
    pub(crate) const fn none() -> Self {
        Self { open: None }
    }

    /// The journal of copies of these sources to `place`, and what there is of earlier ones. If the
    /// same copy is under way it keeps its journal.
    pub(crate) fn open(place: &Place<'_>) -> (Self, BTreeMap<Vec<u8>, Remains>) {
        match Self::try_open(place) {
            Ok(Some((file, path, remains))) => {
                (Self { open: Some((Mutex::new(file), path)) }, remains)
            }
            // No state directory, a full disk, an unreadable file: nothing of it hurts the copy.
            Ok(None) | Err(_) => (Self { open: None }, BTreeMap::new()),
        }
    }

    #[allow(clippy::type_complexity)]
    fn try_open(
        place: &Place<'_>,
    ) -> io::Result<Option<(File, PathBuf, BTreeMap<Vec<u8>, Remains>)>> {
        let Some(folder) = folder() else { return Ok(None) };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let path = folder.join(place.journal()?);
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        if !lock(&file, &path) {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let boot = boot();
        // Another version's journal is nothing to go on from.
        let known = Journal::read(&bytes, boot).unwrap_or_default();
        file.set_len(known.whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        if known.whole == 0 {
            file.write_all(Journal::magic())?;
        }
        file.write_all(&Journal::frame(&Record::Begun { boot }))?;
        Ok(Some((file, path, known.files)))
    }

    /// Appends records. What cannot be written is not remembered.
    pub(crate) fn append(&self, records: &[Record]) {
        let Some((file, _)) = &self.open else { return };
        let bytes: Vec<u8> = records.iter().flat_map(Journal::frame).collect();
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = file.write_all(&bytes);
    }

    /// How long it is; what is said of that much can be synced.
    pub(crate) fn length(&self) -> u64 {
        let Some((file, _)) = &self.open else { return 0 };
        let file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.metadata().map_or(0, |meta| meta.len())
    }

    /// Says that all data that the first `length` bytes of it speak of have reached the disk.
    pub(crate) fn synced(&self, length: u64) {
        self.append(&[Record::Synced { length }]);
        if let Some((file, _)) = &self.open {
            let _ = file.lock().unwrap_or_else(PoisonError::into_inner).sync_data();
        }
    }

    /// Whether another attempt at the same copy waits for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.open.as_ref().is_some_and(|(_, path)| request(path).exists())
    }

    /// The copy is done: there is nothing to go on with.
    pub(crate) fn remove(self) {
        if let Some((file, path)) = self.open {
            let _ = fs::remove_file(path);
            drop(file);
        }
    }
}

/// What a journal is about.
pub(crate) struct Place<'a> {
    /// The same for the same sources.
    pub(crate) of: [u8; 32],
    /// The directory that is copied into.
    pub(crate) dir: &'a Path,
    /// What the one source is called there, if that is not its own name.
    pub(crate) name: Option<&'a [u8]>,
}

impl Place<'_> {
    /// Whether a copy to it was begun and not finished.
    pub(crate) fn is_begun(&self) -> bool {
        folder().zip(self.journal().ok()).is_some_and(|(folder, name)| folder.join(name).exists())
    }

    /// The name of the journal's file.
    fn journal(&self) -> io::Result<String> {
        let dir = fs::canonicalize(self.dir)?;
        let mut hasher = blake3::Hasher::new_keyed(&self.of);
        hasher.update(dir.as_os_str().as_bytes());
        // No path has this byte in it.
        hasher.update(b"\0").update(self.name.unwrap_or_default());
        Ok(format!("{}.journal", &hasher.finalize().to_hex()[..32]))
    }
}

/// Locks it; an earlier attempt whose other end is silent is asked to give way.
fn lock(file: &File, path: &Path) -> bool {
    let try_lock = || rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let request = request(path);
    if try_lock() {
        // Somebody may have asked for it and been killed.
        let _ = fs::remove_file(&request);
        return true;
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

/// A file that is there while somebody waits for the journal.
fn request(path: &Path) -> PathBuf {
    path.with_extension("wanted")
}

/// `$XDG_STATE_HOME/hikyaku/copies`.
fn folder() -> Option<PathBuf> {
    Some(folders::of_user("XDG_STATE_HOME", ".local/state")?.join("copies"))
}

/// The kernel's name for the time since it was started; a random one where it has none, so that
/// nothing is taken for synced that is not.
fn boot() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut boot = [0; 16];
    if digits.len() != 32 {
        return hikyaku_crypto::random_array();
    }
    for (byte, pair) in boot.iter_mut().zip(digits.chunks(2)) {
        let text = std::str::from_utf8(pair).unwrap_or("0");
        *byte = u8::from_str_radix(text, 16).unwrap_or(0);
    }
    boot
}
