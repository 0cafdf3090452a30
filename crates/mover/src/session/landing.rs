//! Where the files of a source go: into a directory of this machine, or into a store.

use super::{Dirs, Kind, SessionError, Several, Target as StoreTarget};
use crate::fetch::Taking;
use crate::fetch::resume::discard_all;
use crate::layout::{AtTarget, Renamed, TargetLayout, Written};
use crate::plan::Plan;
use hikyaku_console::begun;
use hikyaku_fs::{FsError, Patience, PeerPath, Shown, Spot, Target, umask};
use hikyaku_job::{Attempt, Base, JournalFile, Opened, Place};
use hikyaku_store::{ErrorKind, Kind as FileKind, Store, StorePath};
use hikyaku_store_local::{Local, NewModes, Opening};
use hikyaku_transfer::{Pass, Resume};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the files of one source go.
pub struct Landing {
    /// The store that receives them.
    pub store: Arc<dyn Store>,
    /// In which order the target takes bytes.
    pub taking: Taking,
    /// The journal, if the next run of the same command may continue what this one leaves.
    pub journal: Option<Opened>,
    /// The path of the source at the servers.
    root: StorePath,
    /// Its place in the store.
    to: StorePath,
    /// The directory of the store that receives it.
    pub(crate) base: StorePath,
    layout: TargetLayout,
    kind: FileKind,
    /// How the store has directories.
    pub(crate) dirs: Dirs,
    /// The servers of the target, if there are several, and the directories that all of them are to have.
    several: Option<(Several, Vec<StorePath>)>,
}

/// A source as it arrives at a target.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// How the target changes the names of the source.
    pub renamed: Renamed,
    /// Whether the source is a directory or a file.
    pub kind: FileKind,
    /// Whether anything is written.
    pub pass: Pass,
    /// Whether it may be a stream.
    pub streams: &'a Streams,
    /// How the next run of the same command finds what this one leaves; `None` if nothing is left.
    pub origin: Option<Origin<'a>>,
}

/// The source of a copy that the same command continues.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The source as its user wrote it, with its storage.
    pub name: &'a str,
    /// The use of what an earlier run has left.
    pub resume: Resume,
}

impl Origin<'_> {
    /// Whether the same command has begun to make the directory of this name, and has not finished.
    fn has_begun(&self, target: &Path) -> bool {
        let above = target.parent().filter(|above| !above.as_os_str().is_empty());
        let above = Base::Dir(above.unwrap_or_else(|| Path::new(".")));
        let name = target.file_name().map(OsStr::as_bytes);
        name.is_some_and(|name| Place::of(self.name, above, Some(name)).is_begun())
    }

    /// Opens the journal. It is closed if another process makes the same copy.
    pub(super) fn open(&self, place: &Place<'_>) -> Option<Opened> {
        let opened = JournalFile::open_at_once(place, self.name).ok()?;
        (opened.journal.is_open() || opened.attempt == Attempt::Beside).then_some(opened)
    }

    /// Removes what earlier runs have left, if its user does not want it.
    pub(super) fn begun(&self, mut opened: Opened, store: &dyn Store) -> Opened {
        if self.resume == Resume::Fresh {
            discard_all(store, &std::mem::take(&mut opened.remains));
        }
        opened
    }
}

/// Whether the target may take bytes in order only, as a FIFO, a device and an open descriptor do.
#[derive(Clone, Debug, Default)]
pub enum Streams {
    /// It has to be a file or a directory.
    #[default]
    Refused,
    /// It may be one. A FIFO is waited for with this patience.
    Written(Patience),
}

impl Landing {
    /// At a path of this machine. A link to a file stands for that file. The source is at `root` and was `named`, by a link if
    /// that differs.
    ///
    /// # Errors
    ///
    /// The target is no directory and has to be one, is a FIFO, a socket or a device that must not be, or is a link that leads
    /// nowhere; the directory cannot be written to; or the name is not possible.
    pub fn new(
        source: (&StorePath, &StorePath),
        target: &Path,
        arriving: Arriving<'_>,
    ) -> Result<Self, SessionError> {
        let written = if has_slash(target) { Written::AsDirectory } else { Written::AsName };
        let (at, spot) = found(target, &arriving)?;
        let at = match (at, arriving.streams) {
            (AtTarget::Stream, Streams::Refused) => AtTarget::Special,
            (at, _) => at,
        };
        let come = (arriving.kind, renamed(source, arriving.renamed));
        let layout = TargetLayout::of((at, written), come);
        let layout =
            layout.map_err(|why| refused(target, Kind::File(why.kind()), &why.to_string()))?;
        let (dir, base) = match layout {
            TargetLayout::Into | TargetLayout::Contents => (target.to_path_buf(), StorePath::ROOT),
            TargetLayout::NewName | TargetLayout::NewContents | TargetLayout::Stream => {
                match spot {
                    Some(spot) => (spot.path, StorePath::from(PeerPath::from(spot.name))),
                    None => new_name(target)?,
                }
            }
        };
        let (store, taking, journal): (Arc<dyn Store>, _, _) = match layout {
            TargetLayout::Stream => (Arc::new(stream(target, arriving)?), Taking::InOrder, None),
            _ => {
                let name = Some(base.as_bytes()).filter(|name| !name.is_empty());
                let origin = arriving.origin.filter(|_| arriving.pass == Pass::Copy);
                let (store, journal) = local((&dir, name), origin)?;
                (store, Taking::AnyOrder, journal)
            }
        };
        let (root, kind, dirs) = (source.0.clone(), arriving.kind, Dirs::Made);
        let (to, base, several) = (base, StorePath::ROOT, None);
        Self { store, taking, journal, root, to, base, layout, kind, dirs, several }.named(source)
    }

    /// At a place of a store that was looked at.
    ///
    /// # Errors
    ///
    /// The target is no directory and has to be one, is a special file, or the name is not possible.
    pub fn in_store(
        source: (&StorePath, &StorePath),
        (store, target): (Arc<dyn Store>, &StoreTarget),
        arriving: Arriving<'_>,
    ) -> Result<Self, SessionError> {
        let come = (arriving.kind, renamed(source, arriving.renamed));
        let several = target.several();
        let origin = arriving.origin.filter(|_| several.is_none());
        let at = target.at(come, origin);
        let (layout, to) = target.layout(at, come)?;
        let (root, taking) = (source.0.clone(), Taking::AnyOrder);
        let (kind, dirs) = (arriving.kind, target.dirs());
        let origin = origin.filter(|_| arriving.pass == Pass::Copy);
        let journal = origin.and_then(|origin| target.journal(&*store, (origin, at)));
        let base = target.base(layout);
        Self { store, taking, journal, root, to, base, layout, kind, dirs, several }.named(source)
    }

    /// With the source's own name where a directory receives it.
    fn named(mut self, (_, named): (&StorePath, &StorePath)) -> Result<Self, SessionError> {
        if let (TargetLayout::Into, Some((_, name))) = (self.layout, named.split()) {
            self.to = self.to.join(&name).map_err(|error| {
                SessionError::refused(ErrorKind::BadName, format!("{named}: {error}"))
            })?;
        }
        Ok(self)
    }

    /// Whether the target is the new name of a directory.
    pub fn is_new_tree(&self) -> bool {
        (self.layout, self.kind) == (TargetLayout::NewName, FileKind::Dir)
    }

    /// The place of a path of the servers; `None` if there can be none.
    pub fn of(&self, path: &PeerPath) -> Option<StorePath> {
        let below = path.as_bytes().strip_prefix(self.root.as_bytes())?;
        let below = below.strip_prefix(b"/").unwrap_or(below);
        let between: &[u8] =
            if below.is_empty() || self.to == StorePath::ROOT { b"" } else { b"/" };
        let place = StorePath::new(&[self.to.as_bytes(), between, below].concat()).ok()?;
        (place != StorePath::ROOT).then_some(place)
    }

    /// Notes in a plan where it goes.
    pub(crate) fn note(&self, plan: &mut Plan) {
        if let Some((several, parents)) = &self.several {
            plan.several = Some(several.clone());
            plan.parents.clone_from(parents);
            plan.roots.push(self.to.clone());
        }
    }

    /// The place of the source itself.
    pub(crate) const fn place(&self) -> &StorePath {
        &self.to
    }

    /// Whether a path of the servers is the source itself.
    pub(crate) fn is_top(&self, path: &PeerPath) -> bool {
        path.as_bytes() == self.root.as_bytes()
    }

    /// Whether a path of the servers is the source itself, and its entries go into a directory that exists.
    pub(crate) fn is_there(&self, path: &PeerPath) -> bool {
        self.layout == TargetLayout::Contents && self.is_top(path)
    }

    /// The directory that has to be made for a source that is one.
    pub(crate) fn new_dir(&self) -> Option<&StorePath> {
        let is_new = self.layout != TargetLayout::Contents && self.kind == FileKind::Dir;
        is_new.then_some(&self.to)
    }
}

/// A directory of this machine that receives a source under this name, if it gets another than its own, and the journal of
/// the copy.
///
/// # Errors
///
/// It is no directory, or cannot be written to.
pub fn local(
    (dir, name): (&Path, Option<&[u8]>),
    origin: Option<Origin<'_>>,
) -> Result<(Arc<dyn Store>, Option<Opened>), SessionError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let modes = NewModes { file: 0o666 & !umask() };
    let mut store = Local::open(dir, modes).map_err(cannot_write)?;
    let opened =
        origin.and_then(|it| Some((it, it.open(&Place::of(it.name, Base::Dir(dir), name))?)));
    if let Some((_, opened)) = &opened {
        store = store.with_token(opened.journal.token());
    }
    let store: Arc<dyn Store> = Arc::new(store.recorded(begun().as_deref()));
    let journal = opened.map(|(origin, opened)| origin.begun(opened, &*store));
    Ok((store, journal))
}

/// How the target changes the name of a source. The root of a server has no name, so its contents are copied.
fn renamed((_, named): (&StorePath, &StorePath), renamed: Renamed) -> Renamed {
    if *named == StorePath::ROOT { Renamed::Contents } else { renamed }
}

/// The result of [`look`], except for a directory that an interrupted run of the same command has begun to make: such a
/// directory counts as missing, and this run makes it.
fn found(target: &Path, arriving: &Arriving<'_>) -> Result<(AtTarget, Option<Spot>), SessionError> {
    let found = look(target)?;
    let is_made = matches!(arriving.renamed, Renamed::Allowed | Renamed::Contents);
    let origin = arriving.origin.filter(|_| is_made && arriving.kind == FileKind::Dir);
    match (found.0, origin) {
        (AtTarget::Dir, Some(origin)) if origin.has_begun(target) => {
            Ok((AtTarget::Nothing, Spot::of(target).ok()))
        }
        _ => Ok(found),
    }
}

/// The kind of entry that has the name of a target, after links are followed; and the name in its directory, if the
/// entry is a file.
fn look(target: &Path) -> Result<(AtTarget, Option<Spot>), SessionError> {
    let of_file = |error: FsError| {
        let kind = ErrorKind::from(error);
        refused(target, kind, &kind.to_string())
    };
    match Target::of(target) {
        Ok(Target::Dir) => Ok((AtTarget::Dir, None)),
        Ok(Target::Name(spot)) => match spot.dir.meta(&spot.name).map_err(of_file)? {
            Some(meta) if meta.kind == hikyaku_fs::Kind::Link => {
                let text = "is a symbolic link that leads nowhere";
                Err(refused(target, ErrorKind::Link, text))
            }
            Some(_) => Ok((AtTarget::File, Some(spot))),
            None => Ok((AtTarget::Nothing, None)),
        },
        Ok(Target::Stream(_)) => Ok((AtTarget::Stream, None)),
        Err(FsError::Special { .. }) => Ok((AtTarget::Special, None)),
        Err(error) => Err(of_file(error)),
    }
}

/// A store that takes the bytes of one file in order.
fn stream(target: &Path, arriving: Arriving<'_>) -> Result<Local, SessionError> {
    let opening = match (arriving.pass, arriving.streams) {
        (Pass::Copy, Streams::Written(patience)) => Opening::Waits(patience.clone()),
        (Pass::Copy, Streams::Refused) | (Pass::DryRun, _) => Opening::Never,
    };
    let opened = Local::of_target(target, NewModes::default(), opening);
    opened.map(|(store, _)| store).map_err(cannot_write)
}

/// The name of a file that is made, and the directory that gets it.
fn new_name(target: &Path) -> Result<(PathBuf, StorePath), SessionError> {
    let name = target.file_name().unwrap_or_else(|| OsStr::new("."));
    let name = PeerPath::new(name.as_bytes()).map_err(|error| {
        refused(target, ErrorKind::BadName, &format!("cannot be the name of a file: {error}"))
    })?;
    let dir = target.parent().unwrap_or_else(|| Path::new("."));
    Ok((dir.to_path_buf(), name.into()))
}

fn has_slash(target: &Path) -> bool {
    target.as_os_str().as_bytes().ends_with(b"/")
}

fn refused(target: &Path, kind: impl Into<Kind>, text: &str) -> SessionError {
    let shown = Shown::new(target.as_os_str().as_bytes());
    SessionError::refused(kind, format!("{shown}: {text}"))
}

fn cannot_write(error: FsError) -> SessionError {
    let text = format!("cannot write to {error}");
    SessionError::refused(ErrorKind::from(error), text)
}

#[cfg(test)]
mod tests;
