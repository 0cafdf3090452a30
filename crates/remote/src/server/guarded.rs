//! A store as one session sees it: each use of a directory waits until no other client relies on a lease against it.

use super::leases::{Changing, Intent, Leases};
use crate::message::Holder;
use hikyaku_store::{
    Abilities, Access, Attribute, Change, Cursor, Draft, Extent, Finish, Found, Kind, Make, Naming,
    Open, Page, Place, Replace, Result, Space, Store, StorePath, SyncScope, Token,
};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A store whose uses respect leases.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) leases: Arc<Leases>,
    /// The holder of this session's leases, once it has said so.
    pub(crate) who: Arc<OnceLock<Holder>>,
}

/// An open file, and what keeps its directory from being leased while it may be written to.
struct Kept {
    inner: Box<dyn Open>,
    _changing: Option<Changing>,
}

impl Guarded {
    /// Waits until the directory may be used so. A directory that is not there needs no waiting.
    fn before(&self, dir: &StorePath, intent: Intent) -> Option<Changing> {
        let dir = self.inner.look(dir).ok()?.identity;
        self.leases.before(self.who.get().copied(), dir, intent)
    }

    /// The same for the directory that has the path.
    fn before_in(&self, path: &StorePath, intent: Intent) -> Option<Changing> {
        let (dir, _) = path.split()?;
        self.before(&dir, intent)
    }
}

impl Store for Guarded {
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn look(&self, path: &StorePath) -> Result<Found> {
        self.before_in(path, Intent::Read);
        self.inner.look(path)
    }

    fn list(&self, dir: &StorePath, after: Option<&Cursor>, room: usize) -> Result<Page> {
        self.before(dir, Intent::Read);
        self.inner.list(dir, after, room)
    }

    fn open(&self, path: &StorePath, access: Access) -> Result<Box<dyn Open>> {
        // Whoever reads has asked for the metadata before, and names them.
        let changing = match access {
            Access::Read => None,
            Access::Update => self.before_in(path, Intent::Change),
        };
        Ok(Box::new(Kept { inner: self.inner.open(path, access)?, _changing: changing }))
    }

    fn create(&self, path: &StorePath, make: &Make) -> Result<Box<dyn Draft>> {
        let draft = self.inner.create(path, make)?;
        // A draft may be written for a long time; its name is what others see.
        Ok(Box::new(Drafted { inner: draft, path: path.clone(), store: self.clone() }))
    }

    fn take_up(&self, path: &StorePath, token: &Token) -> Result<Box<dyn Draft>> {
        let draft = self.inner.take_up(path, token)?;
        Ok(Box::new(Drafted { inner: draft, path: path.clone(), store: self.clone() }))
    }

    fn make_dir(&self, path: &StorePath, mode: u32) -> Result<()> {
        let _changing = self.before_in(path, Intent::Change);
        self.inner.make_dir(path, mode)
    }

    fn make_link(&self, path: &StorePath, text: &[u8]) -> Result<()> {
        let _changing = self.before_in(path, Intent::Change);
        self.inner.make_link(path, text)
    }

    fn read_link(&self, path: &StorePath) -> Result<Vec<u8>> {
        self.before_in(path, Intent::Read);
        self.inner.read_link(path)
    }

    fn remove(&self, path: &StorePath, kind: Kind) -> Result<()> {
        let dir = if kind == Kind::Dir { self.inner.look(path).ok() } else { None };
        let _itself = dir.and_then(|_| self.before(path, Intent::Change));
        let _changing = self.before_in(path, Intent::Change);
        let leases = dir.map(|dir| self.leases.of_dir(dir.identity)).unwrap_or_default();
        self.inner.remove(path, kind)?;
        self.leases.forget(leases);
        Ok(())
    }

    fn rename(&self, from: &StorePath, to: &StorePath, replace: Replace) -> Result<()> {
        let is_dir =
            |path: &StorePath| self.inner.look(path).is_ok_and(|found| found.kind == Kind::Dir);
        let who = self.who.get().copied();
        let is_move = is_dir(from) || is_dir(to);
        let _moving = is_move.then(|| self.leases.before_paths_change(who));
        let _from = self.before_in(from, Intent::Change);
        let _to = self.before_in(to, Intent::Change);
        self.inner.rename(from, to, replace)
    }

    fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        let _changing = self.before_in(path, Intent::Change);
        self.inner.change(path, change)
    }

    fn attributes(&self, path: &StorePath) -> Result<Vec<Attribute>> {
        self.before_in(path, Intent::Read);
        self.inner.attributes(path)
    }

    fn space(&self) -> Result<Space> {
        self.inner.space()
    }

    fn places(&self, path: &StorePath) -> Result<Vec<Place>> {
        self.inner.places(path)
    }

    fn sync(&self, dirs: &[StorePath]) -> Result<()> {
        self.inner.sync(dirs)
    }
}

impl Open for Kept {
    fn is_unchanged(&self) -> Result<bool> {
        self.inner.is_unchanged()
    }

    fn found(&self) -> Result<Found> {
        self.inner.found()
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.inner.read_at(at, into)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(at, bytes)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.inner.set_len(length)
    }

    fn extents(&self, range: Range<u64>) -> Result<Vec<Extent>> {
        self.inner.extents(range)
    }

    fn sync(&self, scope: SyncScope) -> Result<()> {
        self.inner.sync(scope)
    }
}

/// A draft, whose name is given when nobody relies on its absence.
struct Drafted {
    inner: Box<dyn Draft>,
    path: StorePath,
    store: Guarded,
}

impl Draft for Drafted {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write_at(at, bytes)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.inner.read_at(at, into)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.inner.set_len(length)
    }

    fn token(&self) -> Token {
        self.inner.token()
    }

    fn keep(&self) {
        self.inner.keep();
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn name(self: Box<Self>, naming: Naming, finish: &Finish) -> Result<Found> {
        let _changing = self.store.before_in(&self.path, Intent::Change);
        self.inner.name(naming, finish)
    }

    fn discard(self: Box<Self>) {
        self.inner.discard();
    }
}
