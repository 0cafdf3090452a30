//! Files that the target has already (`-sync`), by the levels of globus-url-copy.

use super::{Copy, Of};
use crate::checksum::{Checksum, Differs};
use crate::several::Between;
use crate::there::GROUP;
use anyhow::{Context, Result};
use hikyaku_console::At;
use hikyaku_fs::{Kind, Meta};
use hikyaku_gridftp::{Facts, Kind as Theirs};
use hikyaku_mover::File;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
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
    pub(super) fn is_current(&mut self, file: &Between, of: Of) -> Result<bool> {
        let before = match (of, self.sink) {
            (Of::One, Some(sink)) => sink.ask(|channel| channel.facts(&file.to))?,
            _ => file.before.clone(),
        };
        let target = before.as_ref().and_then(Stamp::there);
        let Some((source, target)) = Stamp::there(&file.facts).zip(target) else {
            return Ok(false);
        };
        match self.level().is_current(source, target) {
            Some(is_current) => Ok(is_current),
            None => self.has_same_sum(file, source.size).with_context(|| file.failure()),
        }
    }

    /// Whether the file of the target has the checksum of its source.
    fn has_same_sum(&mut self, file: &Between, size: u64) -> Result<bool> {
        let how = self.args.cksm.unwrap_or(Checksum::Sha256);
        let Some(sink) = self.sink else { return Ok(false) };
        is_same(self.session.compare_with_by(how, &file.from, (sink, &file.to), 0..size))
    }

    /// Leaves out the files of this machine that the server has already. The paths of the files are below the first directory,
    /// and those of their targets below the second one.
    ///
    /// # Errors
    /// The server cannot be asked, or computes no checksum.
    pub(super) fn others_of(
        &mut self,
        files: &mut Vec<File>,
        (here, there): (&[u8], &[u8]),
    ) -> Result<()> {
        let mut others = Vec::with_capacity(files.len());
        let (all, at_once) = (std::mem::take(files), self.session.questions());
        for some in all.chunks(GROUP) {
            let path = |file: &File| [there, file.to.as_bytes()].concat();
            let paths: Vec<_> = some.iter().map(path).collect();
            let told = self.session.ask(|channel| channel.facts_of_each(&paths, at_once))?;
            for ((file, path), facts) in some.iter().zip(&paths).zip(told) {
                let source = [here, file.path.as_bytes()].concat();
                let source = Path::new(OsStr::from_bytes(&source));
                match self.is_current_there((source, file), (path, facts.as_ref()))? {
                    true => self.count_current(file.seen.size),
                    false => others.push(file.clone()),
                }
            }
        }
        *files = others;
        Ok(())
    }

    /// Whether the server has a file of this machine at this path.
    fn is_current_there(
        &mut self,
        (from, file): (&Path, &File),
        (path, facts): (&[u8], Option<&Facts>),
    ) -> Result<bool> {
        let size = file.seen.size;
        let source = Stamp { size, modified: Some(file.seen.modified.secs) };
        let Some(target) = facts.and_then(Stamp::there) else { return Ok(false) };
        match self.level().is_current(source, target) {
            Some(is_current) => Ok(is_current),
            None => {
                let how = self.args.cksm.unwrap_or(Checksum::Sha256);
                let compared = self.session.compare_here_by(how, path, 0..size, from);
                is_same(compared).with_context(|| from.display().to_string())
            }
        }
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
