//! The walk of the server's trees, in parallel to the copy of the files that it finds.

use super::target::Target;
use super::{Job, bad_name};
use crate::sftp::above::Above;
use crate::sftp::download::Download;
use crate::sftp::fault::{Trouble, not_a_directory, stored, there};
use crate::sftp::file::is_draft;
use crate::sftp::remote::{Known, entries, join, split};
use crate::sftp::small::Small;
use crate::sftp::{Run, crew};
use anyhow::Result;
use hikyaku_fan::{DirMeta, DirState, Dress};
use hikyaku_fs::{Name, dirs_above};
use hikyaku_job::{Choice, End};
use hikyaku_sftp::{Answer, Attributes, Entry, Failed, Kind, Request};
use hikyaku_store::{Change, ErrorKind, Kind as FileKind, Store, StorePath};
use hikyaku_transfer::{Depth, Durable, FailureKind, Links, Pass};
use std::collections::BTreeSet;
use std::thread;

/// Maximum number of directories that are listed concurrently.
const LISTED: usize = 32;
/// Permission bits of a directory if the server sends none.
const NEW_DIR: u32 = 0o755;

/// A directory of the server that is to be listed.
struct Pending {
    from: Vec<u8>,
    found: Known,
    to: StorePath,
    /// Its path beneath the source; empty for the source itself.
    below: Vec<u8>,
    /// It and the directories above it, by the paths that links lead to.
    above: Above<Vec<u8>>,
}

/// A directory of the server that was made here.
struct Directory {
    from: Vec<u8>,
    found: Known,
    state: DirState,
}

/// The destination of an entry.
struct At {
    to: StorePath,
    /// Its path beneath the source; empty for the source itself.
    below: Vec<u8>,
    /// The directories above it, which links may lead back to.
    above: Above<Vec<u8>>,
    /// The path of a directory to which a link may lead; otherwise the innermost directory above contains it.
    real: Option<Vec<u8>>,
}

/// An entry of a directory: its path, that beneath the source, and whether it is known without a further question.
type Listed = (Vec<u8>, Vec<u8>, Entry, bool);

/// The metadata of an entry, and the path of a directory to which a link may lead.
type Asked = (Result<Known, Trouble>, Option<Vec<u8>>);

/// Finds the files.
pub(super) struct Walk<'a> {
    run: &'a Run<'a>,
    target: &'a Target,
    dress: Dress,
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

/// The path of a name in a list, the name, and its metadata from the server.
type Looked<'a> = (Vec<u8>, &'a [u8], Result<Attributes, Trouble>);

impl<'a> Walk<'a> {
    pub(super) fn new(run: &'a Run<'a>, target: &'a Target, dress: Dress, choice: Choice) -> Self {
        Self {
            run,
            target,
            dress,
            choice,
            pending: Vec::new(),
            directories: Vec::new(),
            parents: BTreeSet::new(),
            small: Small::new(),
        }
    }

    /// Small files that wait for others.
    pub(super) fn rest(&mut self) -> Vec<Download> {
        self.small.rest()
    }

    pub(super) const fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    pub(super) fn source(&mut self, from: &[u8], jobs: &Jobs<'_>) -> Result<(), Trouble> {
        let found = self.run.server.client.attributes(&self.look(from)).map_err(there(from))?;
        let is_contents = from.ends_with(b"/.") || split(from).1.is_none();
        if found.kind() == Some(Kind::Dir) && self.run.options.rules.depth == Depth::File {
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
        let at = At { real: self.real(from, &found), above: Above::NONE, to, below: Vec::new() };
        self.entry(from, Known::of_path(self.run, from, found)?, at, jobs)
    }

    /// The real path of the directory `path` that the user named. If links are kept, that is the path itself.
    fn real(&self, path: &[u8], found: &Attributes) -> Option<Vec<u8>> {
        let is_asked =
            found.kind() == Some(Kind::Dir) && self.run.options.rules.links == Links::Followed;
        is_asked.then(|| self.run.server.client.name(&Request::RealPath(path)).ok()).flatten()
    }

    /// Finds the names of a list and the directories above them. All requests are sent before the first answer is awaited.
    pub(super) fn listed(
        &mut self,
        source: &[u8],
        files: &[Vec<u8>],
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let mut dirs: Vec<&[u8]> = Vec::new();
        for dir in files.iter().flat_map(|file| dirs_above(file)) {
            if self.parents.insert(dir.to_vec()) {
                dirs.push(dir);
            }
        }
        let mut missing: BTreeSet<&[u8]> = BTreeSet::new();
        for (from, dir, found) in self.looked(source, dirs) {
            // A directory without metadata is a failure of each file in it.
            let Ok(found) = found else { continue };
            if let Err(trouble) = self.above(from, dir, found) {
                let is_told = dirs_above(dir).any(|dir| missing.contains(dir));
                missing.insert(dir);
                self.run.told(if is_told { Ok(()) } else { Err(trouble) })?;
            }
        }
        let files = files.iter().map(Vec::as_slice);
        let files = files.filter(|file| !dirs_above(file).any(|dir| missing.contains(dir)));
        for (from, file, found) in self.looked(source, files) {
            let added = found.and_then(|found| self.named(&from, file, found, jobs));
            self.run.told(added)?;
        }
        Ok(())
    }

    /// Metadata from the server of names below `source`.
    fn looked<'b>(
        &self,
        source: &[u8],
        names: impl IntoIterator<Item = &'b [u8]>,
    ) -> Vec<Looked<'b>> {
        let paths: Vec<_> = names.into_iter().map(|name| (join(source, name), name)).collect();
        let requests: Vec<_> = paths.iter().map(|(path, _)| self.look(path)).collect();
        let answers = self.run.server.client.all(&requests);
        let told = paths.into_iter().zip(answers).map(|((path, name), answer)| {
            let found = answer.attributes().map_err(there(&path));
            (path, name, found)
        });
        told.collect()
    }

    /// Requests the metadata of a name: links are followed, as in scp, unless they are kept.
    fn look<'b>(&self, path: &'b [u8]) -> Request<'b> {
        if self.run.options.rules.links == Links::Kept {
            Request::LStat(path)
        } else {
            Request::Stat(path)
        }
    }

    /// A directory above what a list names.
    fn above(&mut self, from: Vec<u8>, dir: &[u8], found: Attributes) -> Result<(), Trouble> {
        let found = Known::of_path(self.run, &from, found)?;
        let to = self.target.of_list(dir)?;
        self.make(from, found, to)
    }

    /// Adds a name of a list.
    fn named(
        &mut self,
        from: &[u8],
        file: &[u8],
        found: Attributes,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let is_dir = found.kind() == Some(Kind::Dir);
        if is_dir && self.run.options.rules.depth == Depth::File {
            let text = "is a directory, and -r was not given";
            return Err(Trouble::of(End::There, from, FailureKind::IsDirectory, text));
        }
        if self.choice.leaves_out(file, is_dir) {
            return Ok(());
        }
        let (to, below) = (self.target.of_list(file)?, file.to_vec());
        let at = At { real: self.real(from, &found), above: Above::NONE, to, below };
        self.entry(from, Known::of_path(self.run, from, found)?, at, jobs)
    }

    /// Lists directories, several at a time, until none is left.
    pub(super) fn descend(&mut self, jobs: &Jobs<'_>) -> Result<(), Trouble> {
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
                self.run.told(done)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        from: &[u8],
        found: Known,
        At { to, below, above, real }: At,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        self.run.go_on()?;
        match found.attributes.kind() {
            Some(Kind::Dir) => {
                let inside = || {
                    let (dir, name) = (above.last()?, split(from).1?);
                    Some(join(dir, name))
                };
                let real = real.or_else(inside).unwrap_or_else(|| from.to_vec());
                let above = above.with(real, (End::There, from))?;
                self.pending.push(Pending { from: from.to_vec(), found, to, below, above });
                Ok(())
            }
            Some(Kind::Link) if self.run.options.rules.links == Links::Kept => {
                let modified = found.kept_time(self.run, from);
                jobs.add(Job::Link { from: from.to_vec(), modified, to })
            }
            // An entry without a mode counts as a file.
            Some(Kind::File) | None => {
                self.run.meter.add_total(1, found.attributes.size.unwrap_or_default());
                let size =
                    found.attributes.size.filter(|_| self.run.options.rules.pass == Pass::Copy);
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

    /// Creates a writable directory unless one exists. A dry run only checks.
    fn make(&mut self, from: Vec<u8>, found: Known, to: StorePath) -> Result<(), Trouble> {
        let store = &self.target.store;
        let state = match store.look(&to) {
            Ok(there) if there.kind == FileKind::Dir => DirState::There,
            Ok(_) => return Err(not_a_directory(End::Here, to.as_bytes())),
            Err(error) if error.kind == ErrorKind::NotFound => {
                if self.run.options.rules.pass == Pass::Copy {
                    let mode = self.dress.new_dir(found.attributes.mode.unwrap_or(NEW_DIR));
                    store.make_dir(&to, mode).map_err(stored)?;
                }
                DirState::Made
            }
            Err(error) => return Err(stored(error)),
        };
        self.directories.push((to, Directory { from, found, state }));
        Ok(())
    }

    fn directory(&mut self, dir: Pending, all: Vec<Entry>, jobs: &Jobs<'_>) -> Result<(), Trouble> {
        if dir.to != StorePath::ROOT {
            self.make(dir.from.clone(), dir.found, dir.to.clone())?;
        }
        let mut found = Vec::new();
        for entry in all.into_iter().filter(|entry| !is_draft(&entry.name)) {
            let below = join(&dir.below, &entry.name);
            let is_dir = entry.attributes.kind() == Some(Kind::Dir);
            if self.choice.leaves_out(&below, is_dir) {
                continue;
            }
            // Links are followed, as in scp, unless they are kept. A listing may contain no modes.
            let is_known = match entry.attributes.kind() {
                Some(Kind::File | Kind::Dir | Kind::Special) => entry.attributes.size.is_some(),
                Some(Kind::Link) => self.run.options.rules.links == Links::Kept,
                None => false,
            };
            found.push((join(&dir.from, &entry.name), below, entry, is_known));
        }
        for ((path, below, entry, _), (asked, real)) in found.iter().zip(self.asked(&found)) {
            let name = Name::new(&entry.name).map_err(|_| bad_name(path));
            let to = name.and_then(|name| dir.to.join(&name).map_err(|_| bad_name(path)));
            let added = asked.and_then(|known| {
                // The target of a link may be a directory that is left out.
                let is_dir = known.attributes.kind() == Some(Kind::Dir);
                if self.choice.leaves_out(below, is_dir) {
                    return Ok(());
                }
                let (below, above) = (below.clone(), dir.above.clone());
                self.entry(path, known, At { to: to?, below, above, real }, jobs)
            });
            self.run.told(added)?;
        }
        Ok(())
    }

    /// Metadata of the entries of a directory, links followed, and real paths of directories to which links may lead. All
    /// requests are sent together.
    fn asked(&self, found: &[Listed]) -> Vec<Asked> {
        let client = &self.run.server.client;
        let unknown = found.iter().filter(|(.., is_known)| !is_known);
        let requests: Vec<_> = unknown.map(|(path, ..)| Request::Stat(path)).collect();
        let mut answers = client.all(&requests).into_iter();
        let told = found.iter().map(|(path, _, entry, is_known)| match is_known {
            true => (Ok(Known::of_entry(entry)), None),
            false => {
                let told = answers.next().map_or(Err(Failed::Odd), Answer::attributes);
                let told = told.map_err(there(path));
                let known = told.and_then(|told| Known::of_path(self.run, path, told));
                let is_dir =
                    known.as_ref().is_ok_and(|known| known.attributes.kind() == Some(Kind::Dir));
                (known, is_dir.then_some(Request::RealPath(path)))
            }
        });
        let told: Vec<_> = told.collect();
        let requests: Vec<_> = told.iter().filter_map(|(_, request)| *request).collect();
        let mut answers = client.all(&requests).into_iter();
        let led = told.into_iter().map(|(known, request)| {
            let real = request.and_then(|_| answers.next()?.name().ok());
            (known, real)
        });
        led.collect()
    }

    /// Gives the directories their modes and times, and brings their names to the disk.
    pub(super) fn finish(self) -> Result<()> {
        let store = &self.target.store;
        if self.run.options.rules.pass == Pass::DryRun {
            return Ok(());
        }
        for (path, Directory { from, found, state }) in self.directories.iter().rev() {
            let told = found.attributes.mode;
            let modified = found.kept_time(self.run, from);
            let meta = DirMeta { mode: told.unwrap_or(NEW_DIR), modified };
            let change = self.dress.filled_dir(meta, *state);
            let change = change.map(|change| Change { mode: change.mode.and(told), ..change });
            if let Some(change) = change {
                let changed = store.change(path, &change).map_err(stored);
                if let Err(Trouble::File(end, failure)) = changed {
                    self.run.meter.add_failure(end, &failure);
                }
            }
        }
        if self.run.options.rules.durable == Durable::Disk {
            let mut all: BTreeSet<StorePath> =
                self.directories.into_iter().map(|(path, _)| path).collect();
            all.insert(StorePath::ROOT);
            store.sync(&all.into_iter().collect::<Vec<_>>())?;
        }
        Ok(())
    }
}
