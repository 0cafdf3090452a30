//! The place of a store, or of the servers, where the sources go.

use super::{Failed, Origin, SessionError, Several, Sources, Together};
use crate::choice::{Choice, Selection};
use crate::kind::Kind;
use crate::layout::{AtTarget, Meant, Renamed, TargetLayout, Written};
use crate::plan::Plan;
use hikyaku_job::{Base, Opened, Place};
use hikyaku_store::{End, ErrorKind, Kind as FileKind, Led, Store, StorePath};
use std::collections::BTreeSet;

/// Returns the kind of the entry that each server has under a name.
type Look<'a> = &'a dyn Fn(&StorePath) -> Result<Vec<Option<FileKind>>, SessionError>;

/// Where the sources go in a store, or at the servers.
pub struct Target {
    path: StorePath,
    at: AtTarget,
    written: Written,
    /// Directories that some servers have, and that the others are to have as well.
    parents: Vec<StorePath>,
    shown: String,
    dirs: Dirs,
    several: Option<Several>,
}

/// How a store has directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dirs {
    /// Each has to be made.
    Made,
    /// One that has entries exists by them.
    Implied,
}

impl Target {
    /// Asks with `look` what the servers have where the user's path leads. `shown` is that path for people.
    ///
    /// # Errors
    ///
    /// The path is a link that leads nowhere, some servers have a directory there and others a file, there is nothing and
    /// no directory for it, or `look` fails.
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
        Ok(Self { path, at, written, parents, shown, dirs: Dirs::Made, several: None })
    }

    /// This target, at several servers.
    pub(super) fn on(self, several: Several) -> Self {
        Self { several: Some(several), ..self }
    }

    /// The servers, if there are several, and the directories that all of them are to have.
    pub(super) fn several(&self) -> Option<(Several, Vec<StorePath>)> {
        self.several.clone().map(|several| (several, self.parents.clone()))
    }

    /// The root of a store, which is a directory of this machine.
    pub(super) fn root(shown: String) -> Self {
        let (path, at, written) = (StorePath::ROOT, AtTarget::Dir, Written::AsDirectory);
        let parents = Vec::new();
        Self { path, at, written, parents, shown, dirs: Dirs::Made, several: None }
    }

    /// This target, which is a FIFO or a device if it is a special file: its store writes into it.
    #[must_use]
    pub fn with_streams(self) -> Self {
        let at = if self.at == AtTarget::Special { AtTarget::Stream } else { self.at };
        Self { at, ..self }
    }

    /// This target, in a store in which a directory exists as soon as it has an entry.
    #[must_use]
    pub fn with_implied_dirs(self) -> Self {
        Self { dirs: Dirs::Implied, ..self }
    }

    /// The entry that the target names, for a source of this kind from `origin`. A directory that an interrupted run of the
    /// same command has begun to make counts as missing: this run makes it.
    pub(super) fn at(
        &self,
        (kind, renamed): (FileKind, Renamed),
        origin: Option<Origin<'_>>,
    ) -> AtTarget {
        let is_made =
            kind == FileKind::Dir && matches!(renamed, Renamed::Allowed | Renamed::Contents);
        let is_begun = |origin| is_made && self.journaled(origin, AtTarget::Nothing).is_begun();
        match (self.at, origin) {
            (AtTarget::Dir, Some(origin)) if is_begun(origin) => AtTarget::Nothing,
            (at, _) => at,
        }
    }

    /// The place of a journal. That of a target which gets a new name is another one than that of a directory.
    fn journaled<'a>(&'a self, origin: Origin<'_>, at: AtTarget) -> Place<'a> {
        let name = self.path.as_bytes().rsplit(|&byte| byte == b'/').next();
        let name = name.filter(|_| at == AtTarget::Nothing);
        Place::of(origin.name, Base::Address(&self.shown), name)
    }

    /// The journal of a copy from `origin` to this place, if the store keeps unfinished files.
    pub(crate) fn journal(
        &self,
        store: &dyn Store,
        (origin, at): (Origin<'_>, AtTarget),
    ) -> Option<Opened> {
        let place = self.journaled(origin, at);
        let opened = store.abilities().take_up.then(|| origin.open(&place))??;
        Some(origin.begun(opened, store))
    }

    /// The directory that receives the sources.
    pub(crate) fn base(&self, layout: TargetLayout) -> StorePath {
        match layout {
            TargetLayout::Into | TargetLayout::Contents => self.path.clone(),
            TargetLayout::NewName | TargetLayout::NewContents | TargetLayout::Stream => {
                self.path.split().map_or(StorePath::ROOT, |(dir, _)| dir)
            }
        }
    }

    /// How the store has directories.
    pub(crate) const fn dirs(&self) -> Dirs {
        self.dirs
    }

    /// The plan of an upload. Entries that cannot be read are left out, or noted in `failed`.
    ///
    /// # Errors
    ///
    /// The target is no directory, and one is needed.
    pub fn plan(
        &self,
        (sources, at): (&Sources, AtTarget),
        (choice, together): (&Choice<'_>, Together<'_>),
        failed: &mut Vec<Failed>,
    ) -> Result<Plan, SessionError> {
        let selection = Selection::new(choice);
        let (parents, several) = (self.parents.clone(), self.several.clone());
        let mut plan = Plan { parents, several, ..Plan::default() };
        let mut names = BTreeSet::new();
        for source in &sources.all {
            let meant = source.meant(choice);
            let renamed = together.renamed(sources.count(), meant);
            let (layout, mut to) = self.layout(at, (source.found.kind, renamed))?;
            if let (TargetLayout::Into, Some(name)) = (layout, &source.name) {
                to = to.join(name).map_err(|error| {
                    SessionError::refused(ErrorKind::BadName, format!("{}: {error}", self.shown))
                })?;
            }
            plan.base = self.base(layout);
            plan.is_new_tree |=
                (layout, source.found.kind) == (TargetLayout::NewName, FileKind::Dir);
            if !names.insert(to.clone()) && meant == Meant::Itself {
                let (path, text) = (source.from.to_string(), "another source has this name");
                failed.push(Failed::new(path.as_bytes(), ErrorKind::Exists, text));
                continue;
            }
            plan.add(&sources.store, (&source.from, source.found), &to, &selection);
            if (layout, meant) == (TargetLayout::Contents, Meant::List) {
                // A list names what is in the directory, and not the directory.
                plan.dirs.retain(|(dir, _)| *dir != to);
            }
        }
        together.claim(sources.count(), &sources.origin, &mut plan);
        plan.trim(self.dirs);
        Ok(plan)
    }

    /// The layout of a source of this kind at the target, and the path of the target.
    pub(super) fn layout(
        &self,
        at: AtTarget,
        source: (FileKind, Renamed),
    ) -> Result<(TargetLayout, StorePath), SessionError> {
        let layout = TargetLayout::of((at, self.written), source).map_err(|why| {
            SessionError::refused(Kind::File(why.kind()), format!("{}: {why}", self.shown))
        })?;
        Ok((layout, self.path.clone()))
    }
}
