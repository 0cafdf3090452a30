//! A source in which links that a list names as directories are the directories that they lead to. What was listed to choose
//! names is kept until the walk comes to it, so that each directory is listed once.

use super::{Done, Item, Kind, Meta, Setting, Side};
use crate::plan::parent;
use blake3::Hash;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A side with directories to which links of it lead.
pub(crate) struct Followed<'a> {
    inner: &'a dyn Side,
    /// By the paths of the links.
    dirs: RwLock<BTreeMap<Vec<u8>, Arc<dyn Side>>>,
    /// What is in directories, by their paths.
    listed: Mutex<BTreeMap<Vec<u8>, Vec<Item>>>,
}

/// The side that has a path, if it is not the inner one.
type Beyond = Option<Arc<dyn Side>>;

impl<'a> Followed<'a> {
    /// No link of `inner` is followed so far.
    pub(crate) fn new(inner: &'a dyn Side) -> Self {
        Self { inner, dirs: RwLock::default(), listed: Mutex::default() }
    }

    /// From now on a link is the directory that it leads to. Gives its metadata, or `None` if the link leads to none: it
    /// stays what it is.
    pub(crate) fn follow(&self, link: &[u8]) -> Done<Option<Meta>> {
        let (beyond, path) = self.at(link);
        let Some(dir) = beyond.as_deref().unwrap_or(self.inner).below(path)? else {
            return Ok(None);
        };
        let meta = dir.look(b"")?;
        let mut dirs = self.dirs.write().unwrap_or_else(PoisonError::into_inner);
        dirs.insert(link.to_vec(), Arc::from(dir));
        Ok(Some(meta))
    }

    /// Keeps what was listed of a directory.
    pub(crate) fn keep(&self, dir: &[u8], items: Vec<Item>) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.insert(dir.to_vec(), items);
    }

    /// What was kept of a directory. It is told once.
    pub(crate) fn kept(&self, dir: &[u8]) -> Option<Vec<Item>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).remove(dir)
    }

    /// The side that has a path, and the path there.
    fn at<'b>(&self, path: &'b [u8]) -> (Beyond, &'b [u8]) {
        let dirs = self.dirs.read().unwrap_or_else(PoisonError::into_inner);
        let mut above = path;
        while !above.is_empty() && !dirs.is_empty() {
            if let Some(side) = dirs.get(above) {
                let rest = &path[above.len()..];
                return (Some(side.clone()), rest.strip_prefix(b"/").unwrap_or(rest));
            }
            above = parent(above);
        }
        (None, path)
    }

    fn on<T>(&self, path: &[u8], work: impl FnOnce(&dyn Side, &[u8]) -> Done<T>) -> Done<T> {
        let (beyond, path) = self.at(path);
        work(beyond.as_deref().unwrap_or(self.inner), path)
    }
}

impl Side for Followed<'_> {
    fn look(&self, path: &[u8]) -> Done<Meta> {
        self.on(path, |side, path| side.look(path))
    }

    fn entry(&self, path: &[u8]) -> Done<Item> {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
        self.on(path, |side, path| Ok(Item { name, ..side.entry(path)? }))
    }

    fn list(&self, dir: &[u8]) -> Done<Vec<Item>> {
        self.on(dir, |side, dir| side.list(dir))
    }

    fn hash(&self, path: &[u8]) -> Done<Hash> {
        self.on(path, |side, path| side.hash(path))
    }

    fn make_dir(&self, path: &[u8], mode: u32) -> Done {
        self.on(path, |side, path| side.make_dir(path, mode))
    }

    fn make_link(&self, path: &[u8], text: &[u8]) -> Done {
        self.on(path, |side, path| side.make_link(path, text))
    }

    fn remove(&self, path: &[u8], kind: Kind) -> Done {
        self.on(path, |side, path| side.remove(path, kind))
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Done {
        self.inner.rename(from, to)
    }

    fn set(&self, path: &[u8], kind: Kind, setting: Setting) -> Done {
        self.on(path, |side, path| side.set(path, kind, setting))
    }

    fn keeps_times_of_links(&self) -> bool {
        self.inner.keeps_times_of_links()
    }
}
