//! From this machine to the server.

use super::fault::{Trouble, here, second, there};
use super::file::{Pace, Upload, is_draft, seconds, upload};
use super::remote::{join, resolved};
use super::{Run, crew};
use crate::engine::End;
use crate::outcome::failed;
use anyhow::Result;
use hikyaku_fs::Shown;
use hikyaku_sftp::{Attributes, Failed, Kind, Request, Ticket};
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;
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
    let pace = Pace::new(run.options.limit);
    let mut walk = Walk { run, directories: Vec::new(), made: Vec::new() };
    crew::run(
        run,
        |jobs| {
            let mut names = BTreeSet::new();
            for source in sources {
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
            Ok(())
        },
        |file| upload(run, &pace, &file),
    )?;
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

/// Finds the files.
struct Walk<'a> {
    run: &'a Run<'a>,
    /// Directories of the server with the metadata that they get at the end, outermost first.
    directories: Vec<(Vec<u8>, Metadata)>,
    /// Directories that were asked for.
    made: Vec<(Vec<u8>, Ticket)>,
}

type Jobs<'a> = crew::Jobs<'a, Upload>;

impl Walk<'_> {
    /// A source.
    fn source(&mut self, from: &Path, to: Vec<u8>, jobs: &Jobs<'_>) -> Result<(), Trouble> {
        let found = fs::metadata(from).map_err(here("look at", from));
        found.and_then(|found| {
            if found.is_dir() && !self.run.options.recursive {
                let text = "is a directory, and -r was not given";
                let place = from.as_os_str().as_bytes();
                return Err(Trouble::of(End::Here, place, FailureKind::IsDirectory, text));
            }
            self.entry(from, to, 0, jobs)
        })
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
        from: &Path,
        to: Vec<u8>,
        depth: usize,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        self.run.go_on()?;
        // Links are followed, as scp does.
        let found = fs::metadata(from).map_err(here("look at", from))?;
        let kind = found.file_type();
        if kind.is_dir() {
            return self.directory((from, found), to, depth, jobs);
        }
        if !kind.is_file() {
            let text = "not a regular file; by SFTP only files and directories are copied";
            let place = from.as_os_str().as_bytes();
            return Err(Trouble::of(End::Here, place, FailureKind::Special, text));
        }
        self.run.meter.add_total(1, found.size());
        jobs.add(Upload { from: from.to_owned(), to })
    }

    fn directory(
        &mut self,
        (from, found): (&Path, Metadata),
        to: Vec<u8>,
        depth: usize,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        if depth >= DEPTH_MAX {
            let text = "too many directories within each other; does a link lead upwards?";
            let place = from.as_os_str().as_bytes();
            return Err(Trouble::of(End::Here, place, FailureKind::Link, text));
        }
        let listed = fs::read_dir(from).map_err(here("list", from))?;
        self.make(&to, found.mode());
        self.directories.push((to.clone(), found));
        let mut names = Vec::new();
        for entry in listed {
            names.push(entry.map_err(here("list", from))?.file_name());
        }
        names.sort();
        for name in names.into_iter().filter(|name| !is_draft(name.as_bytes())) {
            let to = join(&to, name.as_bytes());
            let added = self.entry(&from.join(&name), to, depth + 1, jobs);
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
            let times = Some((seconds(found.atime()), seconds(found.mtime())));
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
