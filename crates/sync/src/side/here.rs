//! A directory of this machine. It is a store: nothing outside it is reached through a symbolic link.

use super::{Done, Item, Kind, Meta, Setting, Side, What, Why};
use blake3::Hash;
use hikyaku_fs::{FsError, umask};
use hikyaku_store::{Access, Change, ErrorKind, Found, Replace, Store, StoreError, StorePath};
use hikyaku_store_local::{Local, NewModes};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Entries of a page of a listing.
const PAGE_ENTRIES: usize = 10_000;
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// A directory of this machine.
pub(crate) struct Here {
    store: Local,
    root: PathBuf,
    umask: u32,
}

impl Here {
    pub(crate) fn open(root: &Path) -> Result<Self, FsError> {
        let store = Local::open(root, NewModes { file: 0o600 })?;
        Ok(Self { store, root: root.to_path_buf(), umask: umask() })
    }

    /// What a name says if it is a link.
    fn link(&self, path: &StorePath, kind: Kind) -> Option<Done<Vec<u8>>> {
        let read = || self.store.read_link(path).map_err(|error| why(&error));
        (kind == Kind::Link).then(read)
    }
}

fn why(error: &StoreError) -> Why {
    let what = if error.kind == ErrorKind::NotFound { What::Absent } else { What::Name };
    Why { text: error.kind.to_string(), what }
}

fn path(bytes: &[u8]) -> Done<StorePath> {
    StorePath::new(bytes).map_err(|error| Why::of_name(error.to_string()))
}

const fn kind_of(kind: hikyaku_store::Kind) -> Kind {
    match kind {
        hikyaku_store::Kind::File => Kind::File,
        hikyaku_store::Kind::Dir => Kind::Dir,
        hikyaku_store::Kind::Link => Kind::Link,
        hikyaku_store::Kind::Special => Kind::Special,
    }
}

const fn store_kind(kind: Kind) -> hikyaku_store::Kind {
    match kind {
        Kind::File => hikyaku_store::Kind::File,
        Kind::Dir => hikyaku_store::Kind::Dir,
        Kind::Link => hikyaku_store::Kind::Link,
        Kind::Special => hikyaku_store::Kind::Special,
    }
}

const fn meta(found: &Found) -> Meta {
    let (kind, mode) = (kind_of(found.kind), found.mode);
    let identity = Some(found.identity);
    Meta { kind, size: found.size, mode, modified: found.modified, identity }
}

impl Side for Here {
    fn look(&self, at: &[u8]) -> Done<Meta> {
        self.store.look(&path(at)?).map(|found| meta(&found)).map_err(|error| why(&error))
    }

    fn entry(&self, at: &[u8]) -> Done<Item> {
        let path = path(at)?;
        let name = path.split().map(|(_, name)| name.as_bytes().to_vec()).unwrap_or_default();
        let meta = self.look(at)?;
        Ok(Item { name, meta, link: self.link(&path, meta.kind) })
    }

    fn list(&self, dir: &[u8]) -> Done<Vec<Item>> {
        let (dir, mut after, mut all) = (path(dir)?, None, Vec::new());
        loop {
            let page = self.store.list(&dir, after.as_ref(), PAGE_ENTRIES);
            let page = page.map_err(|error| why(&error))?;
            if page.skipped > 0 {
                return Err(Why::of_name(format!(
                    "it has {} names that cannot be used",
                    page.skipped
                )));
            }
            all.extend(page.items.into_iter().map(|item| {
                let meta = meta(&item.found);
                let link = match dir.join(&item.name) {
                    _ if meta.kind != Kind::Link => None,
                    Ok(path) => self.link(&path, meta.kind),
                    Err(error) => Some(Err(Why::of_name(error.to_string()))),
                };
                Item { name: item.name.as_bytes().to_vec(), meta, link }
            }));
            after = page.next;
            if after.is_none() {
                all.sort_by(|a, b| a.name.cmp(&b.name));
                return Ok(all);
            }
        }
    }

    fn below(&self, link: &[u8]) -> Done<Option<Box<dyn Side>>> {
        let root = self.root.join(OsStr::from_bytes(path(link)?.as_bytes()));
        if !fs::metadata(&root).is_ok_and(|found| found.is_dir()) {
            return Ok(None);
        }
        let side = Self::open(&root).map_err(|error| Why::of_name(error.to_string()))?;
        Ok(Some(Box::new(side)))
    }

    fn hash(&self, at: &[u8]) -> Done<Hash> {
        let file = self.store.open(&path(at)?, Access::Read).map_err(|error| why(&error))?;
        let (mut hasher, mut buffer, mut at) = (blake3::Hasher::new(), vec![0; READ_BYTES], 0);
        loop {
            match file.read_at(at, &mut buffer).map_err(|error| why(&error))? {
                0 => return Ok(hasher.finalize()),
                length => {
                    hasher.update(&buffer[..length]);
                    at += length as u64;
                }
            }
        }
    }

    fn make_dir(&self, at: &[u8], mode: u32) -> Done {
        match self.store.make_dir(&path(at)?, (mode & 0o777 & !self.umask) | 0o700) {
            Err(error) if error.kind == ErrorKind::Exists => match self.look(at)?.kind {
                Kind::Dir => Ok(()),
                _ => Err(why(&error)),
            },
            made => made.map_err(|error| why(&error)),
        }
    }

    fn make_link(&self, at: &[u8], text: &[u8]) -> Done {
        let at = path(at)?;
        if self.store.look(&at).is_ok_and(|found| found.kind == hikyaku_store::Kind::Link) {
            let removed = self.store.remove(&at, hikyaku_store::Kind::Link);
            removed.map_err(|error| why(&error))?;
        }
        self.store.make_link(&at, text).map_err(|error| why(&error))
    }

    fn remove(&self, at: &[u8], kind: Kind) -> Done {
        self.store.remove(&path(at)?, store_kind(kind)).map_err(|error| why(&error))
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Done {
        let renamed = self.store.rename(&path(from)?, &path(to)?, Replace::Allowed);
        renamed.map_err(|error| why(&error))
    }

    fn set(&self, at: &[u8], _: Kind, setting: Setting) -> Done {
        let (at, change) = (path(at)?, Change { modified: setting.modified, ..Change::default() });
        let mode = setting.mode.map_or(Ok(()), |mode| self.store.set_mode(&at, mode));
        mode.and_then(|()| self.store.change(&at, &change)).map_err(|error| why(&error))
    }
}
