//! Where a file goes, and whether one that has its name gives way.

use crate::journal::Journal;
use anyhow::{Result, bail};
use hikyaku_console::{ExitCode, with_remedy};
use hikyaku_fs::{Draft, FilePlace, Kind, Name};
use std::path::Path;

/// Whether a file of the same name is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    Refused,
    Replaced,
}

/// A name in a directory that the user named. As with `curl -O`, the file behind a link is meant.
pub(crate) fn within(dir: &Path, name: &Name) -> Result<FilePlace> {
    Ok(FilePlace::of(&dir.join(name.as_os_str()))?)
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
                    ExitCode::WillFail.error(format!("{shown} is a link that leads nowhere"));
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
