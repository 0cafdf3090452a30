//! Copies from a server.

use super::{CIRCLE, Copy, ODD, Of};
use crate::download::{Wanted, discard};
use crate::glob::Pattern;
use crate::local::directory;
use crate::outcome::{lasting, part_of_several};
use crate::several::{Down, File};
use crate::upload::split;
use crate::url::Remote;
use crate::walk::{Seen, walk};
use anyhow::{Context, Result, bail};
use hikyaku_console::misuse;
use hikyaku_fs::{Dir, FilePlace, PeerPath};
use hikyaku_gridftp::Kind;
use hikyaku_store::StorePath;
use hikyaku_store_ftp::{Enter, Item};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A directory of the server, and the local directory for its contents.
struct Tree<'a> {
    /// With a slash at its end.
    path: &'a [u8],
    dir: &'a Arc<Dir>,
    /// The path of `dir` for messages and journals.
    shown: &'a Path,
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
            if self.args.cd {
                std::fs::create_dir_all(to)
                    .with_context(|| format!("cannot make {}", to.display()))?;
            }
            let dir = Arc::new(Dir::open(to)?);
            let tree = Tree { path: &from.path, dir: &dir, shown: to, only: None };
            self.tree_down(from, &tree)?;
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
        let tree = Tree { path, dir: &dir, shown: to, only: Some(pattern) };
        if self.tree_down(from, &tree)? == 0 {
            bail!(lasting(format!("{from}: no such file")));
        }
        self.session.show.count(|counts| counts.is_counted = true);
        Ok(())
    }

    /// Copies a directory of the server. Only names that pass `Name` reach the file system. Returns the number of its
    /// entries that are copied.
    fn tree_down(&mut self, from: &Remote, tree: &Tree<'_>) -> Result<usize> {
        let mut top = 0;
        walk(
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
                let dir = match is_top {
                    true => Arc::clone(tree.dir),
                    false => match tree.dir.dir(&PeerPath::new(below.as_bytes())?) {
                        Ok(dir) => Arc::new(dir),
                        Err(error) => {
                            entries.into_iter().for_each(|entry| entry.enter = Enter::No);
                            return copy.after(Err(error.into()));
                        }
                    },
                };
                top += if is_top { entries.len() } else { 0 };
                for entry in entries {
                    let done = copy.entry_down(from, tree, &dir, entry);
                    if done.is_err() {
                        entry.enter = Enter::No;
                    }
                    copy.after(done)?;
                }
                Ok(())
            },
        )?;
        Ok(top)
    }

    fn entry_down(
        &mut self,
        from: &Remote,
        tree: &Tree<'_>,
        dir: &Arc<Dir>,
        Item { name, path, facts, enter }: &Item,
    ) -> Result<()> {
        let shown = tree.shown.join(OsStr::from_bytes(path.as_bytes()));
        let path = [tree.path, path.as_bytes()].concat();
        match facts.kind {
            Kind::Directory if *enter == Enter::Circle => {
                self.leave_out(&path, CIRCLE);
                Ok(())
            }
            Kind::Directory => directory(dir, name).map(drop),
            Kind::File => {
                let remote = Remote { path: path.clone(), ..from.clone() };
                let names = (remote.to_string(), shown.display().to_string());
                let spot = FilePlace { dir: Arc::clone(dir), name: name.clone() };
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
