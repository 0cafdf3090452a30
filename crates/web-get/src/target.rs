//! Files of this machine.

use crate::outcome::Lasting;
use anyhow::{Result, bail};
use hikyaku_console::with_remedy;
use hikyaku_fs::{Dir, Draft, FsError, Meta, Name, Replace, Target, Token, umask};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A directory and a name in it.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) dir: Arc<Dir>,
    pub(crate) name: Name,
}

/// Whether a file of the same name is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    Refused,
    Replaced,
}

impl Spot {
    /// The place of a file that the user named. A file behind a link is meant, and not the link.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let shown = path.as_os_str().as_bytes();
        match Target::of(path)? {
            Target::Name(spot) if !spot.must_be_dir => {
                Ok(Self { dir: Arc::new(spot.dir), name: spot.name })
            }
            Target::Name(_) => Err(FsError::is_no_dir(shown).into()),
            Target::Dir => Err(FsError::is_dir(shown).into()),
            Target::Stream(_) => Err(FsError::is_special(shown).into()),
        }
    }

    /// A name in a directory that the user named.
    pub(crate) fn within(dir: &Path, name: Name) -> Result<Self> {
        Ok(Self { dir: Arc::new(Dir::open(dir)?), name })
    }

    /// Refuses to replace what is there, if the user does not want that; a device is never replaced.
    pub(crate) fn check(&self, existing: Existing) -> Result<()> {
        let Some(meta) = self.dir.meta(&self.name)? else { return Ok(()) };
        let shown = self.name.shown();
        match meta.kind {
            hikyaku_fs::Kind::File if existing == Existing::Replaced => Ok(()),
            hikyaku_fs::Kind::File => {
                let error = Lasting(format!("{shown} exists"));
                Err(with_remedy(
                    error.into(),
                    Some("--force to replace it, or -o FILE for another name"),
                ))
            }
            _ => bail!(Lasting(format!("{shown} exists and is no file"))),
        }
    }

    /// A new unfinished file.
    pub(crate) fn draft(&self) -> Result<Draft> {
        self.beside(&self.name)
    }

    /// A new unfinished file that will have another name in the same directory.
    pub(crate) fn beside(&self, name: &Name) -> Result<Draft> {
        Ok(Draft::create(Arc::clone(&self.dir), name, &Token::random()?)?)
    }

    /// An unfinished file of an earlier attempt.
    ///
    /// # Errors
    /// Another process writes to it.
    pub(crate) fn take_up(&self, partial: &str) -> Result<Option<Draft>> {
        let Some(partial) = Name::new(partial.as_bytes()).ok() else { return Ok(None) };
        if !Token::is_partial_of(&partial, &self.name) {
            return Ok(None);
        }
        match Draft::take_up(Arc::clone(&self.dir), partial, &self.name) {
            Ok(draft) => Ok(Some(draft)),
            Err(error @ hikyaku_fs::FsError::Busy { .. }) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Gives a complete file its name.
    pub(crate) fn finish(&self, draft: &Draft, existing: Existing) -> Result<()> {
        draft.with(|file| {
            // A file system without modes keeps its own.
            let _ = Meta::set_mode(file, 0o666 & !umask());
            Ok(())
        })?;
        draft.sync()?;
        // Not every file system can refuse to replace a file in the renaming itself.
        self.check(existing)?;
        draft.name(Replace::Allowed)?;
        Ok(self.dir.sync()?)
    }
}
