//! The file system itself: numbered nodes in memory, and names that lead to them. Nothing is given
//! back when a name goes, so that what is open stays.

mod content;
mod judge;

use crate::faults::{Faults, Refused};
use crate::node::{Dir, Kind, Node, Owner};
use crate::record::Record;
use fuser::{Errno, RenameFlags};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::SystemTime;

/// The root's number.
pub(crate) const ROOT: u64 = 1;

pub(crate) struct Store {
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) faults: Faults,
    pub(crate) record: Record,
    last: u64,
}

type Answer<T> = Result<T, Errno>;

impl Store {
    pub(crate) fn new(owner: Owner) -> Self {
        let root = Dir { parent: ROOT, ..Dir::default() };
        let root = Node::new(Kind::Dir(root), 0o755, owner);
        let (faults, record) = (Faults::default(), Record::default());
        Self { nodes: BTreeMap::from([(ROOT, root)]), faults, record, last: ROOT }
    }

    pub(crate) fn node(&self, number: u64) -> Answer<&Node> {
        self.nodes.get(&number).ok_or(Errno::ENOENT)
    }

    pub(crate) fn node_mut(&mut self, number: u64) -> Answer<&mut Node> {
        self.nodes.get_mut(&number).ok_or(Errno::ENOENT)
    }

    pub(crate) fn dir(&self, number: u64) -> Answer<&Dir> {
        match &self.node(number)?.kind {
            Kind::Dir(dir) => Ok(dir),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn dir_mut(&mut self, number: u64) -> Answer<&mut Dir> {
        match &mut self.node_mut(number)?.kind {
            Kind::Dir(dir) => Ok(dir),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn lookup(&self, parent: u64, name: &OsStr) -> Answer<u64> {
        self.dir(parent)?.names.get(name).copied().ok_or(Errno::ENOENT)
    }

    /// Makes something new.
    pub(crate) fn make(&mut self, parent: u64, name: &OsStr, mut node: Node) -> Answer<u64> {
        self.faults.check_change(Some(name.as_bytes()))?;
        if matches!(node.kind, Kind::Link(_)) {
            self.faults.check(Refused::Symlinks)?;
        }
        if self.lookup(parent, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        if let Kind::Dir(dir) = &mut node.kind {
            dir.parent = parent;
        }
        let node = node.inherit(self.node(parent)?);
        self.last += 1;
        self.nodes.insert(self.last, node);
        self.give(parent, name, self.last)?;
        Ok(self.last)
    }

    fn give(&mut self, parent: u64, name: &OsStr, number: u64) -> Answer<()> {
        let dir = self.dir_mut(parent)?;
        dir.names.insert(name.to_owned(), number);
        dir.unsynced.insert(name.to_owned());
        self.touch(parent)
    }

    fn take(&mut self, parent: u64, name: &OsStr) -> Answer<()> {
        let dir = self.dir_mut(parent)?;
        dir.names.remove(name);
        dir.unsynced.remove(name);
        self.touch(parent)
    }

    fn touch(&mut self, number: u64) -> Answer<()> {
        let node = self.node_mut(number)?;
        node.modified = SystemTime::now();
        node.changed = node.modified;
        Ok(())
    }

    /// Gives a node a second name.
    pub(crate) fn link(&mut self, number: u64, parent: u64, name: &OsStr) -> Answer<()> {
        self.faults.check_change(Some(name.as_bytes()))?;
        self.faults.check(Refused::HardLinks)?;
        if self.lookup(parent, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        self.node_mut(number)?.links += 1;
        self.give(parent, name, number)
    }

    /// Takes a name away from what is no directory.
    pub(crate) fn unlink(&mut self, parent: u64, name: &OsStr) -> Answer<()> {
        self.faults.check_change(None)?;
        let number = self.lookup(parent, name)?;
        if self.dir(number).is_ok() {
            return Err(Errno::EISDIR);
        }
        self.node_mut(number)?.links -= 1;
        self.take(parent, name)
    }

    pub(crate) fn remove_dir(&mut self, parent: u64, name: &OsStr) -> Answer<()> {
        self.faults.check_change(None)?;
        let number = self.lookup(parent, name)?;
        if !self.dir(number)?.names.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.node_mut(number)?.links = 0;
        self.take(parent, name)
    }

    pub(crate) fn rename(
        &mut self,
        (parent, name): (u64, &OsStr),
        (to, new): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Answer<()> {
        self.faults.check_change(Some(new.as_bytes()))?;
        self.faults.check(Refused::Rename)?;
        let number = self.lookup(parent, name)?;
        let old = self.lookup(to, new).ok();
        if flags.contains(RenameFlags::RENAME_NOREPLACE) && old.is_some() {
            return Err(Errno::EEXIST);
        }
        if !flags.difference(RenameFlags::RENAME_NOREPLACE).is_empty() {
            return Err(Errno::EINVAL);
        }
        match old {
            Some(old) if old == number => return Ok(()),
            Some(old) if self.dir(number).is_ok() => {
                self.dir(old)?;
                self.remove_dir(to, new)?;
            }
            Some(_) => self.unlink(to, new)?,
            None => {}
        }
        self.judge_name(number, new);
        self.take(parent, name)?;
        if let Ok(dir) = self.dir_mut(number) {
            dir.parent = to;
        }
        self.give(to, new, number)
    }

    pub(crate) fn sync_dir(&mut self, number: u64) -> Answer<()> {
        self.faults.check(Refused::SyncOfDirs)?;
        *self.record.dir_syncs.entry(number).or_default() += 1;
        self.dir_mut(number)?.unsynced.clear();
        Ok(())
    }

    /// Entries of a directory, with `.` and `..`.
    pub(crate) fn list(&self, number: u64) -> Answer<Vec<(u64, fuser::FileType, OsString)>> {
        let dir = self.dir(number)?;
        let kind = fuser::FileType::Directory;
        let mut all = vec![(number, kind, ".".into()), (dir.parent, kind, "..".into())];
        for (name, number) in &dir.names {
            all.push((*number, self.node(*number)?.file_type(), name.clone()));
        }
        Ok(all)
    }
}
