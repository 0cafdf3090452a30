//! Copies from a server.

use super::{CIRCLE, Copy, ODD};
use crate::fetching::{Ended, Fetching, add_dir, add_file, new_plan};
use crate::glob::Pattern;
use crate::outcome::{lasting, part_of_several};
use crate::part::{Wanted, discard, part};
use crate::paths::split;
use crate::url::Remote;
use crate::walk::{Seen, walk};
use anyhow::{Context, Result, bail};
use hikyaku_console::{At, misuse};
use hikyaku_fs::{FilePlace, Name, PeerPath};
use hikyaku_gridftp::{Facts, Kind};
use hikyaku_mover::Plan;
use hikyaku_store::StorePath;
use hikyaku_store_ftp::{Enter, Ftp, Item};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A directory of the server, and the local directory for its contents.
struct Tree<'a> {
    /// With a slash at its end.
    path: &'a [u8],
    to: &'a Path,
    /// Which entries are copied; `None`: all of them.
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
            self.make_here(Some(to))?;
            let tree = Tree { path: &from.path, to, only: None };
            return self.tree_down(from, &tree).map(drop);
        }
        let to = match to.is_dir() || to.as_os_str().as_bytes().ends_with(b"/") {
            true => to.join(OsStr::from_bytes(split(&from.path).1)),
            false => to.to_owned(),
        };
        self.make_here(to.parent())?;
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
            if self.args.dry_run {
                self.would(to.as_os_str().as_bytes());
                return Ok(());
            }
            discard(&mut self.session, &from.path, range)?;
            self.count_file();
            return Ok(());
        }
        if self.is_in_missing_dir(&to) {
            self.would(to.as_os_str().as_bytes());
            return Ok(());
        }
        let place = FilePlace::of(&to)?;
        match wanted {
            Wanted::Part { .. } if self.args.dry_run => {
                self.would(to.as_os_str().as_bytes());
                Ok(())
            }
            Wanted::Part { .. } => {
                part(&mut self.session, (&from.path, &facts), &place, wanted)
                    .with_context(|| from.to_string())?;
                self.count_file();
                Ok(())
            }
            Wanted::Whole => self.file_down((from, &facts), (&to, &place.name)),
        }
    }

    /// Makes a directory of this machine, if the user wants that.
    fn make_here(&self, dir: Option<&Path>) -> Result<()> {
        let Some(dir) = dir.filter(|_| self.makes_dirs()) else { return Ok(()) };
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))
    }

    /// Whether a path is in a directory that is missing in a dry run.
    fn is_in_missing_dir(&self, path: &Path) -> bool {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.args.cd && self.args.dry_run && dir.is_some_and(|dir| !dir.exists())
    }

    /// Copies a file to a path of this machine, whose last name is this one.
    fn file_down(
        &mut self,
        (from, facts): (&Remote, &Facts),
        (to, name): (&Path, &Name),
    ) -> Result<()> {
        if facts.kind != Kind::File {
            bail!(lasting(format!("{from}: is not a file")));
        }
        if self.args.sync && self.is_current_here((&from.path, facts), to)? {
            self.count_current(facts.size.unwrap_or(0));
            return Ok(());
        }
        let (folder, source) = split(&from.path);
        let folder = if folder.is_empty() { b"./" } else { folder };
        let (path, mut plan) = (StorePath::new(source)?, new_plan());
        let target = StorePath::from(PeerPath::from(name.clone()));
        add_file(&mut plan, (&path, target), facts).with_context(|| from.to_string())?;
        // A file behind a link is meant, and not the link.
        let to = if to.is_symlink() { fs::canonicalize(to).at(to.display())? } else { to.into() };
        let dir = to.parent().unwrap_or_else(|| Path::new("/"));
        let ftp = self.session.store_of(folder, facts)?;
        self.fetch(&ftp, (from, folder), &mut plan, (dir, Some(name.as_bytes())))
    }

    /// Copies what a pattern means in a directory of the server.
    fn matches_down(&mut self, from: &Remote, pattern: &Pattern, to: &Path) -> Result<()> {
        self.make_here(Some(to))?;
        if !to.is_dir() && !self.is_in_missing_dir(&to.join("name")) {
            bail!(lasting(format!("a pattern needs a directory, which {} is not", to.display())));
        }
        if self.wanted() != Wanted::Whole {
            bail!(part_of_several());
        }
        let path = if pattern.folder.is_empty() { b"./" } else { pattern.folder.as_slice() };
        let tree = Tree { path, to, only: Some(pattern) };
        if self.tree_down(from, &tree)? == 0 {
            bail!(lasting(format!("{from}: no such file")));
        }
        Ok(())
    }

    /// Copies a directory of the server. Returns the number of its entries that are copied.
    fn tree_down(&mut self, from: &Remote, tree: &Tree<'_>) -> Result<usize> {
        let (mut top, mut plan) = (0, new_plan());
        let ftp = walk(
            self,
            |copy| &mut copy.session,
            tree.path,
            |copy, below, seen| {
                let is_top = *below == StorePath::ROOT;
                let entries = match seen {
                    Seen::Entries(entries) => copy.meant(entries, tree.only.filter(|_| is_top)),
                    Seen::Failed(error) if is_top => return Err(error),
                    Seen::Failed(error) => return copy.after(Err(error)),
                };
                top += if is_top { entries.len() } else { 0 };
                for entry in entries {
                    let done = copy.entry_down((from, tree), entry, &mut plan);
                    copy.after(done)?;
                }
                Ok(())
            },
        )?;
        self.session.show.count(|counts| counts.is_counted = true);
        if top > 0 {
            self.session.return_to(&ftp);
            self.fetch(&ftp, (from, tree.path), &mut plan, (tree.to, None))?;
        }
        Ok(top)
    }

    /// Adds an entry to the plan.
    fn entry_down(
        &mut self,
        (from, tree): (&Remote, &Tree<'_>),
        Item { path, facts, enter, .. }: &Item,
        plan: &mut Plan,
    ) -> Result<()> {
        let full = [tree.path, path.as_bytes()].concat();
        match facts.kind {
            Kind::Directory if *enter == Enter::Circle => self.leave_out(&full, CIRCLE),
            Kind::Directory => add_dir(plan, path.clone()),
            Kind::File => {
                let to = tree.to.join(OsStr::from_bytes(path.as_bytes()));
                let remote = || Remote { path: full.clone(), ..from.clone() }.to_string();
                if self.args.sync
                    && self.is_current_here((&full, facts), &to).with_context(remote)?
                {
                    self.count_current(facts.size.unwrap_or(0));
                    return Ok(());
                }
                add_file(plan, (path, path.clone()), facts).with_context(remote)?;
            }
            Kind::Listed | Kind::Link | Kind::Other => self.leave_out(&full, ODD),
        }
        Ok(())
    }

    /// Fetches the files of a plan, whose paths are those below the directory `root` of the server.
    fn fetch(
        &mut self,
        ftp: &Ftp,
        (from, root): (&Remote, &[u8]),
        plan: &mut Plan,
        to: (&Path, Option<&[u8]>),
    ) -> Result<()> {
        if to.1.is_none() && self.is_in_missing_dir(&to.0.join("name")) {
            for file in &plan.files {
                self.would(to.0.join(OsStr::from_bytes(file.to.as_bytes())).as_os_str().as_bytes());
            }
            self.session.borrow_from(ftp);
            return Ok(());
        }
        plan.is_from(self.args.cc as usize);
        let fetching = Fetching {
            args: self.args,
            ftp,
            server: &from.server,
            plan,
            to,
            source: &from.to_string(),
            parts: self.session.parts(),
            show: &self.show,
            scope: self.scope,
            stop: self.session.stop(),
        };
        let ended = fetching.run();
        self.session.borrow_from(ftp);
        let (Ended { record, stopped, would }, failed) = ended?;
        self.record = record;
        for path in would {
            self.would(to.0.join(OsStr::from_bytes(&path)).as_os_str().as_bytes());
        }
        if let Some(kept) = stopped {
            return Err(kept.into());
        }
        for (path, error) in failed {
            let error = match path {
                Some(path) => {
                    let path = [root, &path].concat();
                    error.context(Remote { path, ..from.clone() }.to_string())
                }
                None => error,
            };
            self.after(Err(error))?;
        }
        Ok(())
    }
}
