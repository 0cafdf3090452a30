//! A directory of a store: one of this machine, or one of an SFTP server. Nothing outside it is reached through a symbolic
//! link, and the names that a server lists are checked before they are used.

use super::{Done, Item, Kind, Meta, Setting, Side, What, Why};
use blake3::Hash;
use hikyaku_fs::{FsError, umask};
use hikyaku_sftp::Client;
use hikyaku_store::{
    Access, Change, ErrorKind, Found, Identities, Latency, Op, Replace, Reply, Result, Store,
    StoreError, StorePath,
};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_store_sftp::Sftp;
use hikyaku_units::DataSize;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Entries of a page of a listing.
const PAGE_ENTRIES: usize = 10_000;
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;
/// The share of the memory of this process that one listing of a server may take: 32 of them are under way at each end.
const LISTING_SHARE: u64 = 64;
/// The memory of an entry beside its name, in bytes.
const ENTRY_BYTES: u64 = 72;

/// A directory of a store.
pub(crate) struct Stored {
    tree: Tree,
    /// The bytes of a directory's names that are kept.
    listing_max: u64,
}

/// A store, with operations that [`Store`] does not have.
enum Tree {
    Here { store: Local, root: PathBuf, umask: u32 },
    Server(Sftp),
}

impl Tree {
    fn here(root: &Path) -> std::result::Result<Self, FsError> {
        let store = Local::open(root, NewModes { file: 0o600 })?;
        Ok(Self::Here { store, root: root.to_path_buf(), umask: umask() })
    }

    fn store(&self) -> &dyn Store {
        match self {
            Self::Here { store, .. } => store,
            Self::Server(store) => store,
        }
    }

    /// The directory that a link leads to, wherever that is; `None` if it leads to none.
    fn behind(&self, link: &StorePath) -> Done<Option<Self>> {
        match self {
            Self::Here { root, .. } => {
                let root = root.join(OsStr::from_bytes(link.as_bytes()));
                if !fs::metadata(&root).is_ok_and(|found| found.is_dir()) {
                    return Ok(None);
                }
                let tree = Self::here(&root).map_err(|error| Why::of_name(error.to_string()))?;
                Ok(Some(tree))
            }
            Self::Server(store) => {
                let store = store.behind_link(link).map_err(|error| why(&error))?;
                Ok(store.map(Self::Server))
            }
        }
    }

    /// The bits of a new directory's mode that this end removes. A server removes those of its own umask.
    const fn umask(&self) -> u32 {
        match self {
            Self::Here { umask, .. } => *umask,
            Self::Server(_) => 0,
        }
    }

    /// Sets metadata, all twelve permission bits among them.
    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        match (self, change.mode) {
            (Self::Here { store, .. }, Some(mode)) => {
                store.set_mode(path, mode)?;
                store.change(path, &Change { mode: None, ..change.clone() })
            }
            _ => self.store().change(path, change),
        }
    }

    fn keeps_times_of_links(&self) -> bool {
        match self {
            Self::Here { .. } => true,
            Self::Server(store) => store.sets_times_of_links(),
        }
    }
}

impl Stored {
    /// A directory of this machine.
    pub(crate) fn here(root: &Path) -> std::result::Result<Self, FsError> {
        Ok(Self { tree: Tree::here(root)?, listing_max: u64::MAX })
    }

    /// A directory of a server. `memory` is what this process may take.
    pub(crate) fn of_server(client: Client, root: &[u8], memory: DataSize) -> Result<Self> {
        let tree = Tree::Server(Sftp::of_dir(client, root)?);
        Ok(Self { tree, listing_max: memory.bytes() / LISTING_SHARE })
    }

    fn store(&self) -> &dyn Store {
        self.tree.store()
    }

    fn meta(&self, found: &Found) -> Meta {
        let of_files = self.store().abilities().identities == Identities::OfFiles;
        Meta {
            kind: kind_of(found.kind),
            size: found.size,
            mode: found.mode,
            modified: found.modified,
            identity: of_files.then_some(found.identity),
        }
    }

    fn is_link(&self, at: &StorePath) -> bool {
        self.store().look(at).is_ok_and(|found| found.kind == hikyaku_store::Kind::Link)
    }

    /// Reads all links of a directory.
    fn read_links(&self, dir: &StorePath, all: &mut [Item]) -> Done {
        let (mut links, mut paths) = (Vec::new(), Vec::new());
        for item in all.iter_mut().filter(|item| item.meta.kind == Kind::Link) {
            match join(dir, &item.name) {
                Ok(path) => {
                    paths.push(path);
                    links.push(item);
                }
                Err(why) => item.link = Some(Err(why)),
            }
        }
        let ops: Vec<_> = paths.iter().map(Op::ReadLink).collect();
        let mut texts: Vec<Option<Done<Vec<u8>>>> = vec![None; ops.len()];
        self.store().batch(&ops, &mut |index, reply| {
            texts[index] = Some(match reply {
                Ok(Reply::Text(text)) => Ok(text),
                Ok(_) => Err(Why::of_name("it is no link")),
                Err(error) => Err(why(&error)),
            });
        });
        for (item, text) in links.into_iter().zip(texts) {
            match text {
                Some(Err(why)) if why.is_end() => return Err(why),
                text => item.link = text,
            }
        }
        Ok(())
    }

    /// Fails if a time cannot be set, and a copy has not set it either.
    fn has_time(&self, at: &StorePath, setting: Setting) -> Done {
        let Some(time) = setting.modified.filter(|time| !self.sets_time(*time)) else {
            return Ok(());
        };
        let found = self.store().look(at).map_err(|error| why(&error))?;
        match self.meta(&found).low_secs() == time.secs as u32 {
            true => Ok(()),
            false => {
                Err(Why::of_name(format!("its time is not kept: {}", hikyaku_sftp::NO_SUCH_TIME)))
            }
        }
    }
}

fn why(error: &StoreError) -> Why {
    let what = match error.kind {
        ErrorKind::NotFound => What::Absent,
        ErrorKind::Unreachable | ErrorKind::PROTOCOL => What::End,
        _ => What::Name,
    };
    Why { text: error.kind.to_string(), what }
}

fn path(bytes: &[u8]) -> Done<StorePath> {
    StorePath::new(bytes).map_err(|error| Why::of_name(error.to_string()))
}

/// The path of a name in a directory.
fn join(dir: &StorePath, name: &[u8]) -> Done<StorePath> {
    path(&crate::plan::join(dir.as_bytes(), name))
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

impl Side for Stored {
    fn look(&self, at: &[u8]) -> Done<Meta> {
        let found = self.store().look(&path(at)?).map_err(|error| why(&error))?;
        Ok(self.meta(&found))
    }

    fn entry(&self, at: &[u8]) -> Done<Item> {
        let name = at.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
        let mut all = [Item { name, meta: self.look(at)?, link: None }];
        self.read_links(&path(crate::plan::parent(at))?, &mut all)?;
        let [item] = all;
        Ok(item)
    }

    fn list(&self, dir: &[u8]) -> Done<Vec<Item>> {
        let (dir, mut after, mut all, mut bytes) = (path(dir)?, None, Vec::new(), 0);
        loop {
            let page = self.store().list(&dir, after.as_ref(), PAGE_ENTRIES);
            let page = page.map_err(|error| why(&error))?;
            if page.skipped > 0 {
                let text = format!("it has {} names that cannot be used", page.skipped);
                return Err(Why::of_name(text));
            }
            for item in page.items {
                bytes += item.name.as_bytes().len() as u64 + ENTRY_BYTES;
                if bytes > self.listing_max {
                    return Err(Why::of_name("too many names in one directory"));
                }
                let meta = self.meta(&item.found);
                all.push(Item { name: item.name.as_bytes().to_vec(), meta, link: None });
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.read_links(&dir, &mut all)?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        // A server that lists a name twice would have one of the two decide.
        match all.windows(2).any(|two| two[0].name == two[1].name) {
            true => Err(Why::of_name("the server lists a name twice")),
            false => Ok(all),
        }
    }

    fn below(&self, link: &[u8]) -> Done<Option<Box<dyn Side>>> {
        let tree = self.tree.behind(&path(link)?)?;
        let side = |tree| Box::new(Self { tree, listing_max: self.listing_max }) as Box<dyn Side>;
        Ok(tree.map(side))
    }

    fn hash(&self, at: &[u8]) -> Done<Hash> {
        if self.store().abilities().latency == Latency::RoundTrip {
            return Err(Why::of_name("by SFTP, contents are not compared"));
        }
        let file = self.store().open(&path(at)?, Access::Read).map_err(|error| why(&error))?;
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
        match self.store().make_dir(&path(at)?, (mode & 0o777 & !self.tree.umask()) | 0o700) {
            Err(error) if error.kind == ErrorKind::Exists => match self.look(at)?.kind {
                Kind::Dir => Ok(()),
                _ => Err(why(&error)),
            },
            made => made.map_err(|error| why(&error)),
        }
    }

    fn make_link(&self, at: &[u8], text: &[u8]) -> Done {
        let at = path(at)?;
        if self.is_link(&at) {
            let removed = self.store().remove(&at, hikyaku_store::Kind::Link);
            removed.map_err(|error| why(&error))?;
        }
        self.store().make_link(&at, text).map_err(|error| why(&error))
    }

    fn remove(&self, at: &[u8], kind: Kind) -> Done {
        self.store().remove(&path(at)?, store_kind(kind)).map_err(|error| why(&error))
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Done {
        let renamed = self.store().rename(&path(from)?, &path(to)?, Replace::Allowed);
        renamed.map_err(|error| why(&error))
    }

    fn set(&self, at: &[u8], kind: Kind, setting: Setting) -> Done {
        let at = path(at)?;
        // The time of a link stays where it cannot be set.
        if kind != Kind::Link || self.keeps_times_of_links() {
            let modified = setting.modified.filter(|time| self.sets_time(*time));
            let change = Change { mode: setting.mode, modified, ..Change::default() };
            self.tree.change(&at, &change).map_err(|error| why(&error))?;
        }
        self.has_time(&at, setting)
    }

    fn sets_time(&self, time: hikyaku_store::Time) -> bool {
        self.store().abilities().clock.kept(time).is_some()
    }

    fn keeps_times_of_links(&self) -> bool {
        self.tree.keeps_times_of_links()
    }
}
