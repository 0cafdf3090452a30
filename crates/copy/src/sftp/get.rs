//! From the server to this machine.
//!
//! The target is a store of this machine: every name that the server tells is used beneath it only, and never through a
//! symbolic link.

use super::fault::{Trouble, second, stored, there};
use super::file::{Download, Pace, download, is_draft};
use super::remote::{entries, expanded, join, resolved, split};
use super::{Run, crew};
use crate::engine::End;
use crate::outcome::failed;
use anyhow::{Context, Result};
use hikyaku_fan::umask;
use hikyaku_fs::{Name, Shown};
use hikyaku_sftp::{Attributes, Kind, Request};
use hikyaku_store::{Change, ErrorKind, Store, StorePath, Time};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Directories within each other: a link that leads upwards would have no end.
const DEPTH_MAX: usize = 200;

/// Where it goes.
struct Target {
    store: Local,
    /// The one source gets this name; `None` if it keeps its own.
    renamed: Option<Name>,
}

impl Target {
    /// As scp has it: a target that is a directory receives the source, any other target is its new name.
    fn open(path: &Path, is_several: bool) -> Result<Self> {
        let modes = NewModes { file: 0o666 & !umask() };
        let open = |path: &Path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            Local::open(path, modes).with_context(|| format!("cannot write to {}", path.display()))
        };
        if is_several || path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/") {
            return Ok(Self { store: open(path)?, renamed: None });
        }
        // A link that was named is kept: the file that it leads to is replaced.
        let leads_to = path.is_symlink().then(|| path.canonicalize()).transpose();
        let leads_to = leads_to.with_context(|| format!("cannot follow {}", path.display()))?;
        let path = leads_to.as_deref().unwrap_or(path);
        let name = path.file_name().and_then(|name| Name::new(name.as_bytes()).ok());
        let name =
            name.with_context(|| format!("{} cannot be the name of a file", path.display()))?;
        let dir = path.parent().unwrap_or_else(|| Path::new("."));
        Ok(Self { store: open(dir)?, renamed: Some(name) })
    }
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
    let target = Target::open(target, all.len() > 1 || run.options.several)?;
    let pace = Pace::new(run.options.limit);
    let umask = umask();
    let mut walk = Walk { run, target: &target, umask, directories: Vec::new() };
    crew::run(
        run,
        |jobs| {
            let mut names = BTreeSet::new();
            for source in &all {
                let is_new = split(source).1.is_none_or(|name| names.insert(name));
                let added = match is_new {
                    true => walk.source(source, jobs),
                    false => Err(second(End::There, source)),
                };
                walk.told(added)?;
            }
            run.meter.set_counted();
            Ok(())
        },
        |file| download(run, &pace, (&target.store, umask), &file),
    )?;
    walk.finish()
}

/// Finds the files.
struct Walk<'a> {
    run: &'a Run<'a>,
    target: &'a Target,
    umask: u32,
    /// Directories of this machine with the metadata that they get at the end, outermost first.
    directories: Vec<(StorePath, Attributes)>,
}

type Jobs<'a> = crew::Jobs<'a, Download>;

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
        let client = &self.run.server.client;
        let found = client.attributes(&Request::Stat(from)).map_err(there(from))?;
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
        self.entry(from, found, (to, 0), jobs)
    }

    fn entry(
        &mut self,
        from: &[u8],
        found: Attributes,
        (to, depth): (StorePath, usize),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        self.run.go_on()?;
        match found.kind() {
            Some(Kind::Dir) => self.directory((from, found), to, depth, jobs),
            // A server that tells no mode has files.
            Some(Kind::File) | None => {
                self.run.meter.add_total(1, found.size.unwrap_or_default());
                jobs.add(Download { from: from.to_vec(), to, attributes: found })
            }
            Some(Kind::Link | Kind::Special) => {
                let text = "not a regular file; by SFTP only files and directories are copied";
                Err(Trouble::of(End::There, from, FailureKind::Special, text))
            }
        }
    }

    fn directory(
        &mut self,
        (from, found): (&[u8], Attributes),
        to: StorePath,
        depth: usize,
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        if depth >= DEPTH_MAX {
            let text = "too many directories within each other; does a link lead upwards?";
            return Err(Trouble::of(End::There, from, FailureKind::Link, text));
        }
        let all = entries(self.run, from)?;
        if to != StorePath::ROOT {
            let mode = found.mode.unwrap_or(0o755) & 0o777 & !self.umask | 0o700;
            match self.target.store.make_dir(&to, mode) {
                Err(error) if error.kind == ErrorKind::Exists => {}
                made => made.map_err(stored)?,
            }
        }
        self.directories.push((to.clone(), found));
        for entry in all.into_iter().filter(|entry| !is_draft(&entry.name)) {
            let path = join(from, &entry.name);
            let added = self.below(&path, &entry, (&to, depth), jobs);
            self.told(added)?;
        }
        Ok(())
    }

    fn below(
        &mut self,
        path: &[u8],
        entry: &hikyaku_sftp::Entry,
        (dir, depth): (&StorePath, usize),
        jobs: &Jobs<'_>,
    ) -> Result<(), Trouble> {
        let name = Name::new(&entry.name).map_err(|_| bad_name(path))?;
        let to = dir.join(&name).map_err(|_| bad_name(path))?;
        // Links are followed, as scp does; a server may tell no mode in a listing.
        let is_known =
            matches!(entry.attributes.kind(), Some(Kind::File | Kind::Dir | Kind::Special));
        let found = match is_known && entry.attributes.size.is_some() {
            true => entry.attributes,
            false => {
                let asked = self.run.server.client.attributes(&Request::Stat(path));
                asked.map_err(there(path))?
            }
        };
        self.entry(path, found, (to, depth + 1), jobs)
    }

    /// Gives the directories their modes and times, and brings their names to the disk.
    fn finish(self) -> Result<()> {
        let store = &self.target.store;
        for (path, found) in self.directories.iter().rev() {
            let mode = found.mode.filter(|_| self.run.options.preserve).map(|mode| mode & 0o7777);
            let modified = found.times.filter(|_| self.run.options.preserve);
            let modified = modified.map(|(_, secs)| Time { secs: secs.into(), nanos: 0 });
            let change = Change { mode, modified, ..Change::default() };
            if *path != StorePath::ROOT && (mode.is_some() || modified.is_some()) {
                let changed = store.change(path, &change).map_err(stored);
                if let Err(Trouble::File(end, failure)) = changed {
                    self.run.meter.add_failure(end, &failure);
                }
            }
        }
        if self.run.options.durable {
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
