//! A store in memory: for tests, and the reference that other stores are compared with.
//!
//! It models a power failure. Each file has the content that readers see and the content that has reached the disk;
//! each directory has the entries that readers see and those that have reached the disk. [`Memory::crash`] returns the
//! store as it would be after a power failure.

mod blocks;
mod file;
mod tree;

use crate::abilities::{Abilities, Ability};
use crate::error::{ErrorKind, Result, doing};
use crate::found::{Found, Kind, Space, Time};
use crate::path::StorePath;
use crate::store::{
    Access, Attribute, Change, Cursor, Draft, Item, Make, Open, Page, Place, Replace, Store, Token,
};
use file::{Handle, MemoryDraft};
use hikyaku_fs::Name;
use rustix::io::Errno;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tree::{Body, Number, Tree};

/// A store in memory. Clones refer to the same store.
#[derive(Clone, Debug)]
pub struct Memory {
    tree: Arc<Mutex<Tree>>,
}

impl Default for Memory {
    fn default() -> Self {
        Self::with_room(u64::MAX)
    }
}

impl Memory {
    /// A store that holds at most `bytes` bytes of files.
    pub fn with_room(bytes: u64) -> Self {
        Self { tree: Arc::new(Mutex::new(Tree::new(bytes))) }
    }

    /// The store after a power failure at this moment: only synced state remains. Handles of this
    /// store keep referring to this store.
    #[must_use]
    pub fn crash(&self) -> Self {
        Self { tree: Arc::new(Mutex::new(self.lock().crashed())) }
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
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
        let tree = self.lock();
        let number = doing("look at", path).or(tree.find(path))?;
        Ok(tree.found(number))
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        let doing = doing("list", dir);
        let tree = self.lock();
        let number = doing.or(tree.find(dir))?;
        let entries = doing.or(tree.entries(number))?;
        let after = after.map(|cursor| cursor.0.as_slice()).unwrap_or_default();
        let mut rest = entries.iter().filter(|(name, _)| name.as_bytes() > after);
        let items: Vec<Item> = rest
            .by_ref()
            .take(room.max(1))
            .map(|(name, number)| Item { name: name.clone(), found: tree.found(*number) })
            .collect();
        let is_last = rest.next().is_none();
        let next = items.last().filter(|_| !is_last);
        let next = next.map(|item| Cursor(item.name.as_bytes().to_vec()));
        Ok(Page { items, next, skipped: 0 })
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        let doing = doing("open", path);
        let mut tree = self.lock();
        let number = doing.or(tree.find(path))?;
        match tree.found(number).kind {
            Kind::File => {}
            Kind::Dir => return doing.fail(ErrorKind::IsDir),
            Kind::Link => return doing.fail(ErrorKind::Link),
            Kind::Special => return doing.fail(ErrorKind::of(Errno::NXIO)),
        }
        tree.hold(number);
        Ok(Box::new(Handle::new(self.clone(), path.clone(), number, access)))
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let doing = doing("create", path);
        let mut tree = self.lock();
        let Some((dir, name)) = path.split() else { return doing.fail(ErrorKind::IsDir) };
        let dir = doing.or(tree.find(&dir))?;
        doing.or(tree.entries(dir).map(drop))?;
        if make.size.is_some_and(|size| size > tree.free()) {
            return doing.fail(ErrorKind::NoSpace);
        }
        let (number, token) = tree.begin_draft(dir, &name);
        Ok(Box::new(MemoryDraft::new(self.clone(), path.clone(), number, token)))
    }

    fn take_up(&self, path: &StorePath, token: &Token) -> Result<Box<dyn Draft>> {
        let doing = doing("resume", path);
        let mut tree = self.lock();
        let Some((dir, name)) = path.split() else { return doing.fail(ErrorKind::IsDir) };
        let dir = doing.or(tree.find(&dir))?;
        let number = doing.or(tree.resume_draft(dir, &name, token))?;
        Ok(Box::new(MemoryDraft::new(self.clone(), path.clone(), number, token.clone())))
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        self.make("make the directory", path, Body::empty_dir(), mode)
    }

    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()> {
        self.make("make the link", path, Body::Link(text.to_vec()), 0o777)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        let doing = doing("read the link", path);
        let tree = self.lock();
        match &tree.node(doing.or(tree.find(path))?).body {
            Body::Link(text) => Ok(text.clone()),
            Body::File(_) | Body::Dir(_) => doing.fail(ErrorKind::of(Errno::INVAL)),
        }
    }

    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()> {
        let doing = doing("remove", path);
        let mut tree = self.lock();
        let Some((dir, name)) = path.split() else { return doing.fail(ErrorKind::Busy) };
        let dir = doing.or(tree.find(&dir))?;
        doing.or(tree.remove(dir, &name, kind))
    }

    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        let doing = doing("rename", from);
        let mut tree = self.lock();
        let (Some((from_dir, from)), Some((to_dir, to))) = (from.split(), to.split()) else {
            return doing.fail(ErrorKind::Busy);
        };
        let (from_dir, to_dir) = (doing.or(tree.find(&from_dir))?, doing.or(tree.find(&to_dir))?);
        doing.or(tree.rename((from_dir, &from), (to_dir, &to), replace))
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        let doing = doing("change", path);
        let mut tree = self.lock();
        let number = doing.or(tree.find(path))?;
        if change.mode.is_some() && tree.found(number).kind == Kind::Link {
            return doing.fail(ErrorKind::Unsupported(Ability::Modes));
        }
        tree.change(number, change);
        Ok(())
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        let tree = self.lock();
        let number = doing("read the attributes of", path).or(tree.find(path))?;
        Ok(tree.attributes(number))
    }

    fn space(&self) -> Result<Space> {
        let tree = self.lock();
        Ok(Space { free: tree.free(), total: tree.room(), files: None })
    }

    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.look(path).map(|_| Vec::new())
    }

    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        let mut tree = self.lock();
        for dir in dirs {
            let doing = doing("sync", dir);
            let number = doing.or(tree.find(dir))?;
            doing.or(tree.sync_dir(number))?;
        }
        Ok(())
    }
}

impl Memory {
    fn make(&self, what: &'static str, path: &StorePath, body: Body, mode: u32) -> Result<()> {
        let doing = doing(what, path);
        let mut tree = self.lock();
        let Some((dir, name)) = path.split() else { return doing.fail(ErrorKind::Exists) };
        let dir = doing.or(tree.find(&dir))?;
        doing.or(tree.make(dir, &name, body, mode).map(drop))
    }
}

/// A name in a directory.
type Entry<'a> = (Number, &'a Name);

/// The clock advances by one nanosecond at each change, so that no two changes have the same time.
const fn tick(clock: u64) -> Time {
    Time { secs: (clock / 1_000_000_000) as i64, nanos: (clock % 1_000_000_000) as u32 }
}
