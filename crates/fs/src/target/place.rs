//! The place of one file that is complete before it gets its name.

use super::Target;
use crate::dir::{Dir, Kind, Meta, Replace};
use crate::draft::Draft;
use crate::error::FsError;
use crate::partial::Token;
use crate::path::Name;
use crate::umask::umask;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A directory that is held open, and the name of a file in it.
#[derive(Clone, Debug)]
pub struct FilePlace {
    /// The directory.
    pub dir: Arc<Dir>,
    /// The name in it.
    pub name: Name,
}

impl FilePlace {
    /// The place that the user has named. A file behind a link is meant, and not the link.
    ///
    /// # Errors
    /// Those of [`Target::of`], and if it is something else than a regular file or nothing.
    pub fn of(path: &Path) -> Result<Self, FsError> {
        let shown = path.as_os_str().as_bytes();
        match Target::of(path)? {
            Target::Name(spot) if !spot.must_be_dir => {
                Ok(Self { dir: Arc::new(spot.dir), name: spot.name })
            }
            Target::Name(_) => Err(FsError::is_no_dir(shown)),
            Target::Dir => Err(FsError::is_dir(shown)),
            Target::Stream(_) => Err(FsError::is_special(shown)),
        }
    }

    /// A new unfinished file.
    ///
    /// # Errors
    /// It cannot be made, or the random generator fails.
    pub fn draft(&self) -> Result<Draft, FsError> {
        self.beside(&self.name)
    }

    /// A new unfinished file that will have another name in the same directory.
    ///
    /// # Errors
    /// As [`draft`](Self::draft).
    pub fn beside(&self, name: &Name) -> Result<Draft, FsError> {
        Draft::create(Arc::clone(&self.dir), name, &Token::random()?)
    }

    /// The name of a new unfinished file, to be recorded before the file is [made](Self::make).
    ///
    /// # Errors
    /// The random generator fails.
    pub fn partial(&self) -> Result<Name, FsError> {
        Token::random()?.partial(&self.name)
    }

    /// Makes the unfinished file of this name.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(&self, partial: Name) -> Result<Draft, FsError> {
        Draft::make(Arc::clone(&self.dir), &self.name, partial)
    }

    /// The unfinished file `partial` of an earlier attempt; `None` if there is none that can be used.
    ///
    /// # Errors
    /// Another process writes to it.
    pub fn take_up(&self, partial: &[u8]) -> Result<Option<Draft>, FsError> {
        let Some(partial) = Name::new(partial).ok() else { return Ok(None) };
        if !Token::is_partial_of(&partial, &self.name) {
            return Ok(None);
        }
        match Draft::take_up(Arc::clone(&self.dir), partial, &self.name) {
            Ok(draft) => Ok(Some(draft)),
            Err(error @ FsError::Busy { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Syncs a complete file. It gets the permission bits of the file whose place it will take, or else those that the umask
    /// leaves.
    ///
    /// # Errors
    /// The file that has the name cannot be looked at, or the draft cannot be synced.
    pub fn complete(&self, draft: &Draft) -> Result<(), FsError> {
        let old = self.dir.meta(&self.name)?.filter(|old| old.kind == Kind::File);
        let mode = old.map_or_else(|| 0o666 & !umask(), |old| old.mode);
        draft.with(|file| {
            // A file system without modes keeps its own.
            let _ = Meta::set_mode(file, mode);
            Ok(())
        })?;
        draft.sync()
    }

    /// Gives a file that was [completed](Self::complete) its name, in place of a file that has it.
    ///
    /// # Errors
    /// Something else than a file has the name, or the directory cannot be changed or synced.
    pub fn give_name(&self, draft: &Draft) -> Result<(), FsError> {
        draft.name(Replace::Allowed)?;
        self.dir.sync()
    }
}
