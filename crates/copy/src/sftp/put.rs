//! From this machine to the server.

use super::fault::{Trouble, here, second, there};
use super::file::{Limit, is_draft, times};
use super::links::link_there;
use super::present::Present;
use super::remote::{join, resolved};
use super::small::{Small, upload_together};
use super::upload::{Upload, rehearse_upload, upload};
use super::{Run, crew};
use crate::engine::{Choice, End};
use crate::interrupt::of_new_tree;
use crate::outcome::failed;
use anyhow::Result;
use hikyaku_fs::Shown;
use hikyaku_sftp::{Attributes, Failed, Kind, Request, Ticket};
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Directories within each other: a link that leads upwards would have no end.
const DEPTH_MAX: usize = 200;

/// Copies them.
pub(super) fn put(run: &Run<'_>, sources: &[PathBuf], target: &[u8]) -> Result<()> {
    let target = resolved(target)?;
    let client = &run.server.client;
    let into = match client.attributes(&Request::Stat(&target)) {
        Ok(found) if found.kind() == Some(Kind::Dir) => true,
        Ok(_) => false,
        Err(error) if error.is_absent() => false,
        Err(error) => return Err(end_of(there(&target)(error))),
    };
    let is_several = sources.len() > 1 || run.options.several;
    if !into && (is_several || target.ends_with(b"/")) {
        let text = format!("{}: no such directory there", Shown::new(&target));
        return Err(failed(FailureKind::NotDirectory, text));
    }
    // A link that was named is kept: the file that it leads to is replaced.
    let target = match client.attributes(&Request::LStat(&target)) {
        Ok(found) if found.kind() == Some(Kind::Link) && !into => {
            let leads_to = client.name(&Request::RealPath(&target));
            leads_to.map_err(|error| end_of(there(&target)(error)))?
        }
        _ => target,
    };
    let (limit, present) = (Limit::new(run.options.limit), Present::default());
    let choice = Choice::new(&run.options.patterns)?;
    let parents = BTreeSet::new();
    let (directories, made, small) = (Vec::new(), Vec::new(), Small::new());
    let mut walk = Walk { run, choice, directories, made, parents, small };
    let is_listed = !run.options.files.is_empty();
    if is_listed && !into && !run.options.rehearsal {
        walk.make(&target, 0o777);
    }
    let copied = crew::run(
        run,
        |jobs| {
            let mut names = BTreeSet::new();
            for source in sources.iter().filter(|_| is_listed) {
                for file in &run.options.files {
                    let added = walk.listed(source, (&target, file), jobs);
                    walk.told(added)?;
                }
            }
            for source in sources.iter().filter(|_| !is_listed) {
                let to = match name_of(source).filter(|_| into) {
                    Some(name) => join(&target, name),
                    None => target.clone(),
                };
                // Contents of directories are merged; two sources of one name are not.
                let is_new = name_of(source).is_none_or(|name| names.insert(name));
                let added = match is_new {
                    true => walk.source(source, to, jobs),
                    false => Err(second(End::Here, source.as_os_str().as_bytes())),
                };
                walk.told(added)?;
            }
            run.meter.set_counted();
            jobs.add(Job::Files(walk.small.rest()))
        },
        |job| match job {
            Job::File(file) if run.options.rehearsal => rehearse_upload(run, &file),
            Job::File(file) => upload(run, &limit, &file),
            Job::Files(files) => upload_together(run, (&limit, &present), &files),
            Job::Link { from, to } => link_there(run, &from, &to),
        },
    );
    // What is complete gets its name, also if the user has ended the copy.
    let settled = run.settling.map_or(Ok(()), |settling| settling.rest(run));
    let is_named = !is_listed && sources.iter().any(|source| name_of(source).is_some());
    let is_new_tree = !into && is_named && !walk.directories.is_empty();
    let copied = copied.and_then(|()| settled.map_err(end_of));
    copied.map_err(|error| of_new_tree(error, is_new_tree))?;
    walk.finish()
}

/// The name that a source gets in a directory; `None` if its contents are meant.
fn name_of(source: &Path) -> Option<&[u8]> {
    let is_contents = source.as_os_str().as_bytes().ends_with(b"/.");
    match source.components().next_back() {
        Some(Component::Normal(name)) if !is_contents => Some(name.as_bytes()),
        _ => None,
    }
}

/// What ends the copy, as the caller takes it.
fn end_of(trouble: Trouble) -> anyhow::Error {
    match trouble {
        Trouble::End(error) => error,
        Trouble::File(_, failure) => {
            failed(failure.kind, format!("{}: {}", Shown::new(&failure.place), failure.text))
        }
        Trouble::Stopped => crate::interrupt::Interrupted::Anew.into(),
    }
}

/// What was found.
enum Job {
    File(Upload),
    Files(Vec<Upload>),
    Link { from: PathBuf, to: Vec<u8> },
}

/// Finds the files.
struct Walk<'a> {
    run: &'a Run<'a>,
    choice: Choice,
    /// Directories of the server with the metadata that they get at the end, outermost first.
    directories: Vec<(Vec<u8>, Metadata)>,
    /// Directories that were asked for.
    made: Vec<(Vec<u8>, Ticket)>,
    /// Directories above what a list names, which were made.
    parents: BTreeSet<Vec<u8>>,
    small: Small<Upload>,
}

type Jobs<'a> = crew::Jobs<'a, Job>;

impl Walk<'_> {
    /// A source.
    fn source(&mut self, from: &Path, to: Vec<u8>, jobs: &Jobs<'_>) -> Result<(), Trouble> {
        let found = self.look(from);
        found.and_then(|found| {
            if found.is_dir() && !self.run.options.recursive {
                let text = "is a directory, and -r was not given";
                let place = from.as_os_str().as_bytes();
                return Err(Trouble::of(End::Here, place, FailureKind::IsDirectory, text));
            }
            let name = name_of(from).unwrap_or_default();
            if !found.is_dir() && self.choice.leaves_out(name, false) {
                return Ok(());
            }
            self.entry((from, found), (to, Vec::new(), 0), jobs)
        })
    }

    /// What a list names, with the directories above it.
    fn listed(
        &mut self,
        source: &Path,
        (target, file): (&[u8], &[u8]),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let slashes = file.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
        for dir in slashes.map(|(at, _)| &file[..at]) {
            if self.run.options.rehearsal || !self.parents.insert(dir.to_vec()) {
                continue;
            }
            let found = self.look(&source.join(OsStr::from_bytes(dir)))?;
            let to = join(target, dir);
            self.make(&to, found.mode());
            self.directories.push((to, found));
        }
        let from = source.join(OsStr::from_bytes(file));
        let found = self.look(&from)?;
        if found.is_dir() && !self.run.options.recursive {
            let text = "is a directory, and -r was not given";
            let place = from.as_os_str().as_bytes();
            return Err(Trouble::of(End::Here, place, FailureKind::IsDirectory, text));
        }
        if self.choice.leaves_out(file, found.is_dir()) {
            return Ok(());
        }
        self.entry((&from, found), (join(target, file), file.to_vec(), 0), jobs)
    }

    /// Metadata of what a name means: links are followed, as scp does, unless they are kept.
    fn look(&self, from: &Path) -> Result<Metadata, Trouble> {
        let found = match self.run.options.keep_links {
            true => fs::symlink_metadata(from),
            false => fs::metadata(from),
        };
        found.map_err(here("look at", from))
    }

    /// Counts the failure of a file; anything else ends the walk.
    fn told(&self, done: Result<(), Trouble>) -> Result<(), Trouble> {
        match done {
            Err(Trouble::File(end, failure)) => {
                self.run.meter.add_failure(end, &failure);
                Ok(())
            }
            other => other,
        }
    }

    fn entry(
        &mut self,
        (from, found): (&Path, Metadata),
        (to, below, depth): (Vec<u8>, Vec<u8>, usize),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        self.run.go_on()?;
        let kind = found.file_type();
        if kind.is_dir() {
            return self.directory((from, found), (to, below, depth), jobs);
        }
        if kind.is_symlink() {
            return jobs.add(Job::Link { from: from.to_owned(), to });
        }
        if !kind.is_file() {
            let text = "not a regular file; by SFTP only files and directories are copied";
            let place = from.as_os_str().as_bytes();
            return Err(Trouble::of(End::Here, place, FailureKind::Special, text));
        }
        self.run.meter.add_total(1, found.size());
        let file = Upload { from: from.to_owned(), to };
        let size = Some(found.size()).filter(|_| !self.run.options.rehearsal);
        match self.small.add(file, size) {
            Ok(None) => Ok(()),
            Ok(Some(files)) => jobs.add(Job::Files(files)),
            Err(file) => jobs.add(Job::File(file)),
        }
    }

    fn directory(
        &mut self,
        (from, found): (&Path, Metadata),
        (to, below, depth): (Vec<u8>, Vec<u8>, usize),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        if depth >= DEPTH_MAX {
            let text = "too many directories within each other; does a link lead upwards?";
            let place = from.as_os_str().as_bytes();
            return Err(Trouble::of(End::Here, place, FailureKind::Link, text));
        }
        let listed = fs::read_dir(from).map_err(here("list", from))?;
        if !self.run.options.rehearsal {
            self.make(&to, found.mode());
            self.directories.push((to.clone(), found));
        }
        let mut names = Vec::new();
        for entry in listed {
            names.push(entry.map_err(here("list", from))?.file_name());
        }
        names.sort();
        for name in names.into_iter().filter(|name| !is_draft(name.as_bytes())) {
            let (to, below) = (join(&to, name.as_bytes()), join(&below, name.as_bytes()));
            // A pattern that leaves a file out leaves a directory of that name out too, and a link that leads nowhere.
            if self.choice.leaves_out(&below, false) {
                continue;
            }
            let from = from.join(&name);
            let added = self.look(&from).and_then(|found| {
                if self.choice.leaves_out(&below, found.is_dir()) {
                    return Ok(());
                }
                self.entry((&from, found), (to, below, depth + 1), jobs)
            });
            self.told(added)?;
        }
        Ok(())
    }

    /// Asks for a directory that this end can write to. The server does what it is asked in order, so files in it may be
    /// asked for at once.
    fn make(&mut self, to: &[u8], mode: u32) {
        let attributes = Attributes { mode: Some(mode & 0o777 | 0o700), ..Attributes::default() };
        let ticket = self.run.server.client.ask(&Request::MakeDir(to, attributes));
        self.made.push((to.to_vec(), ticket));
    }

    /// Whether there is a directory; one that was there stays.
    fn is_made(&self, to: &[u8], ticket: Ticket) -> Result<(), Trouble> {
        let client = &self.run.server.client;
        match client.is_done(ticket) {
            Err(error @ Failed::Refused { .. }) => match client.attributes(&Request::Stat(to)) {
                Ok(found) if found.kind() == Some(Kind::Dir) => Ok(()),
                Ok(_) => {
                    let text = "is in the way of a directory";
                    Err(Trouble::of(End::There, to, FailureKind::NotDirectory, text))
                }
                Err(_) => Err(there(to)(error)),
            },
            made => made.map_err(there(to)),
        }
    }

    /// Gives the directories their modes and times: nothing is written into them any more.
    fn finish(mut self) -> Result<()> {
        for (path, ticket) in std::mem::take(&mut self.made) {
            self.told(self.is_made(&path, ticket)).map_err(end_of)?;
        }
        if !self.run.options.preserve {
            return Ok(());
        }
        let client = &self.run.server.client;
        let set = |(path, found): &(Vec<u8>, Metadata)| {
            let times = times(self.run, found, path);
            let mode = Some(found.mode() & 0o7777);
            let attributes = Attributes { mode, times, ..Attributes::default() };
            (path.clone(), client.ask(&Request::SetStat(path, attributes)))
        };
        let asked: Vec<_> = self.directories.iter().rev().map(set).collect();
        for (path, ticket) in asked {
            self.told(client.is_done(ticket).map_err(there(&path))).map_err(end_of)?;
        }
        Ok(())
    }
}
