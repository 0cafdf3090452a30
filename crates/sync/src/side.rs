//! The two ends of a synchronization: a directory of this machine, of an SFTP server, or of another store. Nothing outside it
//! is reached through a symbolic link that the user has not named, and the names that a server lists are checked before they
//! are used.

mod ahead;
mod meta;
#[cfg(test)]
pub(crate) mod testing;
mod tree;

pub(crate) use hikyaku_store::Kind;
pub(crate) use meta::{Done, Item, Meta, Setting, What, Why, shown};

use crate::options::{Modes, Times};
use crate::plan::parent;
use blake3::Hash;
use hikyaku_fs::{FsError, Name};
use hikyaku_sftp::Client;
use hikyaku_store::{
    Access, Change, ErrorKind, Latency, Memory, Op, Replace, Reply, Root, Store, StorePath, Time,
};
use hikyaku_stores::Holder;
use hikyaku_units::DataSize;
use meta::why;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tree::Tree;

/// Entries of a page of a listing.
const PAGE_ENTRIES: usize = 10_000;
/// The share of the memory of this process that one listing of a server may take: 32 of them are under way at each end.
const LISTING_SHARE: u64 = 64;
/// The memory of an entry beside its name, in bytes.
const ENTRY_BYTES: u64 = 72;

/// One end. Paths are below its root; the empty path is the root.
pub(crate) struct Side {
    root: Arc<Tree>,
    /// Directories to which links lead that a list names as directories, by the paths of the links.
    followed: RwLock<BTreeMap<Vec<u8>, Arc<Tree>>>,
    /// The one file of the transfer, if it has another name at this end.
    renamed: Option<Renamed>,
    /// Entries of directories that were chosen before the walk, by the paths of the directories.
    chosen: Mutex<Listings>,
    /// Entries that the store has listed before they are asked for.
    ahead: Mutex<Listings>,
    /// The bytes of a directory's names that are kept.
    listing_max: u64,
}

/// Entries of directories, by the paths of the directories.
type Listings = BTreeMap<Vec<u8>, Vec<Item>>;

/// A file that its side lists under another name.
struct Renamed {
    /// The name in listings.
    told: Vec<u8>,
    /// Its name in the directory.
    own: Vec<u8>,
}

/// A name of a tree.
struct Spot {
    tree: Arc<Tree>,
    path: StorePath,
}

impl Spot {
    fn store(&self) -> &dyn Store {
        self.tree.store()
    }

    fn look(&self) -> Done<Meta> {
        let found = self.store().look(&self.path).map_err(|error| why(&error))?;
        Ok(self.tree.meta(&self.path, &found))
    }
}

impl Side {
    fn of(root: Tree, listing_max: u64) -> Self {
        Self {
            root: Arc::new(root),
            followed: RwLock::default(),
            renamed: None,
            chosen: Mutex::default(),
            ahead: Mutex::default(),
            listing_max,
        }
    }

    /// A directory of this machine.
    pub(crate) fn here(root: &Path) -> Result<Self, FsError> {
        Ok(Self::of(Tree::here(root)?, u64::MAX))
    }

    /// A directory of a server. `memory` is what this process may take.
    pub(crate) fn of_server(client: Client, root: &[u8], memory: DataSize) -> anyhow::Result<Self> {
        Ok(Self::of(Tree::server(client, root)?, memory.bytes() / LISTING_SHARE))
    }

    /// A directory of another store.
    pub(crate) fn of_holder(holder: Arc<Holder>, root: StorePath, memory: DataSize) -> Self {
        Self::of(Tree::Held { holder, root }, memory.bytes() / LISTING_SHARE)
    }

    /// A target that does not exist, in a rehearsal: it has no entries.
    pub(crate) fn absent() -> Self {
        let holder = Holder::new(String::new(), Arc::new(Memory::default()), Root::Somewhere);
        Self::of_holder(Arc::new(holder), StorePath::ROOT, DataSize::from_bytes(u64::MAX))
    }

    /// This side, which lists one file under another name than the file has.
    pub(crate) fn renamed(self, told: Vec<u8>, own: Vec<u8>) -> Self {
        Self { renamed: Some(Renamed { told, own }), ..self }
    }

    /// From now on a link is the directory that it leads to. Gives its metadata, or `None` if the link leads to none: it
    /// stays what it is.
    pub(crate) fn follow(&self, link: &[u8]) -> Done<Option<Meta>> {
        let spot = self.spot(link)?;
        let Some(tree) = spot.tree.behind(&spot.path)? else { return Ok(None) };
        let root = Spot { tree: Arc::new(tree), path: StorePath::ROOT };
        let meta = root.look()?;
        let mut followed = self.followed.write().unwrap_or_else(PoisonError::into_inner);
        followed.insert(link.to_vec(), root.tree);
        Ok(Some(meta))
    }

    /// Keeps those entries of a directory that were chosen.
    pub(crate) fn keep(&self, dir: &[u8], items: Vec<Item>) {
        lock(&self.chosen).insert(dir.to_vec(), items);
    }

    /// Returns the entries of a directory that were kept, and forgets them.
    pub(crate) fn kept(&self, dir: &[u8]) -> Option<Vec<Item>> {
        lock(&self.chosen).remove(dir)
    }

    /// The tree that has a path, and the path in it. A path that begins with the name in listings is that of the file,
    /// or of a backup of it.
    fn spot(&self, at: &[u8]) -> Done<Spot> {
        let followed = self.followed.read().unwrap_or_else(PoisonError::into_inner);
        let mut above = at;
        while !above.is_empty() && !followed.is_empty() {
            if let Some(tree) = followed.get(above) {
                let rest = &at[above.len()..];
                let path = tree.path(rest.strip_prefix(b"/").unwrap_or(rest))?;
                return Ok(Spot { tree: tree.clone(), path });
            }
            above = parent(above);
        }
        let renamed = self.renamed.as_ref();
        let renamed =
            renamed.and_then(|of| Some([&of.own, at.strip_prefix(&of.told[..])?].concat()));
        let path = self.root.path(renamed.as_deref().unwrap_or(at))?;
        Ok(Spot { tree: self.root.clone(), path })
    }

    /// Metadata of a name. Links are not followed.
    pub(crate) fn look(&self, at: &[u8]) -> Done<Meta> {
        self.spot(at)?.look()
    }

    /// One entry by its path.
    pub(crate) fn entry(&self, at: &[u8]) -> Done<Item> {
        let spot = self.spot(at)?;
        let name = at.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
        let mut all = [Item { name, meta: spot.look()?, link: None }];
        read_links(&spot.tree, &[spot.path], &mut all)?;
        let [item] = all;
        Ok(item)
    }

    /// All entries of a directory, sorted by name. Temporary files of unfinished copies are omitted.
    ///
    /// # Errors
    ///
    /// Also if only some of the entries can be told: a listing is whole, or an error.
    pub(crate) fn list(&self, dir: &[u8]) -> Done<Vec<Item>> {
        let spot = self.spot(dir)?;
        let ahead = lock(&self.ahead).remove(dir);
        let mut all = match ahead {
            Some(all) => all,
            None => self.pages(&spot)?,
        };
        let Spot { tree, path: dir } = spot;
        let path = |item: &Item| {
            let name = Name::new(&item.name).map_err(|error| error.to_string());
            let path = name.and_then(|name| dir.join(&name).map_err(|error| error.to_string()));
            path.map_err(|text| Why::of_name(format!("{}: {text}", shown(&item.name))))
        };
        let paths = all.iter().map(path).collect::<Done<Vec<_>>>()?;
        // Such a store lists the times at which files came into it.
        if tree.times() == Times::OfCopies {
            look_at_files(&tree, &paths, &mut all)?;
        }
        read_links(&tree, &paths, &mut all)?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        // A server that lists a name twice would have one of the two decide.
        match all.windows(2).any(|two| two[0].name == two[1].name) {
            true => Err(Why::of_name("the server lists a name twice")),
            false => Ok(all),
        }
    }

    /// The entries of a directory as the store lists them.
    fn pages(&self, Spot { tree, path: dir }: &Spot) -> Done<Vec<Item>> {
        let (mut after, mut all, mut bytes) = (None, Vec::new(), 0);
        loop {
            let page = tree.store().list(dir, after.as_ref(), PAGE_ENTRIES);
            let page = page.map_err(|error| why(&error))?;
            if page.skipped > 0 {
                let text = format!("it has {} names that cannot be used", page.skipped);
                return Err(Why::of_name(text));
            }
            for item in page.items {
                bytes += entry_bytes(item.name.as_bytes());
                if bytes > self.listing_max {
                    return Err(Why::of_name("too many names in one directory"));
                }
                let path = dir.join(&item.name).map_err(|error| Why::of_name(error.to_string()))?;
                let name = item.name.as_bytes().to_vec();
                all.push(Item { name, meta: tree.meta(&path, &item.found), link: None });
            }
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// A hash of a file's content, which is read as a whole.
    pub(crate) fn hash(&self, at: &[u8]) -> Done<Hash> {
        let spot = self.spot(at)?;
        let file = spot.store().open(&spot.path, Access::Read).map_err(|error| why(&error))?;
        let end = match spot.store().abilities().latency {
            // Files of /proc have bytes, and a size of zero.
            Latency::Local => u64::MAX,
            Latency::RoundTrip => file.found().map_err(|error| why(&error))?.size,
        };
        let mut hasher = blake3::Hasher::new();
        let read = file.stream(0..end, &mut |bytes| {
            hasher.update(bytes);
            ControlFlow::Continue(())
        });
        let is_whole = |read| end == u64::MAX || read == end;
        match read.and_then(|read| Ok(is_whole(read) && file.is_unchanged()?)) {
            Ok(true) => Ok(hasher.finalize()),
            Ok(false) => Err(Why::of_name("it was changed while it was read")),
            Err(error) => Err(why(&error)),
        }
    }

    /// Makes a directory with these permission bits without what the umask takes. Its owner may write to it in any case.
    /// A directory that is there stays as it is.
    pub(crate) fn make_dir(&self, at: &[u8], mode: u32) -> Done {
        let spot = self.spot(at)?;
        let mode = (mode & 0o777 & !spot.tree.umask()) | 0o700;
        match spot.store().make_dir(&spot.path, mode) {
            Err(error) if error.kind == ErrorKind::Exists => match spot.look()?.kind {
                Kind::Dir => Ok(()),
                _ => Err(why(&error)),
            },
            made => made.map_err(|error| why(&error)),
        }
    }

    /// Makes a link in place of one that may be there.
    pub(crate) fn make_link(&self, at: &[u8], text: &[u8]) -> Done {
        let spot = self.spot(at)?;
        if spot.look().is_ok_and(|found| found.kind == Kind::Link) {
            let removed = spot.store().remove(&spot.path, Kind::Link);
            removed.map_err(|error| why(&error))?;
        }
        spot.store().make_link(&spot.path, text).map_err(|error| why(&error))
    }

    /// Removes a name of this kind. A directory must be empty.
    pub(crate) fn remove(&self, at: &[u8], kind: Kind) -> Done {
        let spot = self.spot(at)?;
        spot.store().remove(&spot.path, kind).map_err(|error| why(&error))
    }

    /// Gives a file another name, and replaces what has that name.
    pub(crate) fn rename(&self, from: &[u8], to: &[u8]) -> Done {
        let (from, to) = (self.spot(from)?, self.spot(to)?);
        let renamed = from.store().rename(&from.path, &to.path, Replace::Allowed);
        renamed.map_err(|error| why(&error))
    }

    /// Sets metadata of a name of this kind, all twelve permission bits among them. A link has none to set, and its time
    /// stays where it cannot be set.
    pub(crate) fn set(&self, at: &[u8], kind: Kind, setting: Setting) -> Done {
        let spot = self.spot(at)?;
        if kind != Kind::Link || self.times() == Times::All {
            let modified = setting.modified.filter(|time| self.sets_time(*time));
            let change = Change { mode: setting.mode, modified, ..Change::default() };
            spot.tree.change(&spot.path, &change).map_err(|error| why(&error))?;
        }
        self.has_time(&spot, setting)
    }

    /// Fails if a time cannot be set, and a copy has not set it either.
    fn has_time(&self, spot: &Spot, setting: Setting) -> Done {
        let Some(time) = setting.modified.filter(|time| !self.sets_time(*time)) else {
            return Ok(());
        };
        match spot.look()?.low_secs() == time.secs as u32 {
            true => Ok(()),
            false => {
                Err(Why::of_name(format!("its time is not kept: {}", hikyaku_sftp::NO_SUCH_TIME)))
            }
        }
    }

    /// Whether a time can be set, but by a copy.
    pub(crate) fn sets_time(&self, time: Time) -> bool {
        self.times() != Times::OfCopies && self.root.store().abilities().clock.kept(time).is_some()
    }

    /// Which times it has.
    pub(crate) fn times(&self) -> Times {
        self.root.times()
    }

    /// Which permission bits it has.
    pub(crate) fn modes(&self) -> Modes {
        self.root.modes()
    }

    /// Whether it has symbolic links.
    pub(crate) fn has_links(&self) -> bool {
        self.root.store().abilities().links
    }

    /// Whether both are one directory, whatever the ways that were named. Of two SFTP servers that is not known.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let identity = |side: &Self| side.look(b"").ok()?.identity;
        self.root.has_identities() && other.root.has_identities() && {
            let own = identity(self);
            own.is_some() && own == identity(other)
        }
    }
}

/// Asks for the metadata of the files among the names of a directory, which have these paths.
fn look_at_files(tree: &Tree, paths: &[StorePath], all: &mut [Item]) -> Done {
    let files = all.iter_mut().zip(paths).filter(|(item, _)| item.meta.kind == Kind::File);
    let (mut files, paths): (Vec<_>, Vec<_>) = files.unzip();
    let ops: Vec<_> = paths.iter().copied().map(Op::Look).collect();
    let mut failed = None;
    tree.store().batch(&ops, &mut |index, reply| match reply {
        Ok(Reply::Found(found)) => files[index].meta = tree.meta(paths[index], &found),
        Ok(_) => {}
        // It was removed meanwhile: what is done to it will fail.
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) => drop(failed.get_or_insert_with(|| why(&error))),
    });
    failed.map_or(Ok(()), Err)
}

fn lock(listings: &Mutex<Listings>) -> MutexGuard<'_, Listings> {
    listings.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory that an entry takes.
const fn entry_bytes(name: &[u8]) -> u64 {
    name.len() as u64 + ENTRY_BYTES
}

/// Reads the links among the names of a directory, which have these paths, unless they were read.
fn read_links(tree: &Tree, paths: &[StorePath], all: &mut [Item]) -> Done {
    let is_due = |item: &Item| item.meta.kind == Kind::Link && item.link.is_none();
    let links = all.iter_mut().zip(paths).filter(|(item, _)| is_due(item));
    let (mut links, paths): (Vec<_>, Vec<_>) = links.unzip();
    let ops: Vec<_> = paths.into_iter().map(Op::ReadLink).collect();
    let mut end = None;
    tree.store().batch(&ops, &mut |index, reply| {
        let text = match reply {
            Ok(Reply::Text(text)) => Ok(text),
            Ok(_) => Err(Why::of_name("it is no link")),
            Err(error) => Err(why(&error)),
        };
        if let Err(why) = &text
            && why.is_end()
        {
            end = Some(why.clone());
        }
        links[index].link = Some(text);
    });
    end.map_or(Ok(()), Err)
}
