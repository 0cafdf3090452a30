//! Files that the target has already (`-sync`), by the levels of globus-url-copy.

use super::{Copy, Of};
use crate::checksum::{Checksum, Differs};
use crate::several::File;
use anyhow::{Context, Result};
use hikyaku_console::At;
use hikyaku_fs::{Kind, Meta};
use hikyaku_gridftp::{Facts, Kind as Theirs};
use std::fs;
use std::io;
use std::path::Path;

/// How the file of the target is compared with its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    /// A file that exists is not copied.
    Absent,
    /// One of the same size.
    Size,
    /// One of the same size that is no older.
    Time,
    /// One of the same size and checksum.
    Checksum,
}

/// The compared properties of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp {
    size: u64,
    /// In seconds since 1970; `None` if the server does not send it.
    modified: Option<i64>,
}

impl Stamp {
    // fuzz: none, what `ftp_replies` has read
    fn there(facts: &Facts) -> Option<Self> {
        let size = facts.size.filter(|_| facts.kind == Theirs::File)?;
        Some(Self { size, modified: facts.time().map(|(seconds, _)| seconds) })
    }

    fn here(meta: &Meta) -> Option<Self> {
        let modified = Some(meta.modified.0);
        (meta.kind == Kind::File).then_some(Self { size: meta.size, modified })
    }
}

impl Level {
    /// Whether the target has the content of its source; `None` if their checksums decide that. The file of a server that sends
    /// no time is older.
    fn is_current(self, source: Stamp, target: Stamp) -> Option<bool> {
        let is_same_size = source.size == target.size;
        match self {
            Self::Absent => Some(true),
            Self::Size => Some(is_same_size),
            Self::Time => Some(is_same_size && target.modified >= source.modified),
            Self::Checksum => (!is_same_size).then_some(false),
        }
    }
}

impl Copy<'_> {
    fn level(&self) -> Level {
        match self.args.sync_level {
            Some(0) => Level::Absent,
            Some(1) => Level::Size,
            None | Some(2) => Level::Time,
            Some(_) => Level::Checksum,
        }
    }

    /// Whether the target has this file, so that it is not copied.
    ///
    /// # Errors
    /// A server cannot be asked, or computes no checksum.
    pub(super) fn is_current(&mut self, file: &File, of: Of) -> Result<bool> {
        let (source, target) = match file {
            File::Up(up) => {
                let source = Meta::from(&fs::metadata(&up.from).at(up.from.display())?);
                let before = match of {
                    Of::Several => up.before.clone(),
                    Of::One => self.session.ask(|channel| channel.facts(&up.path))?,
                };
                (Stamp::here(&source), before.as_ref().and_then(Stamp::there))
            }
            File::Between(between) => {
                let before = match (of, self.sink) {
                    (Of::One, Some(sink)) => sink.ask(|channel| channel.facts(&between.to))?,
                    _ => between.before.clone(),
                };
                (Stamp::there(&between.facts), before.as_ref().and_then(Stamp::there))
            }
        };
        let (Some(source), Some(target)) = (source, target) else { return Ok(false) };
        match self.level().is_current(source, target) {
            Some(is_current) => Ok(is_current),
            None => self.has_same_sum(file, source.size).with_context(|| file.failure()),
        }
    }

    /// Whether the file of the target has the checksum of its source.
    fn has_same_sum(&mut self, file: &File, size: u64) -> Result<bool> {
        let how = self.args.cksm.unwrap_or(Checksum::Sha256);
        let range = 0..size;
        let session = &mut self.session;
        let compared = match file {
            File::Up(up) => session.compare_here_by(how, &up.path, range, &up.from),
            File::Between(between) => match self.sink {
                Some(sink) => {
                    session.compare_with_by(how, &between.from, (sink, &between.to), range)
                }
                None => return Ok(false),
            },
        };
        is_same(compared)
    }

    /// Whether the file of this machine at `to` has the content of a server's file, so that it is not copied.
    ///
    /// # Errors
    /// The file of this machine cannot be read, or the server computes no checksum.
    pub(super) fn is_current_here(
        &mut self,
        (path, facts): (&[u8], &Facts),
        to: &Path,
    ) -> Result<bool> {
        let target = match fs::metadata(to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            target => Meta::from(&target.at(to.display())?),
        };
        let Some((source, target)) = Stamp::there(facts).zip(Stamp::here(&target)) else {
            return Ok(false);
        };
        match self.level().is_current(source, target) {
            Some(is_current) => Ok(is_current),
            None => {
                let how = self.args.cksm.unwrap_or(Checksum::Sha256);
                is_same(self.session.compare_here_by(how, path, 0..source.size, to))
            }
        }
    }
}

/// Whether two files have the same checksum.
fn is_same(compared: Result<()>) -> Result<bool> {
    match compared {
        Err(error) if error.is::<Differs>() => Ok(false),
        compared => compared.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_compares_what_it_says() {
        let stamp = |size, modified| Stamp { size, modified };
        let source = stamp(5, Some(100));
        for (level, target, wanted) in [
            (Level::Absent, stamp(6, Some(0)), Some(true)),
            (Level::Size, stamp(5, Some(0)), Some(true)),
            (Level::Size, stamp(6, Some(200)), Some(false)),
            (Level::Time, stamp(5, Some(100)), Some(true)),
            (Level::Time, stamp(5, Some(200)), Some(true)),
            (Level::Time, stamp(5, Some(99)), Some(false)),
            (Level::Time, stamp(6, Some(200)), Some(false)),
            (Level::Time, stamp(5, None), Some(false)),
            (Level::Checksum, stamp(6, Some(100)), Some(false)),
            (Level::Checksum, stamp(5, Some(0)), None),
        ] {
            assert_eq!(level.is_current(source, target), wanted, "{level:?} {target:?}");
        }
    }
}
