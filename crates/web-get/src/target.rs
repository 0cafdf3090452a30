//! Where a file goes, and whether one that has its name gives way.

use anyhow::{Result, bail};
use hikyaku_console::{ExitCode, with_remedy};
use hikyaku_fs::{Dir, FilePlace, FsError, Kind, Name, Target, umask};
use hikyaku_job::{Base, JournalFile, Opened, Place};
use hikyaku_store::{Access, Store, StorePath, Token};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::{Part, Remains, SEGMENT, SegmentHash, Version};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source of all downloads in the names of their journals. A file continues under another URL too, if its version or its
/// digest is the same.
const SOURCE: &str = "hikyaku get";

/// Whether a file of the same name is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    Refused,
    Replaced,
    /// It is continued, if another program has left it unfinished.
    Continued,
}

/// A name in a directory of this machine.
pub(crate) struct Spot {
    /// The directory.
    dir: PathBuf,
    /// The open directory, and the name.
    pub(crate) place: FilePlace,
}

impl Spot {
    /// The place that the user has named. A file behind a link is meant, and not the link.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let shown = path.as_os_str().as_bytes();
        match Target::of(path)? {
            Target::Name(spot) if !spot.must_be_dir => {
                let place = FilePlace { dir: Arc::new(spot.dir), name: spot.name };
                Ok(Self { dir: spot.path, place })
            }
            Target::Name(_) => Err(FsError::is_no_dir(shown).into()),
            Target::Dir => Err(FsError::is_dir(shown).into()),
            Target::Stream(_) => Err(FsError::is_special(shown).into()),
        }
    }

    /// A name in a directory that the user named. The server has chosen the name: a link that has it is not followed, because
    /// whoever made the link would then choose the file.
    pub(crate) fn within(dir: &Path, name: Name) -> Result<Self> {
        let place = FilePlace { dir: Arc::new(Dir::open(dir)?), name };
        Ok(Self { dir: dir.to_owned(), place })
    }

    /// The path, through no symbolic link: equal for all ways to write it.
    pub(crate) fn path(&self) -> PathBuf {
        let dir = self.dir();
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        dir.join(self.place.name.as_os_str())
    }

    /// Whether the file that has the name is the one of this version that an earlier attempt has completed: that was killed
    /// before it could remove its journal.
    pub(crate) fn is_named(&self, store: &dyn Store, opened: &Opened, version: Version) -> bool {
        let name = self.place.name.as_bytes();
        let Some(Remains::Part(part)) = opened.remains.get(name) else { return false };
        let mut all = part.proven.clone();
        part.claimed.runs().iter().for_each(|(first, hashes)| all.insert_run(*first, hashes));
        let path = StorePath::ROOT.join(&self.place.name);
        let open = path.ok().and_then(|path| store.open(&path, Access::Read).ok());
        let Some(open) = open.filter(|_| version == part.record.version && all.is_whole()) else {
            return false;
        };
        let (geometry, mut bytes) = (all.file(), vec![0; SEGMENT as usize]);
        geometry.indices().all(|index| {
            let range = geometry.range(index).unwrap_or_default();
            let bytes = &mut bytes[..(range.end - range.start) as usize];
            let is_read =
                open.read_at(range.start, bytes).is_ok_and(|length| length == bytes.len());
            is_read && SegmentHash::new(geometry, index, bytes) == all.get(index)
        })
    }

    fn dir(&self) -> &Path {
        if self.dir.as_os_str().is_empty() { Path::new(".") } else { &self.dir }
    }

    fn journal(&self) -> Place<'_> {
        Place::of(SOURCE, Base::Dir(self.dir()), Some(self.place.name.as_bytes()))
    }

    /// Whether an earlier attempt has left a journal.
    pub(crate) fn is_begun(&self) -> bool {
        self.journal().is_begun()
    }

    /// The directory as a store, and the journal of the file, which comes `from` this URL.
    pub(crate) fn open(&self, from: &str) -> Result<(Arc<dyn Store>, Opened)> {
        let opened = JournalFile::open(&self.journal(), from)?;
        let store = Local::open(self.dir(), NewModes { file: 0o666 & !umask() })?;
        Ok((Arc::new(store.with_token(opened.journal.token())), opened))
    }
}

impl Existing {
    /// Refuses to replace what is there, if the user does not want that; a device is never replaced.
    pub(crate) fn check(self, place: &FilePlace) -> Result<()> {
        let Some(meta) = place.dir.meta(&place.name)? else { return Ok(()) };
        let shown = place.name.shown();
        let exists = |what: &str| {
            let error = ExitCode::WillFail.error(format!("{shown} exists{what}"));
            let remedy = match self {
                Self::Continued => {
                    "a server that sends parts, --force in place of -c, or -o FILE for another name"
                }
                Self::Refused | Self::Replaced => {
                    "--force to replace it, -c to continue it, or -o FILE for another name"
                }
            };
            Err(with_remedy(error, Some(remedy)))
        };
        match meta.kind {
            Kind::File | Kind::Link if self == Self::Replaced => Ok(()),
            Kind::File => exists(""),
            Kind::Link => exists(" and is a symbolic link"),
            Kind::Dir | Kind::Special => {
                bail!(ExitCode::WillFail.error(format!("{shown} exists and is no file")))
            }
        }
    }
}

/// Removes what an earlier attempt has left of a file.
pub(crate) fn discard(store: &dyn Store, opened: &Opened) {
    for (path, remains) in &opened.remains {
        if let Remains::Part(Part { record, .. }) | Remains::Void(record) = remains
            && let Ok(path) = StorePath::new(path)
            && let Ok(draft) = store.take_up(&path, &Token(record.partial.clone()))
        {
            draft.discard();
        }
    }
}
