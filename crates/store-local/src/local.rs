//! The store on a local directory.

use crate::convert::{Sizes, found, owner, set_attributes, time};
use crate::draft::LocalDraft;
use crate::grown::Grown;
use crate::listing::page;
use crate::open::LocalOpen;
use crate::whole::Folder;
use hikyaku_fs::{
    Dir, FsError, Meta, Name, Patience, Spot, Stream, Target, Token as Copy, Volumes, attributes,
};
use hikyaku_store::{
    Abilities, Ability, Access, Attribute, Begun, Change, Cursor, Doing, Draft, Entry, ErrorKind,
    Found, Growing, Kind, Make, Note, Op, Open, Page, Place, Replace, Reply, Result, Root, Space,
    Store, StorePath, Token, doing, follow_by_names, left_here,
};
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A directory of this machine as a store.
#[derive(Debug)]
pub struct Local {
    pub(crate) root: Dir,
    /// The meaning of the root for absolute links.
    meaning: Root,
    modes: NewModes,
    /// The token in the names of this store's drafts.
    group: Copy,
    /// Where its drafts are noted.
    recorded: Option<Recorded>,
    sizes: Sizes,
    /// The target that its user named, if it takes bytes in order only.
    stream: Option<Pour>,
    /// Where small files were written that are synced together.
    volumes: Volumes,
}

/// The mode bits of a file that grant no rights of its owner.
const PERMISSIONS: u32 = 0o1777;

/// Where the drafts of a store are noted.
#[derive(Debug)]
struct Recorded {
    folder: PathBuf,
    /// The path of the root.
    root: PathBuf,
    /// Begun with the first draft; `None` if the folder cannot be used.
    begun: OnceLock<Option<Arc<Begun>>>,
}

impl Recorded {
    /// `None` if the directory has no path any more.
    fn new(folder: &Path, root: &Dir) -> Option<Self> {
        let root = format!("/proc/self/fd/{}", root.as_fd().as_raw_fd());
        let root = std::fs::read_link(root).ok()?;
        Some(Self { folder: folder.to_owned(), root, begun: OnceLock::new() })
    }
}

/// A name in the root, and what is written into for the first draft of it.
#[derive(Debug)]
struct Pour {
    name: Name,
    open: Mutex<Option<Stream>>,
}

/// A target that takes bytes in order only, before and after its first use.
#[derive(Debug)]
pub enum Opening {
    /// It is opened. A FIFO is waited for with this patience.
    Waits(Patience),
    /// It is not opened, since nothing is to be written.
    Never,
}

/// Permission bits of new files for which the caller names none. The application subtracts the
/// user's umask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewModes {
    /// Permission bits of new files.
    pub file: u32,
}

impl Default for NewModes {
    /// As under a umask of 022.
    fn default() -> Self {
        Self { file: 0o644 }
    }
}

impl Local {
    /// The store of the tree beneath `root`. Symbolic links in `root` itself are followed, because
    /// the user named it. The store of `/` follows absolute links ([`Store::follow`]).
    ///
    /// # Errors
    ///
    /// `root` is not a directory or cannot be opened, or the system has no random numbers.
    pub fn open(root: &Path, modes: NewModes) -> std::result::Result<Self, FsError> {
        let meaning = if root == Path::new("/") { Root::OfAll } else { Root::Somewhere };
        Ok(Self { meaning, ..Self::within(Dir::open(root)?, modes)? })
    }

    fn within(root: Dir, modes: NewModes) -> std::result::Result<Self, FsError> {
        Ok(Self {
            root,
            meaning: Root::Somewhere,
            modes,
            group: Copy::random()?,
            recorded: None,
            sizes: Sizes::AsTold,
            stream: None,
            volumes: Volumes::default(),
        })
    }

    /// The store, with another kind for files of unknown size.
    #[must_use]
    pub const fn with_sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self
    }

    /// The store, with records for writing. It records its drafts in `folder`, and removes the drafts of killed processes in
    /// this and in other stores. Files that a process writes to are kept. Without a folder, or with one that cannot be used,
    /// nothing is recorded.
    pub fn recorded(self, folder: Option<&Path>) -> Self {
        let Some(folder) = folder else { return self };
        left_here(folder);
        let recorded = Recorded::new(folder, &self.root);
        Self { recorded, ..self }
    }

    /// The store, whose drafts have this token in their names: that of a journal in which the caller records them.
    #[must_use]
    pub const fn with_token(mut self, token: Copy) -> Self {
        self.group = token;
        self
    }

    /// Notes a draft that is to be made.
    fn note(&self, dir: &StorePath, partial: &Name) -> Option<Note> {
        let recorded = self.recorded.as_ref()?;
        let begin = || Begun::new(&recorded.folder, recorded.root.as_os_str().as_bytes()).ok();
        let begun = recorded.begun.get_or_init(begin).as_ref()?;
        begun.note(dir.join(partial).ok()?.as_bytes())
    }

    /// The store of the tree beneath `path`, which is a path of this one and is reached through no symbolic link.
    ///
    /// # Errors
    ///
    /// `path` is not a directory, a symbolic link is in it, it cannot be opened, or the system has no random numbers.
    pub fn below(&self, path: &StorePath) -> std::result::Result<Self, FsError> {
        let root = self.dir(path)?;
        let recorded = self.recorded.as_ref().and_then(|it| Recorded::new(&it.folder, &root));
        Ok(Self { recorded, sizes: self.sizes, ..Self::within(root, self.modes)? })
    }

    /// The store in which a file lands that is copied to `target`, which the user named, and its name there; no name if
    /// `target` is a directory. The first draft of that name writes
    /// into a target that takes bytes in order only (a device, a FIFO, `/dev/stdout`).
    ///
    /// # Errors
    ///
    /// See [`Target::of`] and [`Self::open`].
    pub fn of_target(
        target: &Path,
        modes: NewModes,
        opening: Opening,
    ) -> std::result::Result<(Self, Option<Name>), FsError> {
        let (spot, stream) = match Target::of(target)? {
            Target::Dir => return Ok((Self::open(target, modes)?, None)),
            Target::Name(spot) => (spot, None),
            Target::Stream(device) => {
                let spot = Spot::of(target)?;
                let open = match opening {
                    Opening::Waits(patience) => Some(device.open(patience)?),
                    Opening::Never => None,
                };
                let pour = Pour { name: spot.name.clone(), open: Mutex::new(open) };
                (spot, Some(pour))
            }
        };
        let store = Self { stream, ..Self::within(spot.dir, modes)? };
        Ok((store, Some(spot.name)))
    }

    /// A directory in which small files are written.
    ///
    /// # Errors
    ///
    /// There is none at `path`.
    pub fn folder(&self, path: &StorePath) -> Result<Folder<'_>> {
        let dir = Arc::new(doing("create in", path).or(self.dir(path))?);
        let device = self.volumes.note(&dir);
        Ok(Folder { store: self, volume: self.volumes.get(device), dir, path: path.clone() })
    }

    /// A draft in a directory of this store.
    pub(crate) fn draft_in(
        &self,
        (dir, name): (Arc<Dir>, &Name),
        (path, make): (&StorePath, &Make),
    ) -> Result<LocalDraft> {
        let doing = doing("create", path);
        let partial = doing.or(self.group.partial(name))?;
        // Noted first: whenever this process is killed, a later one knows of it.
        let note = path.split().and_then(|(dir, _)| self.note(&dir, &partial));
        let draft = doing.or(hikyaku_fs::Draft::make(dir, name, partial))?;
        Ok(LocalDraft::new(draft, path.clone(), self.modes.file, make).noted(note))
    }

    /// Whether this name in the root is the target that takes bytes in order only.
    pub fn is_stream(&self, name: &Name) -> bool {
        self.stream.as_ref().is_some_and(|pour| pour.name == *name)
    }

    /// The stream at `path`, for the first who asks; no stream if that is none.
    fn take_stream(&self, path: &StorePath) -> Option<(Stream, Name)> {
        let (dir, name) = path.split()?;
        let pour =
            self.stream.as_ref().filter(|pour| dir == StorePath::ROOT && pour.name == name)?;
        let stream = pour.open.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some((stream, name))
    }

    /// Permission bits of new files for which the caller names none.
    pub(crate) const fn new_mode(&self) -> u32 {
        self.modes.file
    }

    pub(crate) const fn sizes(&self) -> Sizes {
        self.sizes
    }

    pub(crate) fn dir(&self, path: &StorePath) -> std::result::Result<Dir, FsError> {
        match path.below_root() {
            Some(path) => self.root.dir(path),
            None => self.root.again(),
        }
    }

    /// The directory that holds `path`, and its name there. Names of drafts are not found.
    pub(crate) fn parent(&self, doing: Doing<'_>) -> Result<(Dir, Name)> {
        let Some((dir, name)) = doing.path().split() else {
            return doing.fail(ErrorKind::IsDir);
        };
        let dir = doing.or(self.dir(&dir))?;
        if Copy::of(&name).is_some() {
            return doing.fail(ErrorKind::NotFound);
        }
        Ok((dir, name))
    }

    /// The directory and the name of an entry that is to be created.
    pub(crate) fn parent_of_new(&self, doing: Doing<'_>) -> Result<(Dir, Name)> {
        match self.parent(doing) {
            Err(error) if error.kind == ErrorKind::IsDir => doing.fail(ErrorKind::Exists),
            Err(error) if error.kind == ErrorKind::NotFound && is_draft(doing.path()) => {
                doing.fail(ErrorKind::BadName)
            }
            parent => parent,
        }
    }

    pub(crate) fn meta(&self, doing: Doing<'_>) -> Result<Found> {
        if doing.path().below_root().is_none() {
            return doing.or(Meta::of(&self.root)).map(|meta| found(&meta));
        }
        let (dir, name) = self.parent(doing)?;
        match doing.or(dir.meta(&name))? {
            Some(meta) => Ok(self.sizes.found(&meta, &dir)),
            None => doing.fail(ErrorKind::NotFound),
        }
    }
}

fn is_draft(path: &StorePath) -> bool {
    path.split().is_some_and(|(_, name)| Copy::of(&name).is_some())
}

impl Store for Local {
    fn abilities(&self) -> Abilities {
        Abilities {
            update: true,
            rename: true,
            name_if_absent: true,
            links: true,
            modes: true,
            times: true,
            attributes: true,
            holes: true,
            take_up: true,
            replicas: false,
            unnamed: true,
            ..Abilities::default()
        }
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        self.meta(doing("look at", path))
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        let doing = doing("list", dir);
        let open = doing.or(self.dir(dir))?;
        page((&open, self.sizes), after, room.max(1), doing)
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let doing = doing("open", path);
        let Some(below) = path.below_root().filter(|_| !is_draft(path)) else {
            let kind = if is_draft(path) { ErrorKind::NotFound } else { ErrorKind::IsDir };
            return doing.fail(kind);
        };
        let file = doing.or(match access {
            Access::Read => self.root.read(below),
            Access::Update => self.root.write(below),
        })?;
        let meta = doing.or(Meta::of(&file))?;
        match self.sizes.found(&meta, &file).kind {
            Kind::File => Ok(Box::new(LocalOpen::new(file, path.clone(), access, meta))),
            Kind::Dir => doing.fail(ErrorKind::IsDir),
            Kind::Link => doing.fail(ErrorKind::Link),
            Kind::Special => doing.fail(ErrorKind::of(Errno::NXIO)),
        }
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let doing = doing("create", path);
        let (dir, name) = self.parent_of_new(doing)?;
        let dir = Arc::new(dir);
        if let Some((stream, name)) = self.take_stream(path) {
            let draft = hikyaku_fs::Draft::stream(stream, dir, name);
            let make = Make::default();
            return Ok(Box::new(LocalDraft::new(draft, path.clone(), self.modes.file, &make)));
        }
        Ok(Box::new(self.draft_in((dir, &name), (path, make))?))
    }

    fn grow(&self, path: &StorePath, make: &Make, growing: Growing) -> Result<Box<dyn Draft>> {
        Ok(Box::new(Grown::open(self, path, (make, growing))?))
    }

    fn take_up(&self, path: &StorePath, token: &Token) -> Result<Box<dyn Draft>> {
        let doing = doing("resume", path);
        let (dir, name) = self.parent_of_new(doing)?;
        let partial =
            Name::new(&token.0).ok().filter(|partial| Copy::is_partial_of(partial, &name));
        let Some(partial) = partial else { return doing.fail(ErrorKind::NotFound) };
        let draft = doing.or(hikyaku_fs::Draft::take_up(Arc::new(dir), partial, &name))?;
        Ok(Box::new(LocalDraft::taken_up(draft, path.clone(), self.modes.file)))
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        let doing = doing("make the directory", path);
        let (dir, name) = self.parent_of_new(doing)?;
        let made = doing.or(dir.make_new_dir(&name))?;
        doing.or(Meta::set_dir_mode(&made, mode))
    }

    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()> {
        let doing = doing("make the link", path);
        let (dir, name) = self.parent_of_new(doing)?;
        doing.or(dir.make_link(&name, text))
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        let doing = doing("read the link", path);
        let (dir, name) = self.parent(doing)?;
        doing.or(dir.read_link(&name))
    }

    fn remove(&self, path: &StorePath, wanted: Kind) -> Result<()> {
        let doing = doing("remove", path);
        let (dir, name) = match self.parent(doing) {
            Err(error) if error.kind == ErrorKind::IsDir => return doing.fail(ErrorKind::Busy),
            parent => parent?,
        };
        let have = self.meta(doing)?.kind;
        match (have, wanted) {
            (Kind::Dir, Kind::Dir) => doing.or(dir.remove_dir(&name)),
            (Kind::Dir, _) => doing.fail(ErrorKind::IsDir),
            (_, Kind::Dir) => doing.fail(ErrorKind::NotDir),
            _ if have == wanted => doing.or(dir.remove_file(&name)),
            _ => doing.fail(ErrorKind::Changed),
        }
    }

    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        let (source, target) = (doing("rename", from), doing("rename to", to));
        let (from_dir, from) = self.parent(source)?;
        let (to_dir, to) = self.parent_of_new(target)?;
        let refused = hikyaku_fs::Replace::Refused;
        let renamed = match replace {
            Replace::Allowed => from_dir.rename(&from, &to_dir, &to, hikyaku_fs::Replace::Allowed),
            Replace::Never => from_dir.rename(&from, &to_dir, &to, refused),
            Replace::Exchange => from_dir.exchange(&from, &to_dir, &to),
        };
        match (renamed, replace) {
            // EINVAL: the file system does not support the flag (rename(2)), or a directory would
            // be moved below itself.
            (Err(error), Replace::Never | Replace::Exchange)
                if error.errno() == Some(Errno::INVAL)
                    && !to_dir_is_below(source.path(), target.path()) =>
            {
                let ability = match replace {
                    Replace::Exchange => Ability::Exchange,
                    Replace::Allowed | Replace::Never => Ability::NameIfAbsent,
                };
                source.fail(ErrorKind::Unsupported(ability))
            }
            (renamed, _) => source.or(renamed),
        }
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        let doing = doing("change", path);
        let meta = self.meta(doing)?;
        if meta.kind == Kind::Link {
            return self.change_link(doing, change);
        }
        let (owner, modified) = (change.owner.map(owner), change.modified.map(time));
        if meta.kind == Kind::Dir {
            let dir = doing.or(self.dir(path))?;
            owner.map_or(Ok(()), |owner| doing.or(Meta::set_owner(&dir, owner)))?;
            change.mode.map_or(Ok(()), |mode| doing.or(Meta::set_dir_mode(&dir, mode)))?;
            modified.map_or(Ok(()), |time| doing.or(Meta::set_modified(&dir, time)))?;
            return set_attributes(doing, &dir, &change.attributes);
        }
        let Some(below) = path.below_root() else { return Ok(()) };
        // fsetxattr(2) and futimens(2) need a descriptor, but no right to read.
        let opened = self.root.read(below).or_else(|_| self.root.write(below));
        let file = doing.or(opened)?;
        set_attributes(doing, &file, &change.attributes)?;
        owner.map_or(Ok(()), |owner| doing.or(Meta::set_owner(&file, owner)))?;
        // The sticky bit of a file grants nothing.
        let set = |mode| doing.or(Meta::set_all_bits(&file, mode & PERMISSIONS));
        change.mode.map_or(Ok(()), set)?;
        modified.map_or(Ok(()), |time| doing.or(Meta::set_modified(&file, time)))
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        let doing = doing("read the attributes of", path);
        let all = match (self.meta(doing)?.kind, path.below_root()) {
            (Kind::File, Some(below)) => attributes(doing.or(self.root.read(below))?),
            (Kind::Dir, _) => attributes(doing.or(self.dir(path))?),
            _ => Ok(Vec::new()),
        };
        let all = doing.or(all)?;
        Ok(all.into_iter().map(|(name, value)| Attribute { name, value }).collect())
    }

    fn space(&self) -> Result<Space> {
        let (free, total, files) = doing("look at", &StorePath::ROOT).or(self.root.space())?;
        Ok(Space { free, total, files })
    }

    fn follow(&self, path: &StorePath) -> Result<(StorePath, Found)> {
        follow_by_names(self, path, self.meaning)
    }

    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.look(path).map(|_| Vec::new())
    }

    fn walk(&self, root: &StorePath, each: &mut dyn FnMut(Entry) -> ControlFlow<()>) -> Result<()> {
        self.walk_beneath(root, each)
    }

    fn batch(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        self.do_all(ops, each);
    }

    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        dirs.iter().try_for_each(|path| {
            let doing = doing("sync", path);
            doing.or(self.dir(path).and_then(|dir| dir.sync()))
        })
    }
}

/// Whether `to` is `from` or below it.
fn to_dir_is_below(from: &StorePath, to: &StorePath) -> bool {
    let mut names = to.names();
    from.names().all(|name| names.next() == Some(name))
}
