//! What has an inode number.

use fuser::{FileAttr, FileType, INodeNo};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

/// A file, a directory, a link, or something special.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) perm: u16,
    pub(crate) owner: Owner,
    pub(crate) links: u32,
    pub(crate) modified: SystemTime,
    pub(crate) changed: SystemTime,
    pub(crate) attributes: BTreeMap<OsString, Vec<u8>>,
}

/// Who owns it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

#[derive(Debug)]
pub(crate) enum Kind {
    File(Content),
    Dir(Dir),
    Link(Vec<u8>),
    Special(FileType),
}

/// The content of a file.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// What is read.
    pub(crate) now: Vec<u8>,
    /// What was stored last.
    pub(crate) stored: Vec<u8>,
    pub(crate) is_unsynced: bool,
    /// It was written to, and not closed since.
    pub(crate) is_unclosed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Dir {
    pub(crate) names: BTreeMap<OsString, u64>,
    /// Names given since the directory was synced.
    pub(crate) unsynced: BTreeSet<OsString>,
    /// It has no name in its parent for the root.
    pub(crate) parent: u64,
}

/// The set-group-id bit.
const SET_GROUP: u16 = 0o2000;

impl Node {
    pub(crate) fn new(kind: Kind, perm: u16, owner: Owner) -> Self {
        let now = SystemTime::now();
        let links = if matches!(kind, Kind::Dir(_)) { 2 } else { 1 };
        let attributes = BTreeMap::new();
        Self { kind, perm, owner, links, modified: now, changed: now, attributes }
    }

    /// Made in `parent`: a directory there may give its group to what is made in it.
    pub(crate) fn inherit(mut self, parent: &Self) -> Self {
        if parent.perm & SET_GROUP != 0 {
            self.owner.group = parent.owner.group;
            if matches!(self.kind, Kind::Dir(_)) {
                self.perm |= SET_GROUP;
            }
        }
        self
    }

    pub(crate) fn size(&self) -> u64 {
        match &self.kind {
            Kind::File(content) => content.now.len() as u64,
            Kind::Link(text) => text.len() as u64,
            Kind::Dir(_) | Kind::Special(_) => 0,
        }
    }

    pub(crate) const fn file_type(&self) -> FileType {
        match self.kind {
            Kind::File(_) => FileType::RegularFile,
            Kind::Dir(_) => FileType::Directory,
            Kind::Link(_) => FileType::Symlink,
            Kind::Special(kind) => kind,
        }
    }

    pub(crate) fn attr(&self, number: u64) -> FileAttr {
        FileAttr {
            ino: INodeNo(number),
            size: self.size(),
            blocks: self.size().div_ceil(512),
            atime: self.modified,
            mtime: self.modified,
            ctime: self.changed,
            crtime: self.changed,
            kind: self.file_type(),
            perm: self.perm,
            nlink: self.links,
            uid: self.owner.user,
            gid: self.owner.group,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    pub(crate) fn named(&self, name: &OsStr) -> Option<u64> {
        match &self.kind {
            Kind::Dir(dir) => dir.names.get(name).copied(),
            _ => None,
        }
    }
}
