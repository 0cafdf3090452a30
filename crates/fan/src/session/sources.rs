//! What is uploaded, and where it goes.

use super::{Failed, SessionError, unfit};
use crate::census::{LeftOut, Why};
use crate::choice::{Choice, Selection};
use crate::kind::{Kind, failure_kind};
use crate::layout::{AtTarget, Meant, Renamed, TargetLayout, Written};
use crate::plan::Plan;
use hikyaku_fs::{Name, Shown};
use hikyaku_store::{End, ErrorKind, Kind as FileKind, Led, Store, StorePath};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::{Depth, FailureKind};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Files and directories of this machine that can be read.
pub struct Sources {
    /// The lowest directory above all of them.
    pub store: Arc<dyn Store>,
    all: Vec<Source>,
}

/// A source of this machine.
struct Source {
    /// Its path in the store.
    from: StorePath,
    /// What it is called at the target; `None` if only its contents are meant, as with `dir/.`.
    name: Option<Name>,
    kind: FileKind,
}

impl Sources {
    /// Those of these paths that can be read; the others are noted in `failed`. The user's own links are followed to what
    /// they name.
    ///
    /// # Errors
    ///
    /// None of them can be read.
    pub fn find(
        paths: &[PathBuf],
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
            match std::fs::canonicalize(path) {
                Ok(at) => real.push((path, at)),
                Err(error) => note(path, of_io(&error)),
            }
        }
        let dir = above(real.iter().map(|(_, at)| at.as_path()));
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
            Some(Failed { path, kind, text }) if all.is_empty() => {
                let text = format!("{}: {text}", String::from_utf8_lossy(path));
                Err(SessionError::refused(*kind, text))
            }
            _ => Ok(Self { store, all }),
        }
    }
}

/// Whether a source can be copied as it was chosen.
fn fits(source: &Source, choice: &Choice<'_>) -> Result<(), (Kind, String)> {
    let why = match (source.kind == FileKind::Dir, choice.listed.is_empty()) {
        (true, true) if choice.depth == Depth::File => ErrorKind::IsDir,
        (false, false) => ErrorKind::NotDir,
        _ => return Ok(()),
    };
    Err((why.into(), unfit(why).to_owned()))
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
        .map_err(|error| (Kind::File(failure_kind(error.kind)), error.kind.to_string()))?;
    Ok(Source { from, name, kind: found.kind })
}

/// Tells what each server has of a name.
type Look<'a> = &'a dyn Fn(&StorePath) -> Result<Vec<Option<FileKind>>, SessionError>;

/// Where the sources go in a store, or at the servers.
pub struct Target {
    path: StorePath,
    at: AtTarget,
    written: Written,
    /// Directories that some servers have, and that the others are to have as well.
    parents: Vec<StorePath>,
    shown: String,
}

impl Target {
    /// Asks with `look` what the servers have where the user's path leads. `shown` is that path for people.
    ///
    /// # Errors
    ///
    /// The path is a link that leads nowhere, some servers have a directory there and others a file, there is nothing and no directory for it, or `look` fails.
    pub fn find(
        look: Look<'_>,
        shown: &str,
        (written, led): (Written, Led),
    ) -> Result<Self, SessionError> {
        let shown = shown.to_owned();
        let refused = |text| {
            let text = format!("{shown}: {text}");
            Err(SessionError::refused(ErrorKind::Link, text))
        };
        let path = match led.end {
            End::There | End::Nothing => led.path,
            End::Dangling => return refused("is a symbolic link that leads nowhere"),
            End::Away => return refused("its link leads out of the storage, or to itself"),
        };
        let kinds = look(&path)?;
        let other = kinds.iter().flatten().find(|found| **found != FileKind::Dir);
        let has_dir = kinds.iter().flatten().any(|found| *found == FileKind::Dir);
        let at = match (has_dir, other) {
            (true, Some(_)) => {
                let text = format!("{shown}: is a directory on some servers, and a file on others");
                return Err(SessionError::refused(ErrorKind::NotDir, text));
            }
            (true, None) => AtTarget::Dir,
            (false, Some(kind)) => (*kind).into(),
            (false, None) => AtTarget::Nothing,
        };
        let dir = match at {
            AtTarget::Dir => Some(path.clone()),
            _ => path.split().map(|(dir, _)| dir),
        };
        let dir = dir.unwrap_or(StorePath::ROOT);
        if at == AtTarget::Nothing {
            let above = look(&dir)?;
            if !above.iter().flatten().any(|found| *found == FileKind::Dir) {
                let text = format!("{shown}: there is no directory '{dir}'");
                return Err(SessionError::refused(ErrorKind::NotFound, text));
            }
        }
        let mut parents = Vec::new();
        let mut above = Some(dir);
        while let Some(dir) = above.filter(|dir| *dir != StorePath::ROOT) {
            above = dir.split().map(|(dir, _)| dir);
            parents.push(dir);
        }
        parents.reverse();
        Ok(Self { path, at, written, parents, shown })
    }

    /// What is to be uploaded. What cannot be read is left out, or noted in `failed`.
    ///
    /// # Errors
    ///
    /// The target is no directory, and one is needed.
    pub fn plan(
        self,
        sources: &Sources,
        choice: &Choice<'_>,
        failed: &mut Vec<Failed>,
    ) -> Result<Plan, SessionError> {
        let selection = Selection::new(choice);
        let mut plan = Plan { parents: self.parents.clone(), ..Plan::default() };
        let mut names = BTreeSet::new();
        for source in &sources.all {
            let meant = match (selection.is_list(), &source.name) {
                (true, _) => Meant::List,
                (false, None) => Meant::Contents,
                (false, Some(_)) => Meant::Itself,
            };
            let renamed = Renamed::of(sources.all.len(), meant);
            let (layout, mut to) = self.layout((source.kind, renamed))?;
            if let (TargetLayout::Into, Some(name)) = (layout, &source.name) {
                to = to.join(name).map_err(|error| {
                    SessionError::refused(ErrorKind::BadName, format!("{}: {error}", self.shown))
                })?;
            }
            plan.is_new_tree |= (layout, source.kind) == (TargetLayout::NewName, FileKind::Dir);
            if !names.insert(to.clone()) && meant == Meant::Itself {
                let (path, text) = (source.from.to_string(), "another source has this name");
                failed.push(Failed::new(path.as_bytes(), ErrorKind::Exists, text));
                continue;
            }
            if let Err(error) = plan.add(&sources.store, &source.from, &to, &selection) {
                let path = source.from.as_bytes().to_vec();
                plan.left_out.push(LeftOut { path, why: Why::Server(error.kind) });
            }
        }
        Ok(plan)
    }

    /// What the target means for a source of this kind, and the path that it names.
    pub(super) fn layout(
        &self,
        source: (FileKind, Renamed),
    ) -> Result<(TargetLayout, StorePath), SessionError> {
        let layout = TargetLayout::of((self.at, self.written), source).map_err(|why| {
            SessionError::refused(Kind::File(why.kind()), format!("{}: {why}", self.shown))
        })?;
        Ok((layout, self.path.clone()))
    }
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
