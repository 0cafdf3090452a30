//! From the server to this machine.
//!
//! The target is a store of this machine: every name that the server tells is used beneath it only, and never through a
//! symbolic link.

use super::download::{Download, download, rehearse_download};
use super::fault::{Trouble, second, stored, there};
use super::file::{Limit, is_draft};
use super::landing::Landing;
use super::links::link_here;
use super::remote::{Known, entries, expanded, join, resolved, split};
use super::small::{Small, download_together};
use super::{Run, crew};
use crate::engine::{Choice, End, kind};
use crate::interrupt::of_new_tree;
use crate::outcome::failed;
use anyhow::{Context, Result};
use hikyaku_console::begun;
use hikyaku_fs::{FsError, Name, Patience, Shown, umask};
use hikyaku_sftp::{Answer, Attributes, Entry, Failed, Kind, Request};
use hikyaku_store::{Change, ErrorKind, Kind as FileKind, Store, StorePath};
use hikyaku_store_local::{Local, NewModes, Opening};
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;

/// Directories within each other: a link that leads upwards would have no end.
const DEPTH_MAX: usize = 200;
/// Names of a list that the server is asked for together.
const NAMES_TOGETHER: usize = 512;
/// Directories that are listed at once.
const LISTED: usize = 32;

/// Where it goes.
struct Target {
    store: Local,
    /// The one source gets this name; `None` if it keeps its own.
    renamed: Option<Name>,
}

impl Target {
    /// As scp has it: a target that is a directory receives the source, any other target is its new name.
    fn open(run: &Run<'_>, path: &Path, is_several: bool) -> Result<Self> {
        let modes = NewModes { file: 0o666 & !umask() };
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let cannot = || format!("cannot write to {}", Shown::new(path.as_os_str().as_bytes()));
        if is_several || path.as_os_str().as_bytes().ends_with(b"/") {
            let store = Local::open(path, modes).with_context(cannot)?;
            let store = store.recorded(begun().as_deref());
            return Ok(Self { store, renamed: None });
        }
        let scope = run.scope.clone();
        let patience = Patience::new(move || scope.stop_cause().is_none());
        let opening = if run.options.rehearsal { Opening::Never } else { Opening::Waits(patience) };
        let opened = Local::of_target(path, modes, opening);
        let (store, renamed) = opened.map_err(|error| of_target(path, error))?;
        Ok(Self { store: store.recorded(begun().as_deref()), renamed })
    }
}

/// Why nothing can be written to the target.
fn of_target(path: &Path, error: FsError) -> anyhow::Error {
    let shown = Shown::new(path.as_os_str().as_bytes());
    failed(kind(&error), format!("{shown}: {}", error.reason()))
}

/// Copies them.
pub(super) fn get(run: &Run<'_>, sources: &[Vec<u8>], target: &Path) -> Result<()> {
    let mut all = Vec::new();
    for source in sources {
        let path = resolved(source)?;
        match expanded(run, &path) {
            Ok(paths) => all.extend(paths),
            Err(Trouble::File(_, failure)) => {
                let shown = Shown::new(&failure.place);
                return Err(failed(failure.kind, format!("{shown}: {}", failure.text)));
            }
            Err(Trouble::End(error)) => return Err(error),
            Err(Trouble::Stopped) => return Err(crate::interrupt::Interrupted::Anew.into()),
        }
    }
    let is_listed = !run.options.files.is_empty();
    let target = Target::open(run, target, is_listed || all.len() > 1 || run.options.several)?;
    let is_stream = target.renamed.as_ref().is_some_and(|name| target.store.is_stream(name));
    if is_stream {
        // What is written cannot be taken back, so nothing goes on with it.
        run.meter.set_stream();
    }
    let run = &Run { journal: run.journal.filter(|_| !is_stream), ..*run };
    let (limit, landing) = (Limit::new(run.options.limit), Landing::default());
    let umask = umask();
    let mut walk = Walk {
        run,
        target: &target,
        umask,
        choice: Choice::new(&run.options.patterns)?,
        pending: Vec::new(),
        directories: Vec::new(),
        parents: BTreeSet::new(),
        small: Small::new(),
    };
    let done = crew::run(
        run,
        |jobs| {
            let mut names = BTreeSet::new();
            for source in all.iter().filter(|_| is_listed) {
                for files in run.options.files.chunks(NAMES_TOGETHER) {
                    run.go_on()?;
                    walk.listed(source, files, jobs)?;
                    walk.descend(jobs)?;
                }
            }
            for source in all.iter().filter(|_| !is_listed) {
                let is_new = split(source).1.is_none_or(|name| names.insert(name));
                let added = match is_new {
                    true => walk.source(source, jobs),
                    false => Err(second(End::There, source)),
                };
                walk.told(added)?;
                walk.descend(jobs)?;
            }
            run.meter.set_counted();
            jobs.add(Job::Files(walk.small.rest()))
        },
        |job| match job {
            Job::File(file) if run.options.rehearsal => {
                rehearse_download(run, &target.store, &file)
            }
            Job::File(file) => download(run, &limit, (&target.store, umask), &file),
            Job::Files(files) => {
                download_together(run, &limit, ((&target.store, umask), &landing), &files)
            }
            Job::Link { from, to } => link_here(run, &target.store, &from, &to),
        },
    );
    // What is complete gets its name, also if the user has ended the copy.
    landing.rest(run);
    let is_new_tree = target.renamed.is_some() && !walk.directories.is_empty();
    done.map_err(|error| of_new_tree(error, is_new_tree))?;
    walk.finish()
}

/// What was found.
enum Job {
    File(Download),
    Files(Vec<Download>),
    Link { from: Vec<u8>, to: StorePath },
}

/// A directory of the server that is to be listed.
struct Pending {
    from: Vec<u8>,
    found: Known,
    to: StorePath,
    /// Its path beneath the source; empty for the source itself.
    below: Vec<u8>,
    depth: usize,
}

/// A directory of the server that was made here.
struct Directory {
    from: Vec<u8>,
    found: Known,
}

/// Finds the files.
struct Walk<'a> {
    run: &'a Run<'a>,
    target: &'a Target,
    umask: u32,
    choice: Choice,
    /// Directories that are to be listed; the last ones come first, so that few wait.
    pending: Vec<Pending>,
    /// Directories of this machine with the metadata that they get at the end, outermost first.
    directories: Vec<(StorePath, Directory)>,
    /// Directories above what a list names, which were made.
    parents: BTreeSet<Vec<u8>>,
    small: Small<Download>,
}

type Jobs<'a> = crew::Jobs<'a, Job>;

/// The path of a name that a list has, the name, and what the server tells of it.
type Looked<'a> = (Vec<u8>, &'a [u8], Result<Attributes, Trouble>);

impl Walk<'_> {
    fn told(&self, done: Result<(), Trouble>) -> Result<(), Trouble> {
        match done {
            Err(Trouble::File(end, failure)) => {
                self.run.meter.add_failure(end, &failure);
                Ok(())
            }
            other => other,
        }
    }

    fn source(&mut self, from: &[u8], jobs: &Jobs<'_>) -> Result<(), Trouble> {
        let found = self.run.server.client.attributes(&self.look(from)).map_err(there(from))?;
        let is_contents = from.ends_with(b"/.") || split(from).1.is_none();
        if found.kind() == Some(Kind::Dir) && !self.run.options.recursive {
            let text = "is a directory, and -r was not given";
            return Err(Trouble::of(End::There, from, FailureKind::IsDirectory, text));
        }
        let name = split(from).1.and_then(|name| Name::new(name).ok());
        let to = match (&self.target.renamed, name) {
            (Some(renamed), _) => StorePath::ROOT.join(renamed).ok(),
            (None, _) if is_contents => Some(StorePath::ROOT),
            (None, Some(name)) => StorePath::ROOT.join(&name).ok(),
            (None, None) => None,
        };
        let to = to.ok_or_else(|| bad_name(from))?;
        let name = split(from).1.unwrap_or_default();
        if !is_contents && found.kind() != Some(Kind::Dir) && self.choice.leaves_out(name, false) {
            return Ok(());
        }
        self.entry(from, Known::of_path(self.run, from, found)?, (to, Vec::new(), 0), jobs)
    }

    /// What a list names, with the directories above it. The server is asked for all of it before the first answer is
    /// waited for.
    fn listed(&mut self, source: &[u8], files: &[Vec<u8>], jobs: &Jobs<'_>) -> Result<(), Trouble> {
        let above = files.iter().flat_map(|file| {
            file.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(at, _)| &file[..at])
        });
        let mut dirs: Vec<&[u8]> = Vec::new();
        for dir in above.filter(|_| !self.run.options.rehearsal) {
            if self.parents.insert(dir.to_vec()) {
                dirs.push(dir);
            }
        }
        for (from, dir, found) in self.looked(source, dirs) {
            let made = found.and_then(|found| self.above(from, dir, found));
            self.told(made)?;
        }
        for (from, file, found) in self.looked(source, files.iter().map(Vec::as_slice)) {
            let added = found.and_then(|found| self.named(&from, file, found, jobs));
            self.told(added)?;
        }
        Ok(())
    }

    /// What the server tells of names below `source`.
    fn looked<'a>(
        &self,
        source: &[u8],
        names: impl IntoIterator<Item = &'a [u8]>,
    ) -> Vec<Looked<'a>> {
        let paths: Vec<_> = names.into_iter().map(|name| (join(source, name), name)).collect();
        let requests: Vec<_> = paths.iter().map(|(path, _)| self.look(path)).collect();
        let answers = self.run.server.client.all(&requests);
        let told = paths.into_iter().zip(answers).map(|((path, name), answer)| {
            let found = answer.attributes().map_err(there(&path));
            (path, name, found)
        });
        told.collect()
    }

    /// Asks for what a name means: links are followed, as scp does, unless they are kept.
    const fn look<'a>(&self, path: &'a [u8]) -> Request<'a> {
        if self.run.options.keep_links { Request::LStat(path) } else { Request::Stat(path) }
    }

    /// A directory above what a list names.
    fn above(&mut self, from: Vec<u8>, dir: &[u8], found: Attributes) -> Result<(), Trouble> {
        let found = Known::of_path(self.run, &from, found)?;
        let to = StorePath::new(dir).map_err(|_| bad_name(dir))?;
        self.make(from, found, to)
    }

    /// What a list names.
    fn named(
        &mut self,
        from: &[u8],
        file: &[u8],
        found: Attributes,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let is_dir = found.kind() == Some(Kind::Dir);
        if is_dir && !self.run.options.recursive {
            let text = "is a directory, and -r was not given";
            return Err(Trouble::of(End::There, from, FailureKind::IsDirectory, text));
        }
        if self.choice.leaves_out(file, is_dir) {
            return Ok(());
        }
        let to = StorePath::new(file).map_err(|_| bad_name(file))?;
        let found = Known::of_path(self.run, from, found)?;
        self.entry(from, found, (to, file.to_vec(), 0), jobs)
    }

    /// Lists directories, several at a time, until none is left.
    fn descend(&mut self, jobs: &Jobs<'_>) -> Result<(), Trouble> {
        while !self.pending.is_empty() {
            self.run.go_on()?;
            let some = self.pending.split_off(self.pending.len().saturating_sub(LISTED));
            let run = self.run;
            let listed: Vec<_> = thread::scope(|scope| {
                let list = |dir: &'_ Pending| {
                    let from = dir.from.clone();
                    scope.spawn(move || entries(run, &from))
                };
                let threads: Vec<_> = some.iter().map(list).collect();
                threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
            });
            for (dir, listed) in some.into_iter().zip(listed) {
                let Ok(listed) = listed else { return Err(Trouble::Stopped) };
                let done = listed.and_then(|all| self.directory(dir, all, jobs));
                self.told(done)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        from: &[u8],
        found: Known,
        (to, below, depth): (StorePath, Vec<u8>, usize),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        self.run.go_on()?;
        match found.attributes.kind() {
            Some(Kind::Dir) if depth >= DEPTH_MAX => {
                let text = "too many directories within each other; does a link lead upwards?";
                Err(Trouble::of(End::There, from, FailureKind::Link, text))
            }
            Some(Kind::Dir) => {
                self.pending.push(Pending { from: from.to_vec(), found, to, below, depth });
                Ok(())
            }
            Some(Kind::Link) if self.run.options.keep_links => {
                jobs.add(Job::Link { from: from.to_vec(), to })
            }
            // A server that tells no mode has files.
            Some(Kind::File) | None => {
                self.run.meter.add_total(1, found.attributes.size.unwrap_or_default());
                let size = found.attributes.size.filter(|_| !self.run.options.rehearsal);
                match self.small.add(Download { from: from.to_vec(), to, found }, size) {
                    Ok(None) => Ok(()),
                    Ok(Some(files)) => jobs.add(Job::Files(files)),
                    Err(file) => jobs.add(Job::File(file)),
                }
            }
            Some(Kind::Link | Kind::Special) => {
                let text = "not a regular file; by SFTP only files and directories are copied";
                Err(Trouble::of(End::There, from, FailureKind::Special, text))
            }
        }
    }

    /// Makes a directory that this end can write to; one that is there stays.
    fn make(&mut self, from: Vec<u8>, found: Known, to: StorePath) -> Result<(), Trouble> {
        let store = &self.target.store;
        let mode = found.attributes.mode.unwrap_or(0o755) & 0o777 & !self.umask | 0o700;
        match store.make_dir(&to, mode) {
            Err(error) if error.kind == ErrorKind::Exists => {
                if store.look(&to).is_ok_and(|there| there.kind == FileKind::File) {
                    let text = "is in the way of a directory";
                    let path = to.as_bytes();
                    return Err(Trouble::of(End::Here, path, FailureKind::NotDirectory, text));
                }
            }
            made => made.map_err(stored)?,
        }
        self.directories.push((to, Directory { from, found }));
        Ok(())
    }

    fn directory(&mut self, dir: Pending, all: Vec<Entry>, jobs: &Jobs<'_>) -> Result<(), Trouble> {
        if dir.to != StorePath::ROOT && !self.run.options.rehearsal {
            self.make(dir.from.clone(), dir.found, dir.to.clone())?;
        }
        let mut found = Vec::new();
        for entry in all.into_iter().filter(|entry| !is_draft(&entry.name)) {
            let below = join(&dir.below, &entry.name);
            let is_dir = entry.attributes.kind() == Some(Kind::Dir);
            if self.choice.leaves_out(&below, is_dir) {
                continue;
            }
            // Links are followed, as scp does, unless they are kept; a server may tell no mode in a listing.
            let is_known = match entry.attributes.kind() {
                Some(Kind::File | Kind::Dir | Kind::Special) => entry.attributes.size.is_some(),
                Some(Kind::Link) => self.run.options.keep_links,
                None => false,
            };
            found.push((join(&dir.from, &entry.name), below, entry, is_known));
        }
        let unknown = found.iter().filter(|(.., is_known)| !is_known);
        let requests: Vec<_> = unknown.map(|(path, ..)| Request::Stat(path)).collect();
        let mut answers = self.run.server.client.all(&requests).into_iter();
        for (path, below, entry, is_known) in found {
            let asked = match is_known {
                true => Ok(Known::of_entry(&entry)),
                false => answers
                    .next()
                    .map_or(Err(Failed::Odd), Answer::attributes)
                    .map_err(there(&path))
                    .and_then(|found| Known::of_path(self.run, &path, found)),
            };
            let name = Name::new(&entry.name).map_err(|_| bad_name(&path));
            let to = name.and_then(|name| dir.to.join(&name).map_err(|_| bad_name(&path)));
            let added = asked.and_then(|found| {
                // What a link leads to may be a directory that is left out.
                let is_dir = found.attributes.kind() == Some(Kind::Dir);
                if self.choice.leaves_out(&below, is_dir) {
                    return Ok(());
                }
                self.entry(&path, found, (to?, below, dir.depth + 1), jobs)
            });
            self.told(added)?;
        }
        Ok(())
    }

    /// Gives the directories their modes and times, and brings their names to the disk.
    fn finish(self) -> Result<()> {
        let store = &self.target.store;
        for (path, Directory { from, found }) in self.directories.iter().rev() {
            let mode = found.attributes.mode.filter(|_| self.run.options.preserve);
            let mode = mode.map(|mode| mode & 0o7777);
            let modified = found.kept_time(self.run, from);
            let change = Change { mode, modified, ..Change::default() };
            if *path != StorePath::ROOT && (mode.is_some() || modified.is_some()) {
                let changed = store.change(path, &change).map_err(stored);
                if let Err(Trouble::File(end, failure)) = changed {
                    self.run.meter.add_failure(end, &failure);
                }
            }
        }
        if self.run.options.durable && !self.run.options.rehearsal {
            let mut all: BTreeSet<StorePath> =
                self.directories.into_iter().map(|(path, _)| path).collect();
            all.insert(StorePath::ROOT);
            store.sync(&all.into_iter().collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

fn bad_name(path: &[u8]) -> Trouble {
    Trouble::of(End::There, path, FailureKind::BadName, "the name is not possible here")
}
