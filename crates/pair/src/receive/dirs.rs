//! Directories of a copy: which one is open, what each gets when nothing more is written into it, and
//! which have to be synced.

use super::Receiver;
use super::tree::Tree;
use hikyaku_fs::{Dir, FsError, Meta, Owner, PeerPath};
use hikyaku_transfer::{Durable, Entry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The directories that the receiver knows.
#[derive(Default)]
pub(super) struct Dirs {
    /// The last one, for the next file is mostly there too.
    last: Option<Open>,
    all: Tree<Note>,
}

/// The work on a directory after the last write into it.
#[derive(Default)]
struct Note {
    /// Mode and time that it gets.
    dress: Option<Dress>,
    /// Directories or links were made in it. (Where files were made it is synced with them.)
    is_touched: bool,
}

/// A directory held open.
#[derive(Clone)]
pub(super) struct Open {
    /// None, if it is the copy's own.
    path: Option<PeerPath>,
    pub(super) dir: Arc<Dir>,
    pub(super) device: u64,
}

#[derive(Clone, Copy)]
struct Dress {
    mode: Mode,
    owner: Option<Owner>,
    modified: (i64, u32),
}

/// The mode that a directory gets at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// It gets this one.
    Set(u32),
    /// It keeps the one that it has.
    Kept,
}

/// Number of directories from which on the whole file system is synced.
const SYNC_ALL: usize = 8;

impl Receiver<'_> {
    /// The directory that holds `path`.
    pub(super) fn parent(&mut self, path: &PeerPath) -> Result<Open, FsError> {
        let parent = path.parent();
        if let Some(last) = &self.dirs.last
            && last.path == parent
        {
            return Ok(last.clone());
        }
        let dir = match &parent {
            Some(parent) => self.landing.dir().dir(parent)?,
            None => self.landing.dir().again()?,
        };
        Ok(self.opened(parent, dir))
    }

    /// Notes a directory that is open, before anything is written into it.
    fn opened(&mut self, path: Option<PeerPath>, dir: Dir) -> Open {
        let device = self.disk.volumes.note(&dir);
        let open = Open { path, dir: Arc::new(dir), device };
        self.sweep(&open.dir);
        self.dirs.last = Some(open.clone());
        open
    }

    /// A name was made or taken in this directory.
    pub(super) fn touch(&mut self, dir: &Open) {
        self.dirs.all.at(dir.path.as_ref()).is_touched = true;
    }

    /// A directory has been made.
    pub(super) fn made_dir(&mut self, entry: &Entry, path: &PeerPath, made: Dir) {
        let mode = self.mode(entry, None);
        // An interrupted copy leaves it so; we must be able to write into it.
        let moded = Meta::set_dir_mode(&made, mode | OWN);
        self.disk.on_mode(path.as_bytes(), moded);
        self.dress(entry, path, Mode::Set(mode));
        self.opened(Some(path.clone()), made);
    }

    /// A directory is there and is used. One of ours that we may not write into is opened for as long as
    /// the copy lasts.
    pub(super) fn merged_dir(&mut self, entry: &Entry, path: &PeerPath, there: Dir) {
        let preserve = self.disk.options.rules.preserve;
        let mut mode = if preserve.modes() { Mode::Set(entry.mode) } else { Mode::Kept };
        if let Ok(meta) = Meta::of(&there)
            && meta.mode & OWN != OWN
            && meta.owner.user == rustix::process::geteuid().as_raw()
            && Meta::set_dir_mode(&there, meta.mode | OWN).is_ok()
            && !preserve.modes()
        {
            mode = Mode::Set(meta.mode);
        }
        if preserve.times() || mode != Mode::Kept {
            self.dress(entry, path, mode);
        }
        self.opened(Some(path.clone()), there);
    }

    fn dress(&mut self, entry: &Entry, path: &PeerPath, mode: Mode) {
        let dress = Dress { mode, owner: self.owner(entry), modified: entry.modified };
        self.dirs.all.at(Some(path)).dress = Some(dress);
    }

    /// Modes and times of directories, the innermost first; then all names reach the disk.
    pub(super) fn finish_dirs(&mut self) -> Result<(), FsError> {
        let all = std::mem::take(&mut self.dirs.all);
        for (number, note) in all.innermost_first() {
            if let (Some(dress), Some(path)) = (note.dress, all.path(number)) {
                self.finish_dir(dress, &path);
            }
        }
        if self.disk.options.rules.durable == Durable::Cache {
            return Ok(());
        }
        self.landing.sync_made()?;
        self.sync_dirs(&all)
    }

    fn finish_dir(&self, Dress { mode, owner, modified }: Dress, path: &PeerPath) {
        let dir = match self.landing.dir().dir(path) {
            Ok(dir) => dir,
            Err(error) => return self.disk.undressed(path.as_bytes(), &error),
        };
        if let Some(owner) = owner
            && let Err(error) = Meta::set_owner(&dir, owner)
        {
            self.disk.undressed(path.as_bytes(), &error);
        }
        if let Mode::Set(mode) = mode {
            self.disk.on_mode(path.as_bytes(), Meta::set_dir_mode(&dir, mode));
        }
        if self.disk.options.rules.preserve.times()
            && let Err(error) = Meta::set_modified(&dir, modified)
        {
            self.disk.undressed(path.as_bytes(), &error);
        }
    }

    /// Brings to the disk what was made in directories, and what they got themselves.
    fn sync_dirs(&self, all: &Tree<Note>) -> Result<(), FsError> {
        let mut devices: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let touched = |(number, note): (usize, &Note)| {
            (note.is_touched || note.dress.is_some()).then_some(number)
        };
        for number in all.innermost_first().filter_map(touched) {
            let path = all.path(number);
            // One that is gone has nothing to sync.
            let Ok(dir) = self.dir_at(path.as_ref()) else { continue };
            let device = self.disk.volumes.note(&dir);
            let together = devices.entry(device).or_default();
            together.push(number);
            if self.disk.volumes.get(device).is_none() || together.len() < SYNC_ALL {
                dir.sync().map_err(|error| self.about(path.as_ref(), error))?;
            }
        }
        for (device, numbers) in devices {
            if let Some(volume) =
                self.disk.volumes.get(device).filter(|_| numbers.len() >= SYNC_ALL)
                && volume.sync().is_err()
            {
                // Somebody's failure: is it ours?
                for path in numbers.into_iter().map(|number| all.path(number)) {
                    let dir = self.dir_at(path.as_ref())?;
                    dir.sync().map_err(|error| self.about(path.as_ref(), error))?;
                }
            }
        }
        Ok(())
    }

    fn dir_at(&self, path: Option<&PeerPath>) -> Result<Dir, FsError> {
        match path {
            Some(path) => self.landing.dir().dir(path),
            None => self.landing.dir().again(),
        }
    }

    fn about(&self, path: Option<&PeerPath>, error: FsError) -> FsError {
        let path = path.map_or(&b""[..], PeerPath::as_bytes);
        error.about(&crate::failure::place(&self.disk.base, path))
    }
}

/// Permissions that the owner of a directory needs to write into it.
const OWN: u32 = 0o700;
