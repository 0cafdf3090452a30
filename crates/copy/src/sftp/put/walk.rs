//! What there is to be copied to the server: found while the copy is under way.

use super::{Job, name_of};
use crate::sftp::above::Above;
use crate::sftp::fault::{Trouble, here, not_a_directory, there};
use crate::sftp::file::{is_draft, times};
use crate::sftp::remote::join;
use crate::sftp::small::Small;
use crate::sftp::upload::Upload;
use crate::sftp::{Run, crew};
use anyhow::Result;
use hikyaku_fs::dirs_above;
use hikyaku_job::{Choice, End};
use hikyaku_sftp::{Attributes, Failed, Kind, Request, Ticket};
use hikyaku_transfer::{Depth, FailureKind, Links, Pass};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories that are waited for together.
const MADE_TOGETHER: usize = 512;
/// Permission bits of a directory with which files can be made in it.
const FILLED: u32 = 0o700;

/// Finds the files.
pub(super) struct Walk<'a> {
    run: &'a Run<'a>,
    choice: Choice,
    /// Directories that are to be listed; the last ones come first, so that few wait.
    pending: Vec<Pending>,
    /// Directories of the server with the metadata that they get at the end, outermost first.
    directories: Vec<(Vec<u8>, Metadata, State)>,
    /// Directories above what a list names, which were made.
    parents: BTreeSet<Vec<u8>>,
    small: Small<Upload>,
}

/// A directory that was asked for, and is to be listed.
struct Pending {
    from: PathBuf,
    found: Metadata,
    at: At,
    asked: Ticket,
}

/// Where something goes.
struct At {
    to: Vec<u8>,
    /// Its path beneath the source; empty for the source itself.
    below: Vec<u8>,
    /// The directories above it, which links may lead back to.
    above: Above<(u64, u64)>,
}

/// What was there of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Made,
    There,
}

type Jobs<'a> = crew::Jobs<'a, Job>;

impl<'a> Walk<'a> {
    pub(super) fn new(run: &'a Run<'a>, choice: Choice) -> Self {
        let (pending, directories) = (Vec::new(), Vec::new());
        Self { run, choice, pending, directories, parents: BTreeSet::new(), small: Small::new() }
    }

    /// Small files that wait for others.
    pub(super) fn rest(&mut self) -> Vec<Upload> {
        self.small.rest()
    }

    pub(super) const fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    /// A source.
    pub(super) fn source(
        &mut self,
        from: &Path,
        to: Vec<u8>,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let found = self.look(from)?;
        self.check_recursive(from, &found)?;
        let name = name_of(from).unwrap_or_default();
        if !found.is_dir() && self.choice.leaves_out(name, false) {
            return Ok(());
        }
        self.entry((from, found), At { to, below: Vec::new(), above: Above::NONE }, jobs)
    }

    /// What a list names, with the directories above it. The server is asked for all of those before the first answer is
    /// waited for.
    pub(super) fn listed(
        &mut self,
        source: &Path,
        (target, files): (&[u8], &[Vec<u8>]),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let mut asked = Vec::new();
        for dir in files.iter().flat_map(|file| dirs_above(file)) {
            // One that cannot be looked at is a failure of each file in it.
            let from = source.join(OsStr::from_bytes(dir));
            if !self.parents.contains(dir)
                && let Ok(found) = self.look(&from)
            {
                self.parents.insert(dir.to_vec());
                let to = join(target, dir);
                let ticket = self.ask(&to, found.mode());
                asked.push((dir, to, found, ticket));
            }
        }
        let mut missing: BTreeSet<&[u8]> = BTreeSet::new();
        for (dir, to, found, ticket) in asked {
            match self.made(&to, ticket) {
                Ok(state) => self.directories.push((to, found, state)),
                Err(trouble) => {
                    let is_told = dirs_above(dir).any(|dir| missing.contains(dir));
                    missing.insert(dir);
                    self.run.told(if is_told { Ok(()) } else { Err(trouble) })?;
                }
            }
        }
        for file in files.iter().filter(|file| !dirs_above(file).any(|dir| missing.contains(dir))) {
            let added = self.named(source, (target, file), jobs);
            self.run.told(added)?;
        }
        Ok(())
    }

    /// What a list names.
    fn named(
        &mut self,
        source: &Path,
        (target, file): (&[u8], &[u8]),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let from = source.join(OsStr::from_bytes(file));
        let found = self.look(&from)?;
        self.check_recursive(&from, &found)?;
        if self.choice.leaves_out(file, found.is_dir()) {
            return Ok(());
        }
        let at = At { to: join(target, file), below: file.to_vec(), above: Above::NONE };
        self.entry((&from, found), at, jobs)
    }

    /// Refuses a directory that was named, if directories are not copied.
    fn check_recursive(&self, from: &Path, found: &Metadata) -> Result<(), Trouble> {
        if found.is_dir() && self.run.options.rules.depth == Depth::File {
            let text = "is a directory, and -r was not given";
            let place = from.as_os_str().as_bytes();
            return Err(Trouble::of(End::Here, place, FailureKind::IsDirectory, text));
        }
        Ok(())
    }

    /// Metadata of what a name means: links are followed, as scp does, unless they are kept.
    fn look(&self, from: &Path) -> Result<Metadata, Trouble> {
        let found = match self.run.options.rules.links == Links::Kept {
            true => fs::symlink_metadata(from),
            false => fs::metadata(from),
        };
        found.map_err(here("look at", from))
    }

    fn entry(
        &mut self,
        (from, found): (&Path, Metadata),
        at: At,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        self.run.go_on()?;
        let kind = found.file_type();
        if kind.is_dir() {
            let place = (End::Here, from.as_os_str().as_bytes());
            let above = at.above.with((found.dev(), found.ino()), place)?;
            let asked = self.ask(&at.to, found.mode());
            let at = At { above, ..at };
            self.pending.push(Pending { from: from.to_owned(), found, at, asked });
            return Ok(());
        }
        if kind.is_symlink() {
            return jobs.add(Job::Link { from: from.to_owned(), to: at.to });
        }
        if !kind.is_file() {
            let text = "not a regular file; by SFTP only files and directories are copied";
            let place = from.as_os_str().as_bytes();
            return Err(Trouble::of(End::Here, place, FailureKind::Special, text));
        }
        self.run.meter.add_total(1, found.size());
        let file = Upload { from: from.to_owned(), to: at.to };
        let size = Some(found.size()).filter(|_| self.run.options.rules.pass == Pass::Copy);
        match self.small.add(file, size) {
            Ok(None) => Ok(()),
            Ok(Some(files)) => jobs.add(Job::Files(files)),
            Err(file) => jobs.add(Job::File(file)),
        }
    }

    /// Lists directories until none is left. All that were found in one have been asked for before the first of them is
    /// waited for.
    pub(super) fn descend(&mut self, jobs: &Jobs<'_>) -> Result<(), Trouble> {
        while !self.pending.is_empty() {
            let few = self.pending.len().saturating_sub(MADE_TOGETHER);
            for dir in self.pending.split_off(few) {
                self.run.go_on()?;
                let filled = self.fill(dir, jobs);
                self.run.told(filled)?;
            }
        }
        Ok(())
    }

    /// What is in a directory, if the server has one for it.
    fn fill(&mut self, dir: Pending, jobs: &Jobs<'_>) -> Result<(), Trouble> {
        let Pending { from, found, at: At { to, below, above }, asked } = dir;
        let state = self.made(&to, asked)?;
        self.directories.push((to.clone(), found, state));
        let mut names = Vec::new();
        for entry in fs::read_dir(&from).map_err(here("list", &from))? {
            names.push(entry.map_err(here("list", &from))?.file_name());
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
                self.entry((&from, found), At { to, below, above: above.clone() }, jobs)
            });
            self.run.told(added)?;
        }
        Ok(())
    }

    /// Asks for a directory that this end can write to; in a rehearsal, for what is there.
    fn ask(&self, to: &[u8], mode: u32) -> Ticket {
        let client = &self.run.server.client;
        if self.run.options.rules.pass == Pass::DryRun {
            return client.ask(&Request::Stat(to));
        }
        let attributes = Attributes { mode: Some(mode & 0o1777 | FILLED), ..Attributes::default() };
        client.ask(&Request::MakeDir(to, attributes))
    }

    /// Makes the directory that what a list names goes into.
    pub(super) fn make_target(&self, to: &[u8]) -> Result<(), Trouble> {
        self.made(to, self.ask(to, 0o777)).map(drop)
    }

    /// Whether there is a directory, or in a rehearsal would be; one that was there stays.
    fn made(&self, to: &[u8], asked: Ticket) -> Result<State, Trouble> {
        let client = &self.run.server.client;
        let (found, refused) = match self.run.options.rules.pass == Pass::DryRun {
            true => match client.answer(asked).attributes() {
                Err(error) if error.is_absent() => return Ok(State::Made),
                found => (found.map_err(there(to))?, None),
            },
            false => match client.is_done(asked) {
                Ok(()) => return Ok(State::Made),
                Err(error @ Failed::Refused { .. }) => {
                    match client.attributes(&Request::Stat(to)) {
                        Ok(found) => (found, Some(error)),
                        Err(Failed::Refused { .. }) => return Err(self.in_the_way(to, error)),
                        Err(end) => return Err(there(to)(end)),
                    }
                }
                Err(error) => return Err(there(to)(error)),
            },
        };
        match (found.kind(), refused) {
            (Some(Kind::Dir), _) => Ok(State::There),
            // A server may tell no kinds.
            (None, Some(error)) => Err(there(to)(error)),
            (None, None) => Ok(State::There),
            (Some(_), _) => Err(not_a_directory(End::There, to)),
        }
    }

    /// Why a directory was refused of which nothing is known that follows links: a link that leads nowhere has its name, or
    /// what the server says.
    fn in_the_way(&self, to: &[u8], refused: Failed) -> Trouble {
        match self.run.server.client.attributes(&Request::LStat(to)) {
            Ok(_) => not_a_directory(End::There, to),
            Err(_) => there(to)(refused),
        }
    }

    /// Gives the directories their modes and times: nothing is written into them any more.
    pub(super) fn finish(self) -> Result<()> {
        if self.run.options.rules.pass == Pass::DryRun {
            return Ok(());
        }
        let client = &self.run.server.client;
        let mut asked = Vec::new();
        for (path, found, state) in self.directories.iter().rev() {
            let dressed = self.dress((path, found), *state);
            match dressed {
                Ok(Some(attributes)) => {
                    asked.push((path, client.ask(&Request::SetStat(path, attributes))));
                }
                Ok(None) => {}
                Err(trouble) => self.run.told(Err(trouble)).map_err(Trouble::into_error)?,
            }
        }
        for (path, ticket) in asked {
            self.run
                .told(client.is_done(ticket).map_err(there(path)))
                .map_err(Trouble::into_error)?;
        }
        Ok(())
    }

    /// What a directory gets that is filled. Its mode, with `-p`, is the source's, also if it was there. Without it a new one has
    /// what the umask of the server has left of the source's mode, and one that was there keeps its own.
    fn dress(
        &self,
        (path, found): (&[u8], &Metadata),
        state: State,
    ) -> Result<Option<Attributes>, Trouble> {
        let preserve = self.run.options.rules.preserve;
        let times = if preserve.times() { times(self.run, found, path) } else { None };
        let lent = FILLED & !found.mode();
        let mode = if preserve.modes() {
            Some(found.mode() & 0o7777)
        } else if state == State::There || lent == 0 {
            None
        } else {
            let asked = Request::LStat(path);
            let made = self.run.server.client.attributes(&asked).map_err(there(path))?;
            made.mode.map(|mode| mode & 0o1777 & !lent)
        };
        let is_due = mode.is_some() || times.is_some();
        Ok(is_due.then_some(Attributes { mode, times, ..Attributes::default() }))
    }
}
