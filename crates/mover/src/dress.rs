//! Permission bits at the target, and times of directories. Downloads and uploads of daemons, Gfarm file systems and buckets
//! decide them here, as native cp has it: `-p` keeps those of the source; without it new files and directories get the
//! source's without those of the umask, and what is there keeps its own.

use crate::session::Modes;
use hikyaku_fs::umask;
use hikyaku_store::{Change, Found, Kind, Time, Umask};

/// Bits that files get: no set-id bits, which would grant the rights of the owner here.
const FILE_BITS: u32 = 0o777;
/// The same of directories. Without the sticky bit a shared directory would be open wider than the source.
const DIR_BITS: u32 = 0o1777;
/// Bits with which a directory can be filled.
const FILLED: u32 = 0o700;

/// Which permission bits files and directories get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dress {
    /// Those of the source, and directories also its times.
    Kept,
    /// New ones get those of the source without these; what is there keeps its own.
    Usual {
        /// The bits.
        umask: u32,
    },
    /// As `Usual`, with the umask that the store has itself.
    OfStore,
}

/// The permission bits with which a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileMode {
    /// It gets these.
    Exact(u32),
    /// The store makes it with these and removes those of its umask.
    Made(u32),
}

/// Which modification times files and directories get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Times {
    /// Those of the source: files always, directories if their permission bits are kept as well.
    #[default]
    Kept,
    /// The time of the copy.
    New,
}

/// What is known of a directory of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirMeta {
    /// Permission bits.
    pub mode: u32,
    /// Its modification time; `None` if the source has no times of directories.
    pub modified: Option<Time>,
}

/// Whether a directory was made by the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirState {
    /// It was.
    Made,
    /// It was there before.
    There,
}

impl Modes {
    /// The same with the umask of this process.
    pub fn dress(self) -> Dress {
        match self {
            Self::Usual => Dress::Usual { umask: umask() },
            Self::Kept => Dress::Kept,
        }
    }
}

impl Dress {
    /// The same for a store whose new entries have this umask.
    pub(crate) const fn within(self, umask: Umask) -> Self {
        match (self, umask) {
            (Self::Usual { .. }, Umask::Store) => Self::OfStore,
            (dress, _) => dress,
        }
    }

    /// How the bits of a file are set where `there` has its name.
    pub(crate) fn file_mode(self, mode: u32, there: Option<&Found>) -> FileMode {
        let bits = self.file(mode, there);
        let is_new = there.is_none_or(|found| found.kind != Kind::File);
        if self == Self::OfStore && is_new { FileMode::Made(bits) } else { FileMode::Exact(bits) }
    }

    /// Bits that a new directory has only until it is filled, where the store alone knows the others.
    pub(crate) fn lent_by_store(self, mode: u32, state: DirState) -> Option<u32> {
        let lent = FILLED & !mode;
        (self == Self::OfStore && state == DirState::Made && lent != 0).then_some(lent)
    }

    /// The bits of a file where `there` has its name.
    pub fn file(self, mode: u32, there: Option<&Found>) -> u32 {
        let replaced = there.filter(|found| found.kind == Kind::File);
        FILE_BITS
            & match (self, replaced) {
                (Self::Kept, _) | (Self::OfStore, None) => mode,
                (Self::Usual { .. } | Self::OfStore, Some(found)) => found.mode,
                (Self::Usual { umask }, None) => mode & !umask,
            }
    }

    /// What a file gets that is there with the same size and time; `None` if it stays as it is.
    pub(crate) fn same_file(self, mode: u32, there: &Found) -> Option<Change> {
        let wanted = self.file(mode, Some(there));
        let is_other = there.mode & FILE_BITS != wanted;
        is_other.then(|| Change { mode: Some(wanted), ..Change::default() })
    }

    /// The bits with which a directory is made, until it is filled.
    pub const fn new_dir(self, mode: u32) -> u32 {
        self.dir(mode) | FILLED
    }

    /// What a directory gets after it was filled; `None` if it stays as it is.
    pub fn filled_dir(self, meta: DirMeta, state: DirState) -> Option<Change> {
        let mode = match (self, state) {
            (Self::OfStore, _) | (Self::Usual { .. }, DirState::There) => None,
            (Self::Usual { .. }, DirState::Made)
                if self.dir(meta.mode) == self.new_dir(meta.mode) =>
            {
                None
            }
            // The store may have removed bits of its umask.
            _ => Some(self.dir(meta.mode)),
        };
        let modified = meta.modified.filter(|_| self == Self::Kept);
        let is_something = mode.is_some() || modified.is_some();
        is_something.then(|| Change { mode, modified, ..Change::default() })
    }

    const fn dir(self, mode: u32) -> u32 {
        DIR_BITS
            & match self {
                Self::Kept | Self::OfStore => mode,
                Self::Usual { umask } => mode & !umask,
            }
    }
}

impl DirMeta {
    /// That of a directory that was found.
    pub(crate) const fn of(found: &Found) -> Self {
        Self { mode: found.mode, modified: Some(found.modified) }
    }

    /// That of a directory of which nothing is known, such as the root of a server.
    pub(crate) fn unknown() -> Self {
        Self { mode: 0o777 & !umask(), modified: None }
    }
}

#[cfg(test)]
mod tests;
