//! Copies to a server.

use super::{CIRCLE, Copy, ODD, Of};
use crate::download::Wanted;
use crate::finished::Finished;
use crate::glob::Pattern;
use crate::outcome::{lasting, part_of_several};
use crate::several::{File, Up};
use crate::there::{GROUP, check_file, meant, mode_of};
use crate::upload::{split, version_here};
use crate::url::Remote;
use anyhow::{Result, bail};
use hikyaku_console::{At, ExitCode};
use hikyaku_gridftp::{Facts, Kind, Made};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{DirEntry, File as Opened, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

impl Copy<'_> {
    pub(super) fn up(&mut self, from: &Path, to: &Remote) -> Result<()> {
        let is_there = || Ok(from.symlink_metadata().is_ok());
        if let Some(pattern) = Pattern::parse(from.as_os_str().as_bytes(), is_there)? {
            return self.matches_up(&pattern, from, to);
        }
        if from.as_os_str().as_bytes().ends_with(b"/") {
            self.check_directory(to.path.ends_with(b"/"))?;
            let made = self.make_target(to)?;
            self.root_up(from, (to, made), None)?;
            self.session.show.count(|counts| counts.is_counted = true);
            return Ok(());
        }
        let mut to = to.clone();
        let folder = split(&to.path).0;
        if self.args.cd && !folder.is_empty() {
            self.session.ask(|channel| channel.make_dirs(folder))?;
        }
        let size = from.metadata().at(from.display())?;
        if !size.is_file() && !size.is_dir() {
            return Err(ExitCode::WillFail.error(format!(
                "{} is a device or a pipe, and its size is not known",
                from.display()
            )));
        }
        let range = self.wanted().range(size.len());
        self.session.show.count(|counts| {
            counts.total_files = 1;
            counts.total_bytes = range.end - range.start;
            counts.is_counted = true;
        });
        let source = split(from.as_os_str().as_bytes()).1;
        let (path, mode) =
            meant(&to.path, source, |path| self.session.ask(|channel| channel.facts(path)))?;
        to.path = path;
        self.file_up((from, &size), (&to, None, mode), self.wanted(), Of::One)
    }

    /// Copies what a pattern means in a directory of this machine.
    fn matches_up(&mut self, pattern: &Pattern, from: &Path, to: &Remote) -> Result<()> {
        if !to.path.ends_with(b"/") {
            bail!(lasting("the source is a pattern, so the target has to end in a slash"));
        }
        if self.wanted() != Wanted::Whole {
            bail!(part_of_several());
        }
        let made = self.make_target(to)?;
        let folder = if pattern.folder.is_empty() { b"." } else { pattern.folder.as_slice() };
        let from_dir = Path::new(OsStr::from_bytes(folder));
        if self.root_up(from_dir, (to, made), Some(pattern))? == 0 {
            bail!(lasting(format!("{}: no such file", from.display())));
        }
        self.session.show.count(|counts| counts.is_counted = true);
        Ok(())
    }

    fn root_up(
        &mut self,
        from: &Path,
        to: (&Remote, Made),
        only: Option<&Pattern>,
    ) -> Result<usize> {
        let unique = from.metadata().ok().map(|meta| identity(&meta));
        self.within(unique, |copy| copy.tree_up(from, to, only))
    }

    /// Copies the entries of a directory that are meant; `None`: all of them. Returns their number. `made` says whether the
    /// directory at the server is new.
    fn tree_up(
        &mut self,
        from: &Path,
        (to, made): (&Remote, Made),
        only: Option<&Pattern>,
    ) -> Result<usize> {
        let is_recursive = self.args.recurse;
        let is_meant = |entry: &DirEntry| {
            let Some(pattern) = only else { return true };
            pattern.matches(entry.file_name().as_bytes())
                && (is_recursive || !entry.path().is_dir())
        };
        let read = || -> std::io::Result<Vec<_>> {
            let mut entries = std::fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
            entries.retain(is_meant);
            entries.sort_by_key(DirEntry::file_name);
            Ok(entries)
        };
        let entries = read().at(from.display())?;
        let meant = entries.len();
        for some in entries.chunks(GROUP) {
            let at = |entry: &DirEntry| [&to.path[..], entry.file_name().as_bytes()].concat();
            let paths: Vec<_> = some.iter().map(at).collect();
            let before = match made {
                Made::New => vec![None; paths.len()],
                Made::Before => {
                    let at_once = self.session.questions();
                    self.session.ask(|channel| channel.facts_of_each(&paths, at_once))?
                }
            };
            let new_dirs = self.make_dirs_of(some, &paths, &before);
            for ((entry, path), before) in some.iter().zip(paths).zip(before) {
                let made = match &before {
                    _ if new_dirs.contains(&path) => Some(Made::New),
                    Some(facts) if facts.kind == Kind::Directory => Some(Made::Before),
                    _ => None,
                };
                let there = Remote { path, ..to.clone() };
                let done = self.entry_up(&entry.path(), (there, made), before.as_ref());
                self.after(done)?;
            }
        }
        Ok(meant)
    }

    /// Makes the directories among entries, if nothing has their names at the server. Returns the paths of those that are made.
    fn make_dirs_of(
        &mut self,
        entries: &[DirEntry],
        paths: &[Vec<u8>],
        before: &[Option<Facts>],
    ) -> HashSet<Vec<u8>> {
        let is_entered = |entry: &DirEntry| {
            let meta = entry.path().metadata();
            meta.is_ok_and(|meta| meta.is_dir() && !self.is_above(Some(&identity(&meta))))
        };
        let each = entries.iter().zip(paths).zip(before);
        let new = each.filter(|((entry, _), before)| before.is_none() && is_entered(entry));
        let mut new: Vec<_> = new.map(|((_, path), _)| path.clone()).collect();
        let at_once = self.session.questions();
        let made = self.session.try_each(|channel| channel.make_each(&new, at_once));
        // A directory that fails is made again by itself, which reports the error.
        let mut made = made.into_iter();
        new.retain(|_| matches!(made.next(), Some(Ok(()))));
        new.into_iter().collect()
    }

    /// The directory of the target, which is made if the user wants that.
    fn make_target(&mut self, to: &Remote) -> Result<Made> {
        match self.args.cd {
            true => self.session.ask(|channel| channel.make_dirs(&to.path)),
            false => Ok(Made::Before),
        }
    }

    /// Copies an entry of a directory. `before` is what has its name at the server. A directory is there if it is `made`.
    fn entry_up(
        &mut self,
        path: &Path,
        (mut there, made): (Remote, Option<Made>),
        before: Option<&Facts>,
    ) -> Result<()> {
        let shown = path.as_os_str().as_bytes();
        let meta = match path.metadata() {
            // As a link that leads nowhere or to itself.
            Err(error) if path.is_symlink() => {
                self.leave_out(shown, &format!("is a link that cannot be followed ({error})"));
                return Ok(());
            }
            looked => looked.at(path.display())?,
        };
        let unique = identity(&meta);
        if meta.is_dir() && self.is_above(Some(&unique)) {
            self.leave_out(shown, CIRCLE);
            return Ok(());
        }
        if meta.is_dir() {
            let made = match made {
                Some(made) => made,
                None => self.session.ask(|channel| channel.make_dir(&there.path))?,
            };
            there.path.push(b'/');
            let walk = |copy: &mut Self| copy.tree_up(path, (&there, made), None);
            return self.within(Some(unique), walk).map(drop);
        }
        if !meta.is_file() {
            self.leave_out(shown, ODD);
            return Ok(());
        }
        check_file(&there.path, before)?;
        self.session.show.count(|counts| {
            counts.total_files += 1;
            counts.total_bytes += meta.len();
        });
        let mode = before.and_then(mode_of);
        self.file_up((path, &meta), (&there, before, mode), Wanted::Whole, Of::Several)
    }

    /// Copies a file. `before` is what the server has told of its target, and `mode` that of a file that is replaced.
    fn file_up(
        &mut self,
        (from, meta): (&Path, &Metadata),
        (to, before, mode): (&Remote, Option<&Facts>, Option<u32>),
        wanted: Wanted,
        of: Of,
    ) -> Result<()> {
        let bytes = meta.len();
        if bytes == 0 && has_bytes(from) {
            return Err(ExitCode::WillFail.error(format!(
                "{} gives more bytes than its size says; copy what 'cat' makes of it",
                from.display()
            )));
        }
        let manner = self.manner();
        let full = std::path::absolute(from).unwrap_or_else(|_| from.to_owned());
        let names = (full.display().to_string(), to.to_string());
        let version = version_here(&meta.into());
        let (from, path, finished) = (from.to_owned(), to.path.clone(), self.finished.clone());
        let before_it = before.cloned();
        let up = Up {
            from,
            bytes,
            version,
            path,
            mode,
            before: before_it,
            finished,
            names,
            wanted,
            manner,
        };
        let is_there =
            |finished: &Arc<Finished>| before.is_some_and(|before| finished.has_there(&up, before));
        if self.finished.as_ref().is_some_and(is_there) {
            self.session.show.count(|counts| {
                counts.files += 1;
                counts.kept_bytes += bytes;
            });
            return Ok(());
        }
        self.carry_out(File::Up(up), of)
    }
}

/// What tells a file of this machine from all others.
fn identity(meta: &Metadata) -> String {
    format!("{} {}", meta.dev(), meta.ino())
}

/// Whether reading a file gives bytes, as files of /proc do that are told to be empty. A file that cannot be read has none
/// here: it is told when it is sent.
fn has_bytes(path: &Path) -> bool {
    Opened::open(path).is_ok_and(|mut file| file.read(&mut [0]).is_ok_and(|length| length > 0))
}
