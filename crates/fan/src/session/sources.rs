//! What is uploaded, and where it goes.

use super::{Failed, SessionError, unfit};
use crate::census::{LeftOut, Why};
use crate::choice::{Choice, Selection};
use crate::kind::{Kind, failure_kind};
use crate::upload::UploadPlan;
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
    all: Vec<Source>,
}

/// A source of this machine.
struct Source {
    /// The directory that has it, and its path there.
    store: Arc<dyn Store>,
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
        let (mut all, before) = (Vec::new(), failed.len());
        for path in paths {
            let shown = Shown::new(path.as_os_str().as_bytes()).to_string();
            match source(path) {
                Ok(source) => match fits(&source, choice) {
                    Ok(()) => all.push(source),
                    Err(kind) => failed.push(Failed::new(shown.as_bytes(), kind, unfit(kind))),
                },
                Err((kind, text)) => failed.push(Failed::new(shown.as_bytes(), kind, text)),
            }
        }
        match failed.get(before) {
            Some(Failed { path, kind, text }) if all.is_empty() => {
                let text = format!("{}: {text}", String::from_utf8_lossy(path));
                Err(SessionError::refused(*kind, text))
            }
            _ => Ok(Self { all }),
        }
    }
}

/// Whether a source can be copied as it was chosen.
fn fits(source: &Source, choice: &Choice<'_>) -> Result<(), ErrorKind> {
    match (source.kind == FileKind::Dir, choice.listed.is_empty()) {
        (true, true) if choice.depth == Depth::File => Err(ErrorKind::IsDir),
        (false, false) => Err(ErrorKind::NotDir),
        _ => Ok(()),
    }
}

/// Finds a source.
fn source(path: &Path) -> Result<Source, (Kind, String)> {
    let io = |error: std::io::Error| {
        let errno = rustix::io::Errno::from_io_error(&error);
        let kind = errno.map_or(ErrorKind::NotFound, ErrorKind::of);
        (kind.into(), kind.to_string())
    };
    let bad = |error: &dyn ToString| (Kind::File(FailureKind::BadName), error.to_string());
    let real = std::fs::canonicalize(path).map_err(io)?;
    let (dir, from) = match (real.parent(), real.file_name()) {
        (Some(dir), Some(name)) => (dir, name.as_bytes()),
        _ => (Path::new("/"), &b""[..]),
    };
    let is_contents = path.as_os_str().as_bytes().ends_with(b"/.");
    let name = match path.components().next_back() {
        Some(Component::Normal(name)) if !is_contents => Some(name),
        _ => None,
    };
    let name = name.map(|name: &OsStr| Name::new(name.as_bytes())).transpose();
    let name = name.map_err(|error| bad(&error))?;
    let from = StorePath::new(from).map_err(|error| bad(&error))?;
    let store = Local::open(dir, NewModes::default());
    let store: Arc<dyn Store> =
        Arc::new(store.map_err(|error| (Kind::File(FailureKind::Io), error.to_string()))?);
    let found = store
        .look(&from)
        .map_err(|error| (Kind::File(failure_kind(error.kind)), error.kind.to_string()))?;
    Ok(Source { store, from, name, kind: found.kind })
}

/// Tells what each server has of a name.
type Look<'a> = &'a dyn Fn(&StorePath) -> Result<Vec<Option<FileKind>>, SessionError>;

/// Where the sources go at the servers, as scp has it.
pub struct Target {
    path: StorePath,
    /// As the user wrote it, where links may lead to the path.
    named: StorePath,
    kind: TargetKind,
    /// Directories that some servers have, and that the others are to have as well.
    parents: Vec<StorePath>,
    shown: String,
}

/// What is at the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TargetKind {
    /// A directory, which receives the sources.
    Dir,
    /// Something else, which a single file replaces.
    Other,
    /// Nothing: it is the new name of a single source.
    New,
}

impl Target {
    /// Asks with `look` what the servers have where the user's path `named` leads. `shown` is that path for people.
    ///
    /// # Errors
    ///
    /// The path is a link that leads nowhere, some servers have a directory there and others a file, there is nothing and no directory for it, or `look` fails.
    pub fn find(
        look: Look<'_>,
        shown: &str,
        (named, led): (StorePath, Led),
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
        let has = |kind: FileKind| kinds.iter().flatten().any(|found| *found == kind);
        let is_other = kinds.iter().flatten().any(|found| *found != FileKind::Dir);
        if has(FileKind::Dir) && is_other {
            let text = format!("{shown}: is a directory on some servers, and a file on others");
            return Err(SessionError::refused(ErrorKind::NotDir, text));
        }
        let (kind, dir) = match (has(FileKind::Dir), is_other) {
            (true, _) => (TargetKind::Dir, Some(path.clone())),
            (false, true) => (TargetKind::Other, path.split().map(|(dir, _)| dir)),
            (false, false) => (TargetKind::New, path.split().map(|(dir, _)| dir)),
        };
        let dir = dir.unwrap_or(StorePath::ROOT);
        if kind == TargetKind::New {
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
        Ok(Self { path, named, kind, parents, shown })
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
    ) -> Result<UploadPlan, SessionError> {
        let selection = Selection::new(choice);
        let is_tree = |source: &Source| source.kind == FileKind::Dir && source.name.is_some();
        let mut plan = UploadPlan {
            parents: self.parents.clone(),
            is_new_tree: self.kind == TargetKind::New
                && !selection.is_list()
                && sources.all.iter().any(is_tree),
            ..UploadPlan::default()
        };
        let mut names = BTreeSet::new();
        for source in &sources.all {
            let is_contents = selection.is_list() || source.name.is_none();
            let to = match selection.is_list() {
                true if self.kind == TargetKind::Other => {
                    let text = format!("{}: is not a directory", self.shown);
                    return Err(SessionError::refused(ErrorKind::NotDir, text));
                }
                true => self.path.clone(),
                false => self.place(source, (sources.all.len() > 1, choice))?,
            };
            if !names.insert(to.clone()) && !is_contents {
                let (path, text) = (source.from.to_string(), "another source has this name");
                failed.push(Failed::new(path.as_bytes(), ErrorKind::Exists, text));
                continue;
            }
            if let Err(error) = plan.add(&source.store, &source.from, &to, &selection) {
                let path = source.from.as_bytes().to_vec();
                plan.left_out.push(LeftOut { path, why: Why::Server(error.kind) });
            }
        }
        Ok(plan)
    }

    /// The place of one source.
    fn place(
        &self,
        source: &Source,
        (are_several, choice): (bool, &Choice<'_>),
    ) -> Result<StorePath, SessionError> {
        let is_file_in_dir = source.kind != FileKind::Dir && choice.dirs.contains(&self.named);
        match (self.kind, &source.name) {
            (TargetKind::New, _) if is_file_in_dir => {
                let text = format!("{}: no such directory", self.shown);
                Err(SessionError::refused(ErrorKind::NotFound, text))
            }
            (TargetKind::Dir, Some(name)) => {
                let place = self.path.join(name);
                place.map_err(|error| {
                    SessionError::refused(ErrorKind::BadName, format!("{}: {error}", self.shown))
                })
            }
            (TargetKind::Dir, None) => Ok(self.path.clone()),
            (TargetKind::New, _) if are_several => {
                let text =
                    format!("{}: no such directory, and several sources need one", self.shown);
                Err(SessionError::refused(ErrorKind::NotFound, text))
            }
            (TargetKind::Other, _)
                if are_several || is_file_in_dir || source.kind == FileKind::Dir =>
            {
                let text = format!("{}: is not a directory", self.shown);
                Err(SessionError::refused(ErrorKind::NotDir, text))
            }
            (TargetKind::New | TargetKind::Other, _) => Ok(self.path.clone()),
        }
    }
}
