//! Copies between two servers.

use super::{CIRCLE, Copy, ODD, Of};
use crate::glob::Pattern;
use crate::outcome::{lasting, part_of_several};
use crate::part::Wanted;
use crate::paths::split;
use crate::several::Between;
use crate::there::{GROUP, check_file, meant, mode_of};
use crate::third::Sink;
use crate::url::Remote;
use crate::walk::{Seen, walk};
use anyhow::{Result, bail};
use hikyaku_fs::Shown;
use hikyaku_gridftp::{Facts, Kind, Made, Server};
use hikyaku_store::StorePath;
use hikyaku_store_ftp::{Enter, Item};
use std::collections::HashSet;

/// A directory of the sending server, and the one for its contents.
struct Tree<'a> {
    /// Both with a slash at their end.
    from: &'a [u8],
    to: &'a [u8],
    /// Whether `to` is new.
    made: Made,
    /// Which entries are copied; `None`: all of them.
    only: Option<&'a Pattern>,
}

/// A server that writes a file while it reads it would destroy it, and a directory that is copied into itself has no end.
// fuzz: none, the user's own words
fn check_apart(from: &Remote, sink: &Sink<'_>, to: &[u8]) -> Result<()> {
    if !sink.is(&from.server) {
        return Ok(());
    }
    if names(&from.path).eq(names(to)) {
        bail!(lasting(format!("{from}: the source is the target")));
    }
    match from.path.ends_with(b"/") && is_below(to, &from.path) {
        true => bail!(lasting(format!("{from}: a directory is not copied into itself"))),
        false => Ok(()),
    }
}

/// Whether a path leads to what is below a directory, or to that directory.
// fuzz: none, the user's own words
fn is_below(path: &[u8], dir: &[u8]) -> bool {
    let mut path = names(path);
    names(dir).all(|name| path.next() == Some(name))
}

/// The names in a path.
// fuzz: none, the user's own words
fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."))
}

impl Copy<'_> {
    /// Copies a file, a directory or what a pattern means to the path `to` of the other server.
    pub(super) fn between(&mut self, from: &Remote, to: &[u8]) -> Result<()> {
        let Some(sink) = self.sink else { return Ok(()) };
        let is_there = || Ok(self.session.ask(|channel| channel.facts(&from.path))?.is_some());
        let pattern = Pattern::parse(&from.path, is_there)?;
        check_apart(from, sink, to)?;
        if pattern.is_none() && !from.path.ends_with(b"/") {
            return self.one_between(from, sink, to);
        }
        match &pattern {
            None => self.check_directory(to.ends_with(b"/"))?,
            Some(_) if !to.ends_with(b"/") => {
                bail!(lasting("a pattern needs a target that ends in a slash"))
            }
            Some(_) if self.wanted() != Wanted::Whole => {
                bail!(part_of_several())
            }
            Some(_) => {}
        }
        let made = match self.makes_dirs() {
            true => sink.ask(|channel| channel.make_dirs(to))?,
            false => Made::Before,
        };
        self.check_target_dir(sink, to)?;
        let path = match &pattern {
            None => from.path.as_slice(),
            Some(pattern) if pattern.folder.is_empty() => b"./",
            Some(pattern) => pattern.folder.as_slice(),
        };
        let tree = Tree { from: path, to, made, only: pattern.as_ref() };
        let meant = self.tree_between(sink, &tree)?;
        if meant == 0 && pattern.is_some() {
            bail!(lasting(format!("{from}: no such file")));
        }
        self.session.show.count(|counts| counts.is_counted = true);
        Ok(())
    }

    /// Refuses a target in a missing directory, in a dry run.
    // fuzz: none, the user's own words
    fn check_target_dir(&self, sink: &Sink<'_>, dir: &[u8]) -> Result<()> {
        let is_checked = self.args.dry_run && !self.args.cd && !dir.is_empty();
        if is_checked && sink.ask(|channel| channel.facts(dir))?.is_none() {
            bail!(lasting(format!("{}: no such directory", Shown::new(dir))));
        }
        Ok(())
    }

    fn one_between(&mut self, from: &Remote, sink: &Sink<'_>, to: &[u8]) -> Result<()> {
        let folder = split(to).0;
        if self.makes_dirs() && !folder.is_empty() {
            sink.ask(|channel| channel.make_dirs(folder))?;
        }
        self.check_target_dir(sink, folder)?;
        let facts = self.session.ask(|channel| channel.facts(&from.path))?;
        let facts = facts.ok_or_else(|| lasting(format!("{from}: no such file")))?;
        let range = self.wanted().range(facts.size.unwrap_or(0));
        self.session.show.count(|counts| {
            counts.total_files = 1;
            counts.total_bytes = range.end - range.start;
            counts.is_counted = true;
        });
        let look = |path: &[u8]| Ok(sink.ask(|channel| channel.facts(path))?);
        let (to, mode) = meant(to, split(&from.path).1, look)?;
        check_apart(from, sink, &to)?;
        self.file_between((&from.path, facts), (&to, mode, None), Of::One)
    }

    /// Copies a directory. Returns the number of its entries that are copied.
    fn tree_between(&mut self, sink: &Sink<'_>, tree: &Tree<'_>) -> Result<usize> {
        let (mut top, mut new_dirs) = (0, HashSet::new());
        if tree.made == Made::New {
            new_dirs.insert(StorePath::ROOT);
        }
        walk(
            self,
            |copy| &mut copy.session,
            tree.from,
            |copy, below, seen| {
                let is_top = *below == StorePath::ROOT;
                let mut entries = match seen {
                    Seen::Entries(entries) => copy.meant(entries, tree.only.filter(|_| is_top)),
                    Seen::Failed(error) if is_top => return Err(error),
                    Seen::Failed(error) => return copy.after(Err(error)),
                };
                top += if is_top { entries.len() } else { 0 };
                let is_new = new_dirs.remove(below);
                let at_once = copy.session.questions();
                for some in entries.chunks_mut(GROUP) {
                    let to = |entry: &&mut Item| [tree.to, entry.path.as_bytes()].concat();
                    let paths: Vec<_> = some.iter().map(to).collect();
                    let before = match is_new {
                        true => vec![None; paths.len()],
                        false => sink.ask(|channel| channel.facts_of_each(&paths, at_once))?,
                    };
                    for ((entry, to), before) in some.iter_mut().zip(paths).zip(before) {
                        let made = copy.entry_between((sink, tree), entry, (&to, before.as_ref()));
                        match &made {
                            Ok(Some(Made::New)) => drop(new_dirs.insert(entry.path.clone())),
                            Ok(_) => {}
                            Err(_) => entry.enter = Enter::No,
                        }
                        copy.after(made.map(drop))?;
                    }
                }
                Ok(())
            },
        )?;
        Ok(top)
    }

    /// Copies an entry. Returns whether its directory is new, if it is one that is entered.
    fn entry_between(
        &mut self,
        (sink, tree): (&Sink<'_>, &Tree<'_>),
        entry: &mut Item,
        (to, before): (&[u8], Option<&Facts>),
    ) -> Result<Option<Made>> {
        let from = [tree.from, entry.path.as_bytes()].concat();
        match entry.facts.kind {
            Kind::Directory if entry.enter == Enter::Circle => self.leave_out(&from, CIRCLE),
            Kind::Directory if sink.is(self.session.server()) && is_below(to, &from) => {
                entry.enter = Enter::No;
                self.leave_out(&from, "would be copied into itself");
            }
            Kind::Directory if self.args.dry_run => return Ok(Some(Made::Before)),
            Kind::Directory => return Ok(Some(sink.ask(|channel| channel.make_dir(to))?)),
            Kind::File => {
                check_file(to, before)?;
                let mode = before.and_then(mode_of);
                let facts = entry.facts.clone();
                self.file_between((&from, facts), (to, mode, before), Of::Several)?;
            }
            Kind::Listed | Kind::Link | Kind::Other => self.leave_out(&from, ODD),
        }
        Ok(None)
    }

    fn file_between(
        &mut self,
        (from, facts): (&[u8], Facts),
        (to, mode, before): (&[u8], Option<u32>, Option<&Facts>),
        of: Of,
    ) -> Result<()> {
        let (wanted, manner) = (self.wanted(), self.manner());
        let Some(sink) = self.sink else { return Ok(()) };
        let name = |server: &Server, path: &[u8]| {
            Remote { server: server.clone(), path: path.to_owned() }.to_string()
        };
        let names = (name(self.session.server(), from), name(sink.server(), to));
        let (from, to, before) = (from.to_owned(), to.to_owned(), before.cloned());
        let file = Between { from, facts, to, mode, before, names, wanted, manner };
        self.carry_out(file, of)
    }
}
