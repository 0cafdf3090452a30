//! Where a file goes, and whether one that has its name gives way.

use crate::journal::Journal;
use anyhow::{Result, bail};
use hikyaku_console::{ExitCode, with_remedy};
use hikyaku_fs::{Dir, Draft, FilePlace, Kind, Name};
use std::path::Path;
use std::sync::Arc;

/// Whether a file of the same name is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    Refused,
    Replaced,
}

/// A name in a directory that the user named. The server has chosen the name: a link that has it is not followed, because
/// whoever made the link would then choose the file.
pub(crate) fn within(dir: &Path, name: Name) -> Result<FilePlace> {
    Ok(FilePlace { dir: Arc::new(Dir::open(dir)?), name })
}

impl Existing {
    /// Refuses to replace what is there, if the user does not want that; a device is never replaced.
    pub(crate) fn check(self, place: &FilePlace) -> Result<()> {
        let Some(meta) = place.dir.meta(&place.name)? else { return Ok(()) };
        let shown = place.name.shown();
        match meta.kind {
            Kind::File if self == Self::Replaced => Ok(()),
            Kind::File => {
                let error = ExitCode::WillFail.error(format!("{shown} exists"));
                Err(with_remedy(error, Some("--force to replace it, or -o FILE for another name")))
            }
            Kind::Link if self == Self::Replaced => Ok(()),
            Kind::Link => {
                let error =
                    ExitCode::WillFail.error(format!("{shown} exists and is a symbolic link"));
                Err(with_remedy(error, Some("--force to replace it, or -o FILE for another name")))
            }
            Kind::Dir | Kind::Special => {
                bail!(ExitCode::WillFail.error(format!("{shown} exists and is no file")))
            }
        }
    }

    /// Gives a complete file its name.
    pub(crate) fn finish(self, place: &FilePlace, draft: &Draft, journal: &Journal) -> Result<()> {
        place.complete(draft)?;
        journal.complete(draft)?;
        // Not every file system can refuse to replace a file in the renaming itself.
        self.check(place)?;
        Ok(place.give_name(draft)?)
    }
}
