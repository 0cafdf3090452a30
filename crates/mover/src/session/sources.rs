//! Files and directories of one store as sources: of this machine, or of any other.

use super::landed::{Landed, StreamSource};
use super::landing::local;
use super::{Arriving, Destination, Failed, SessionError, Streams, Target, Together, unfit};
use crate::choice::{Choice, Selection};
use crate::fetch::Taking;
use crate::kind::Kind;
use crate::layout::{AtTarget, Meant};
use crate::many;
use crate::plan::Plan;
use hikyaku_fs::{Incoming, Name, PeerPath, Shown};
use hikyaku_store::{ErrorKind, Found, Kind as FileKind, Store, StorePath};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::{Depth, FailureKind, Links, Pass};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Files and directories of a store that can be read.
pub struct Sources {
    /// The store: on this machine, the lowest directory above all of them.
    pub store: Arc<dyn Store>,
    /// The begin of paths of the store in messages: on this machine, the path of that directory with a slash at its end.
    pub root: Vec<u8>,
    /// The address that distinguishes these sources from those of other storages.
    pub(super) origin: String,
    pub(super) all: Vec<Source>,
    /// FIFOs and open descriptors.
    streams: Vec<StreamSource>,
}

/// A source as its user has named it.
#[derive(Clone, Debug)]
pub struct NamedSource {
    /// Its path in the store, without links.
    pub from: StorePath,
    /// Its name at the target; `None` if only its contents are meant, as with `dir/.`.
    pub name: Option<Name>,
    /// The path as it was typed.
    pub typed: Vec<u8>,
}

/// A source that was found.
pub(super) struct Source {
    /// Its path in the store.
    pub(super) from: StorePath,
    /// Its name at the target; `None` if only its contents are meant, as with `dir/.`.
    pub(super) name: Option<Name>,
    pub(super) found: Found,
}

impl Sources {
    /// Those of these paths that can be read; the others are noted in `failed`. Links on them are followed; one that is the
    /// last name of a path stays a link if the user wants that.
    ///
    /// # Errors
    ///
    /// None of them can be read.
    pub fn find(
        paths: &[PathBuf],
        choice: &Choice<'_>,
        failed: &mut Vec<Failed>,
    ) -> Result<Self, SessionError> {
        Self::found((paths, Vec::new()), choice, failed)
    }

    fn found(
        (paths, streams): (&[PathBuf], Vec<StreamSource>),
        choice: &Choice<'_>,
        failed: &mut Vec<Failed>,
    ) -> Result<Self, SessionError> {
        let before = failed.len();
        let mut note = |path: &Path, (kind, text): (Kind, String)| {
            let shown = Shown::new(path.as_os_str().as_bytes()).to_string();
            failed.push(Failed::new(shown.as_bytes(), kind, text));
        };
        let mut real = Vec::new();
        for path in paths {
            match real_path(path, choice) {
                Ok(at) => real.push((path, at)),
                Err(error) => note(path, of_io(&error)),
            }
        }
        // A link may lead anywhere.
        let dir = match choice.links {
            Links::Followed => PathBuf::from("/"),
            Links::Kept => above(real.iter().map(|(_, at)| at.as_path())),
        };
        let (mut all, store) = (Vec::new(), Local::open(&dir, NewModes::default()));
        let store: Arc<dyn Store> = match store {
            Ok(store) => Arc::new(store),
            Err(error) => {
                return Err(SessionError::refused(Kind::File(FailureKind::Io), error.to_string()));
            }
        };
        for (path, at) in &real {
            let source = source(&*store, path, at.strip_prefix(&dir).unwrap_or(at));
            match source.and_then(|source| fits(&source, choice).map(|()| source)) {
                Ok(source) => all.push(source),
                Err(error) => note(path, error),
            }
        }
        match failed.get(before) {
            Some(Failed { path, kind, text }) if all.is_empty() && streams.is_empty() => {
                let text = format!("{}: {text}", String::from_utf8_lossy(path));
                Err(SessionError::refused(*kind, text))
            }
            _ => {
                let slash = if dir.parent().is_some() { &b"/"[..] } else { b"" };
                let root = [dir.as_os_str().as_bytes(), slash].concat();
                let origin = format!("file://{}", dir.display());
                Ok(Self { store, root, origin, all, streams })
            }
        }
    }

    /// As [`Sources::find`], and FIFOs and open descriptors are sources as well.
    ///
    /// # Errors
    ///
    /// There is no source that can be read.
    pub fn find_with_streams(
        paths: &[PathBuf],
        choice: &Choice<'_>,
        failed: &mut Vec<Failed>,
    ) -> Result<Self, SessionError> {
        let (mut streams, mut files) = (Vec::new(), Vec::new());
        for path in paths {
            match stream(path, choice) {
                Some(stream) => streams.push(stream),
                None => files.push(path.clone()),
            }
        }
        Self::found((&files, streams), choice, failed)
    }

    /// Those of these paths of a store that can be read; the others are noted in `failed`. There may be none.
    pub fn in_store(
        (store, root, origin): (Arc<dyn Store>, &[u8], String),
        named: &[NamedSource],
        choice: &Choice<'_>,
        failed: &mut Vec<Failed>,
    ) -> Self {
        let mut all = Vec::new();
        let found = many::look(&*store, named.iter().map(|source| &source.from));
        for (NamedSource { from, name, typed }, found) in named.iter().zip(found) {
            let found = match found {
                Ok(Some(found)) => Ok(found),
                Ok(None) => Err(ErrorKind::NotFound),
                Err(error) => Err(error.kind),
            };
            let source = found.map_err(|kind| (kind.into(), kind.to_string())).map(|found| {
                let (from, name) = (from.clone(), name.clone());
                Source { from, name, found }
            });
            match source.and_then(|source| fits(&source, choice).map(|()| source)) {
                Ok(source) => all.push(source),
                Err((kind, text)) => failed.push(Failed::new(typed, kind, text)),
            }
        }
        Self { store, root: root.to_vec(), origin, all, streams: Vec::new() }
    }

    /// The number of sources that can be read.
    pub fn count(&self) -> usize {
        self.all.len() + self.streams.len()
    }

    /// The plans of a copy to a destination: one for a store or a directory of this machine. Entries that cannot be
    /// read, and a source that cannot be copied beside others, are noted in `failed`.
    ///
    /// # Errors
    ///
    /// No source can be copied to the destination.
    pub fn land(
        &self,
        destination: &Destination<'_>,
        rules: (&Choice<'_>, Together<'_>, &Streams),
        failed: &mut Vec<Failed>,
    ) -> Result<Vec<Landed>, SessionError> {
        let (mut landed, mut first) = (Vec::new(), None);
        for source in &self.streams {
            match Landed::of_stream((source, self.count()), destination, rules) {
                Ok(one) => landed.push(one),
                Err(error) => note(error, source.path.as_bytes(), (&mut first, failed))?,
            }
        }
        if !self.all.is_empty() {
            match self.land_files(destination, rules, failed) {
                Ok(files) => landed.extend(files),
                Err(error) if self.streams.is_empty() => return Err(error),
                Err(error) => note(error, self.names().as_bytes(), (&mut first, failed))?,
            }
        }
        match first {
            Some(error) if landed.is_empty() => Err(error),
            _ => Ok(landed),
        }
    }

    /// The plans of the files and directories.
    fn land_files(
        &self,
        destination: &Destination<'_>,
        (choice, together, streams): (&Choice<'_>, Together<'_>, &Streams),
        failed: &mut Vec<Failed>,
    ) -> Result<Vec<Landed>, SessionError> {
        if let Destination::Store(store, target) = destination {
            let origin = self.names();
            let origin = choice.origin(&origin);
            let first = self.all.first().map_or(FileKind::File, |source| source.found.kind);
            let meant = self.all.first().map_or(Meant::Itself, |source| source.meant(choice));
            let come = (first, together.renamed(self.count(), meant));
            let at = target.at(come, origin);
            let is_stream = at == AtTarget::Stream;
            let taking = if is_stream { Taking::InOrder } else { Taking::AnyOrder };
            let plan = target.plan((self, at), (choice, together), failed)?;
            let origin = origin.filter(|_| choice.pass == Pass::Copy && !is_stream);
            let journal = origin.and_then(|origin| target.journal(&**store, (origin, at)));
            let store = store.clone();
            return Ok(vec![Landed { store, taking, journal, plan }]);
        }
        if let (Destination::Here(path), true) = (destination, self.count() > 1)
            && path.is_dir()
        {
            let target = Target::root(Shown::new(path.as_os_str().as_bytes()).to_string());
            let plan = target.plan((self, AtTarget::Dir), (choice, together), failed)?;
            let origin = self.names();
            let origin = choice.origin(&origin).filter(|_| choice.pass == Pass::Copy);
            let (store, journal) = local((path, None), origin)?;
            return Ok(vec![Landed { store, taking: Taking::AnyOrder, journal, plan }]);
        }
        let (mut landed, mut first) = (Vec::new(), None);
        for source in &self.all {
            match self.land_one(source, destination, (choice, together, streams)) {
                Ok(one) => landed.push(one),
                Err(error) => note(error, source.from.as_bytes(), (&mut first, failed))?,
            }
        }
        match first {
            Some(error) if landed.is_empty() => Err(error),
            _ => Ok(landed),
        }
    }

    /// All of them, as a journal has them.
    fn names(&self) -> String {
        let names: Vec<_> = self.all.iter().map(|source| source.from.to_string()).collect();
        format!("{}: {}", self.origin, names.join(", "))
    }

    fn land_one(
        &self,
        source: &Source,
        destination: &Destination<'_>,
        (choice, together, streams): (&Choice<'_>, Together<'_>, &Streams),
    ) -> Result<Landed, SessionError> {
        let named = match &source.name {
            Some(name) => StorePath::ROOT.join(name).unwrap_or(StorePath::ROOT),
            None => source.from.clone(),
        };
        let renamed = together.renamed(self.count(), source.meant(choice));
        let at = format!("{}: {}", self.origin, source.from);
        let (kind, pass, origin) = (source.found.kind, choice.pass, choice.origin(&at));
        let arriving = Arriving { renamed, kind, pass, streams, origin };
        let landing = destination.landing((&source.from, &named), arriving)?;
        let (base, is_new_tree) = (landing.base.clone(), landing.is_new_tree());
        let mut plan = Plan { base, is_new_tree, ..Plan::default() };
        let from = (&source.from, source.found);
        plan.add(&self.store, from, landing.place(), &Selection::new(choice));
        together.claim(self.count(), &self.origin, &mut plan);
        Ok(Landed { store: landing.store, taking: landing.taking, journal: landing.journal, plan })
    }
}

impl Source {
    pub(super) fn meant(&self, choice: &Choice<'_>) -> Meant {
        match &self.name {
            _ if !choice.listed.is_empty() => Meant::List,
            None => Meant::Contents,
            Some(_) => Meant::Itself,
        }
    }
}

/// Notes a source that cannot be copied to the destination.
///
/// # Errors
///
/// Another one.
fn note(
    error: SessionError,
    path: &[u8],
    (first, failed): (&mut Option<SessionError>, &mut Vec<Failed>),
) -> Result<(), SessionError> {
    let SessionError::Refused { kind, text } = error else { return Err(error) };
    failed.push(Failed::new(path, kind, &text));
    first.get_or_insert(SessionError::Refused { kind, text });
    Ok(())
}

/// The FIFO or open descriptor that a path names. A link to a FIFO stays a link if the user wants that.
fn stream(path: &Path, choice: &Choice<'_>) -> Option<StreamSource> {
    let stream = Incoming::of(path)?;
    let is_kept = matches!(stream, Incoming::Fifo(..))
        && choice.named_links == Links::Kept
        && path.is_symlink();
    let name = Name::new(path.file_name()?.as_bytes()).ok()?;
    let at = std::path::absolute(path).ok()?;
    let at = PeerPath::new(at.strip_prefix("/").ok()?.as_os_str().as_bytes()).ok()?;
    let name = StorePath::ROOT.join(&name).ok()?;
    (!is_kept).then_some(StreamSource { stream, path: at, name })
}

/// Whether a source can be copied as it was chosen.
fn fits(source: &Source, choice: &Choice<'_>) -> Result<(), (Kind, String)> {
    let why = match (source.found.kind == FileKind::Dir, choice.listed.is_empty()) {
        (true, true) if choice.depth == Depth::File => ErrorKind::IsDir,
        (false, false) => ErrorKind::NotDir,
        _ => return Ok(()),
    };
    Err((why.into(), unfit(why).to_owned()))
}

/// The path without links. A link that is its last name is kept if the user wants that, unless it was written as a directory.
fn real_path(path: &Path, choice: &Choice<'_>) -> std::io::Result<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    let is_dir = bytes.ends_with(b"/") || bytes.ends_with(b"/.") || !choice.listed.is_empty();
    match (choice.named_links, path.file_name()) {
        (Links::Kept, Some(name)) if !is_dir => {
            let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
            Ok(std::fs::canonicalize(dir.unwrap_or_else(|| Path::new(".")))?.join(name))
        }
        _ => std::fs::canonicalize(path),
    }
}

/// The lowest directory above all of these paths.
fn above<'a>(mut paths: impl Iterator<Item = &'a Path>) -> PathBuf {
    let parent = |path: &'a Path| path.parent().unwrap_or(path);
    let Some(mut dir) = paths.next().map(parent) else { return PathBuf::from("/") };
    for path in paths.map(parent) {
        while !path.starts_with(dir) {
            dir = parent(dir);
        }
    }
    dir.to_path_buf()
}

fn of_io(error: &std::io::Error) -> (Kind, String) {
    let errno = rustix::io::Errno::from_io_error(error);
    let kind = errno.map_or(ErrorKind::NotFound, ErrorKind::of);
    (kind.into(), kind.to_string())
}

/// The source that the user calls `path`, and which is at `at` in the store.
fn source(store: &dyn Store, path: &Path, at: &Path) -> Result<Source, (Kind, String)> {
    let bad = |error: &dyn ToString| (Kind::File(FailureKind::BadName), error.to_string());
    let is_contents = path.as_os_str().as_bytes().ends_with(b"/.");
    let name = match path.components().next_back() {
        Some(Component::Normal(name)) if !is_contents => Some(name),
        _ => None,
    };
    let name = name.map(|name: &OsStr| Name::new(name.as_bytes())).transpose();
    let name = name.map_err(|error| bad(&error))?;
    let from = StorePath::new(at.as_os_str().as_bytes()).map_err(|error| bad(&error))?;
    let found = store
        .look(&from)
        .map_err(|error| (Kind::File(error.kind.into()), error.kind.to_string()))?;
    Ok(Source { from, name, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_have_the_lowest_directory_above_them_in_common() {
        let table: [(&[&str], &str); 6] = [
            (&["/a/b/c"], "/a/b"),
            (&["/a/b/c", "/a/b/d"], "/a/b"),
            (&["/a/b/c", "/a/bc/d"], "/a"),
            (&["/a/b", "/a/b/c"], "/a"),
            (&["/a", "/"], "/"),
            (&[], "/"),
        ];
        for (paths, wanted) in table {
            assert_eq!(above(paths.iter().map(Path::new)), Path::new(wanted), "{paths:?}");
        }
    }
}
