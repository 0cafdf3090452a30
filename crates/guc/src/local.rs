//! Files of this machine.

use crate::outcome::Lasting;
use anyhow::{Result, bail};
use hikyaku_fs::{Dir, Draft, FsError, Meta, Name, PeerPath, Replace, Target, Token, Zeros, umask};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A directory and a name in it.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) dir: Arc<Dir>,
    pub(crate) name: Name,
}

/// Who has made a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    /// It was there, or is no file of a part.
    Before,
    /// This command.
    Here,
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
            Target::Stream(_) => {
                bail!(Lasting(format!("{} is a device or a pipe", path.display())))
            }
        }
    }

    /// A new unfinished file.
    pub(crate) fn draft(&self) -> Result<Draft> {
        Ok(Draft::create(Arc::clone(&self.dir), &self.name, &Token::random()?)?)
    }

    /// The file itself, to write a part of it; it is made if it is not there.
    pub(crate) fn in_place(&self) -> Result<(Draft, Made)> {
        let mut made = Made::Before;
        if self.dir.meta(&self.name)?.is_none() {
            let file = self.dir.create(&self.name)?;
            made = Made::Here;
            // A file system without modes keeps its own.
            let _ = Meta::set_mode(&file, 0o666 & !umask());
        }
        Ok((Draft::in_place(Arc::clone(&self.dir), &self.name)?, made))
    }

    /// Removes a file that was made here for a part that did not come.
    pub(crate) fn remove_made(&self, made: Made) {
        if made == Made::Here {
            // That the part did not come is told in either case.
            let _ = self.dir.remove_file(&self.name);
        }
    }

    /// An unfinished file of an earlier attempt.
    pub(crate) fn take_up(&self, partial: &str) -> Option<Draft> {
        let partial = Name::new(partial.as_bytes()).ok()?;
        if !Token::is_partial_of(&partial, &self.name) {
            return None;
        }
        Draft::take_up(Arc::clone(&self.dir), partial, &self.name).ok()
    }

    /// Gives a complete file its name.
    pub(crate) fn finish(&self, draft: &Draft) -> Result<()> {
        draft.with(|file| {
            // A file system without modes keeps its own.
            let _ = Meta::set_mode(file, 0o666 & !umask());
            Ok(())
        })?;
        draft.sync()?;
        draft.name(Replace::Allowed)?;
        Ok(self.dir.sync()?)
    }

    /// The name as it is used in a journal.
    pub(crate) fn text(name: &Name) -> String {
        OsStr::to_string_lossy(name.as_os_str()).into_owned()
    }
}

/// The directory `name` in `dir`, which is made if it is not there.
pub(crate) fn directory(dir: &Dir, name: &Name) -> Result<Dir> {
    if dir.meta(name)?.is_some() {
        return Ok(dir.dir(&PeerPath::new(name.as_bytes())?)?);
    }
    let made = dir.make_dir(name)?;
    // A file system without modes keeps its own.
    let _ = Meta::set_mode(&made, 0o777 & !umask());
    Ok(made)
}

/// Stores bytes of a download.
pub(crate) fn store(draft: &Draft, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    draft.write_at(offset, bytes, Zeros::Written).map_err(std::io::Error::other)
}
