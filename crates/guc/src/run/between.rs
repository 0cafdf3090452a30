//! Copies between two servers.

use super::{CIRCLE, Copy, DEPTH_MAX, ODD, Of};
use crate::download::Wanted;
use crate::glob::Pattern;
use crate::outcome::{lasting, part_of_several};
use crate::several::{Between, File};
use crate::there::{GROUP, check_file, meant, mode_of};
use crate::third::Sink;
use crate::upload::split;
use crate::url::Remote;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_fs::{Name, Shown};
use hikyaku_gridftp::{Facts, Kind, Listed, Made, Server};

/// A directory of the sending server, and where its contents go.
struct Folder<'a> {
    /// Both with a slash at their end.
    from: &'a [u8],
    to: &'a [u8],
    /// Whether `to` is new.
    made: Made,
    depth: usize,
    /// Which entries are meant; `None`: all of them.
    only: Option<&'a Pattern>,
}

/// The name of an entry; empty if it cannot be used, which is told when the entry is copied.
// fuzz: none, `ftp_replies` has read it
fn name(entry: &Listed) -> &[u8] {
    entry.name.as_ref().map_or(&[], Name::as_bytes)
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
        let made = match self.args.cd {
            true => sink.ask(|channel| channel.make_dirs(to))?,
            false => Made::Before,
        };
        let path = match &pattern {
            None => from.path.as_slice(),
            Some(pattern) if pattern.folder.is_empty() => b"./",
            Some(pattern) => pattern.folder.as_slice(),
        };
        let folder = Folder { from: path, to, made, depth: 0, only: pattern.as_ref() };
        let facts = self.session.ask(|channel| channel.facts(path))?;
        let unique = facts.and_then(|facts| facts.unique);
        let meant = self.within(unique, |copy| copy.tree_between(sink, &folder))?;
        if meant == 0 && pattern.is_some() {
            bail!(lasting(format!("{from}: no such file")));
        }
        self.session.show.count(|counts| counts.is_counted = true);
        Ok(())
    }

    fn one_between(&mut self, from: &Remote, sink: &Sink<'_>, to: &[u8]) -> Result<()> {
        let folder = split(to).0;
        if self.args.cd && !folder.is_empty() {
            sink.ask(|channel| channel.make_dirs(folder))?;
        }
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
        self.file_between((&from.path, facts), (&to, mode), Of::One)
    }

    /// Returns the number of entries that are meant.
    fn tree_between(&mut self, sink: &Sink<'_>, folder: &Folder<'_>) -> Result<usize> {
        ensure!(
            folder.depth < DEPTH_MAX,
            "{}: the server has more than {DEPTH_MAX} directories in each other",
            Shown::new(folder.from)
        );
        let mut entries = self.session.ask(|channel| channel.list(folder.from))?;
        if let Some(pattern) = folder.only {
            let is_recursive = self.args.recurse;
            entries.retain(|entry| {
                let has_kind = is_recursive || entry.facts.kind != Kind::Directory;
                has_kind && entry.name.as_ref().is_ok_and(|name| pattern.matches(name.as_bytes()))
            });
        }
        let files = entries.iter().filter(|entry| entry.facts.kind == Kind::File);
        let sizes = files.clone().filter_map(|entry| entry.facts.size);
        let (count, bytes) = (files.count() as u64, sizes.fold(0, u64::saturating_add));
        self.session.show.count(|counts| {
            counts.total_files += count;
            counts.total_bytes = counts.total_bytes.saturating_add(bytes);
        });
        let meant = entries.len();
        let (mut entries, at_once) = (entries.into_iter(), self.session.questions());
        loop {
            let some: Vec<Listed> = entries.by_ref().take(GROUP).collect();
            if some.is_empty() {
                break;
            }
            let paths = some.iter().map(|entry| [folder.to, name(entry)].concat());
            let paths: Vec<Vec<u8>> = paths.collect();
            let before = match folder.made {
                Made::New => vec![None; paths.len()],
                Made::Before => sink.ask(|channel| channel.facts_of_each(&paths, at_once))?,
            };
            for (entry, before) in some.into_iter().zip(before) {
                let done = self.entry_between(sink, folder, (entry, before.as_ref()));
                self.after(done)?;
            }
        }
        Ok(meant)
    }

    fn entry_between(
        &mut self,
        sink: &Sink<'_>,
        folder: &Folder<'_>,
        (entry, before): (Listed, Option<&Facts>),
    ) -> Result<()> {
        let name = entry.name.context("the server tells a name that cannot be used")?;
        let from = [folder.from, name.as_bytes()].concat();
        let to = [folder.to, name.as_bytes()].concat();
        match entry.facts.kind {
            Kind::Directory if self.is_above(entry.facts.unique.as_ref()) => {
                self.leave_out(&from, CIRCLE);
                Ok(())
            }
            Kind::Directory if sink.is(self.session.server()) && is_below(&to, &from) => {
                self.leave_out(&from, "would be copied into itself");
                Ok(())
            }
            Kind::Directory => {
                let made = sink.ask(|channel| channel.make_dir(&to))?;
                let (from, to) = ([&from, &b"/"[..]].concat(), [&to, &b"/"[..]].concat());
                let depth = folder.depth + 1;
                let folder = Folder { from: &from, to: &to, made, depth, only: None };
                let unique = entry.facts.unique;
                self.within(unique, |copy| copy.tree_between(sink, &folder)).map(drop)
            }
            Kind::File => {
                check_file(&to, before)?;
                let mode = before.and_then(mode_of);
                self.file_between((&from, entry.facts), (&to, mode), Of::Several)
            }
            Kind::Listed | Kind::Link | Kind::Other => {
                self.leave_out(&from, ODD);
                Ok(())
            }
        }
    }

    fn file_between(
        &mut self,
        (from, facts): (&[u8], Facts),
        (to, mode): (&[u8], Option<u32>),
        of: Of,
    ) -> Result<()> {
        let (wanted, manner) = (self.wanted(), self.manner());
        let Some(sink) = self.sink else { return Ok(()) };
        let name = |server: &Server, path: &[u8]| {
            Remote { server: server.clone(), path: path.to_owned() }.to_string()
        };
        let names = (name(self.session.server(), from), name(sink.server(), to));
        let (from, to) = (from.to_owned(), to.to_owned());
        let file = Between { from, facts, to, mode, names, wanted, manner };
        self.carry_out(File::Between(file), of)
    }
}
