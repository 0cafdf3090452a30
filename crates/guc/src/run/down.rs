//! Copies from a server.

use super::{CIRCLE, Copy, DEPTH_MAX, ODD, Of};
use crate::download::{Wanted, discard};
use crate::glob::Pattern;
use crate::local::directory;
use crate::outcome::{lasting, part_of_several};
use crate::several::{Down, File};
use crate::upload::split;
use crate::url::Remote;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_console::misuse;
use hikyaku_fs::{Dir, FilePlace, Name, Shown};
use hikyaku_gridftp::{Facts, Kind, Listed};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A directory of the server, and where its contents go.
struct Folder<'a> {
    /// With a slash at its end.
    path: &'a [u8],
    dir: &'a Arc<Dir>,
    /// The path of `dir` for messages and journals.
    shown: &'a Path,
    depth: usize,
    /// Which entries are meant; `None`: all of them.
    only: Option<&'a Pattern>,
}

impl Copy<'_> {
    pub(super) fn down(&mut self, from: &Remote, to: &Path) -> Result<()> {
        let is_there = || Ok(self.session.ask(|channel| channel.facts(&from.path))?.is_some());
        if let Some(pattern) = Pattern::parse(&from.path, is_there)? {
            return self.matches_down(from, &pattern, to);
        }
        if from.path.ends_with(b"/") {
            self.check_directory(to.as_os_str().as_bytes().ends_with(b"/"))?;
            if self.args.cd {
                std::fs::create_dir_all(to)
                    .with_context(|| format!("cannot make {}", to.display()))?;
            }
            let dir = Arc::new(Dir::open(to)?);
            let folder = Folder { path: &from.path, dir: &dir, shown: to, depth: 0, only: None };
            self.root_down(from, &folder)?;
            self.session.show.count(|counts| counts.is_counted = true);
            return Ok(());
        }
        let to = match to.is_dir() || to.as_os_str().as_bytes().ends_with(b"/") {
            true => to.join(OsStr::from_bytes(split(&from.path).1)),
            false => to.to_owned(),
        };
        if let Some(dir) = to.parent().filter(|_| self.args.cd) {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot make {}", dir.display()))?;
        }
        let facts = self.session.ask(|channel| channel.facts(&from.path))?;
        let facts = facts.ok_or_else(|| lasting(format!("{from}: no such file")))?;
        let wanted = self.wanted();
        let range = wanted.range(facts.size.unwrap_or(0));
        self.session.show.count(|counts| {
            counts.total_files = 1;
            counts.total_bytes = range.end - range.start;
            counts.is_counted = true;
        });
        if to == Path::new("/dev/null") {
            if self.args.cksm.is_some() {
                bail!(misuse("-cksm compares a copy, and /dev/null keeps none", "leave it out"));
            }
            discard(&mut self.session, &from.path, range)?;
            self.count_file();
            return Ok(());
        }
        let names = (from.to_string(), to.display().to_string());
        let (path, spot) = (from.path.clone(), FilePlace::of(&to)?);
        self.carry_out(
            File::Down(Down { path, facts, spot, finished: None, names, wanted }),
            Of::One,
        )
    }

    /// Copies what a pattern means in a directory of the server.
    fn matches_down(&mut self, from: &Remote, pattern: &Pattern, to: &Path) -> Result<()> {
        if self.args.cd {
            std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
        }
        if !to.is_dir() {
            bail!(lasting(format!("a pattern needs a directory, which {} is not", to.display())));
        }
        if self.wanted() != Wanted::Whole {
            bail!(part_of_several());
        }
        let dir = Arc::new(Dir::open(to)?);
        let path = if pattern.folder.is_empty() { b"./" } else { pattern.folder.as_slice() };
        let folder = Folder { path, dir: &dir, shown: to, depth: 0, only: Some(pattern) };
        if self.root_down(from, &folder)? == 0 {
            bail!(lasting(format!("{from}: no such file")));
        }
        self.session.show.count(|counts| counts.is_counted = true);
        Ok(())
    }

    fn root_down(&mut self, from: &Remote, folder: &Folder<'_>) -> Result<usize> {
        let facts = self.session.ask(|channel| channel.facts(folder.path))?;
        let unique = facts.and_then(|facts| facts.unique);
        self.within(unique, |copy| copy.tree_down(from, folder))
    }

    /// Copies a directory of the server. Only names that pass `Name` reach the file system. Returns the number of its
    /// entries that are meant.
    fn tree_down(&mut self, from: &Remote, folder: &Folder<'_>) -> Result<usize> {
        ensure!(
            folder.depth < DEPTH_MAX,
            "{}: the server has more than {DEPTH_MAX} directories in each other",
            Shown::new(folder.path)
        );
        let mut entries = self.session.ask(|channel| channel.list(folder.path))?;
        if let Some(pattern) = folder.only {
            let is_recursive = self.args.recurse;
            let is_meant = |entry: &Listed| {
                let has_kind = is_recursive || entry.facts.kind != Kind::Directory;
                has_kind && entry.name.as_ref().is_ok_and(|name| pattern.matches(name.as_bytes()))
            };
            entries.retain(is_meant);
        }
        let meant = entries.len();
        let files = entries.iter().filter(|entry| entry.facts.kind == Kind::File);
        let bytes: u64 =
            files.clone().filter_map(|entry| entry.facts.size).fold(0, u64::saturating_add);
        let count = files.count() as u64;
        self.session.show.count(|counts| {
            counts.total_files += count;
            counts.total_bytes = counts.total_bytes.saturating_add(bytes);
        });
        for entry in entries {
            let done = match entry.name {
                Ok(name) => self.entry_down(from, folder, &name, &entry.facts),
                Err(error) => Err(error).context("the server tells a name that cannot be used"),
            };
            self.after(done)?;
        }
        Ok(meant)
    }

    fn entry_down(
        &mut self,
        from: &Remote,
        folder: &Folder<'_>,
        name: &Name,
        facts: &Facts,
    ) -> Result<()> {
        let path = [folder.path, name.as_bytes()].concat();
        let shown = folder.shown.join(name.as_os_str());
        match facts.kind {
            Kind::Directory if self.is_above(facts.unique.as_ref()) => {
                self.leave_out(&path, CIRCLE);
                Ok(())
            }
            Kind::Directory => {
                let dir = Arc::new(directory(folder.dir, name)?);
                let path = [&path, &b"/"[..]].concat();
                let depth = folder.depth + 1;
                let folder = Folder { path: &path, dir: &dir, shown: &shown, depth, only: None };
                self.within(facts.unique.clone(), |copy| copy.tree_down(from, &folder)).map(drop)
            }
            Kind::File => {
                let remote = Remote { path: path.clone(), ..from.clone() };
                let names = (remote.to_string(), shown.display().to_string());
                let spot = FilePlace { dir: Arc::clone(folder.dir), name: name.clone() };
                let (facts, wanted) = (facts.clone(), Wanted::Whole);
                let finished = self.finished.clone();
                let down = Down { path, facts, spot, finished, names, wanted };
                if self.finished.as_ref().is_some_and(|finished| finished.has(&down)) {
                    let bytes = down.facts.size.unwrap_or(0);
                    self.session.show.count(|counts| {
                        counts.files += 1;
                        counts.kept_bytes += bytes;
                    });
                    return Ok(());
                }
                self.carry_out(File::Down(down), Of::Several)
            }
            Kind::Listed | Kind::Link | Kind::Other => {
                self.leave_out(&path, ODD);
                Ok(())
            }
        }
    }
}
