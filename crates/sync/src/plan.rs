//! What is to be done.

use crate::side::{Kind, Meta, Setting};
use hikyaku_store::Identity;
use std::collections::BTreeSet;

/// What is to be done, in this order. Paths are below the root.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Files, links and others that are in the way of names of another kind.
    pub(crate) clear: Vec<(Vec<u8>, Kind)>,
    /// What is in the way of a name that is kept: it is deleted before anything else is done, each directory after what is
    /// in it.
    pub(crate) early: Vec<Doomed>,
    /// Directories to be made and their permission bits, outermost first.
    pub(crate) dirs: Vec<(Vec<u8>, u32)>,
    /// Names that are kept under other paths before new ones take their places.
    pub(crate) backups: Vec<(Vec<u8>, Vec<u8>)>,
    /// Links, their texts, and the times that they get.
    pub(crate) links: Vec<Link>,
    /// Metadata of names whose content stays.
    pub(crate) set: Vec<(Vec<u8>, Kind, Setting)>,
    /// Files that are copied, with a zero byte behind each.
    pub(crate) files: Vec<u8>,
    /// Metadata that copied files get afterwards, where a copy would not keep it as is wanted.
    pub(crate) set_copied: Vec<(Vec<u8>, Setting)>,
    /// What is deleted, each directory after what is in it.
    pub(crate) delete: Vec<Doomed>,
    /// Files that take the place of a directory, with a zero byte behind each: they are copied when the directory has
    /// been deleted.
    pub(crate) late_files: Vec<u8>,
    /// The same for links.
    pub(crate) late_links: Vec<Link>,
    /// Files and links of the source that are removed when they were copied.
    pub(crate) sources: Vec<Doomed>,
    /// Metadata of directories, outermost first: they are set at the end.
    pub(crate) set_dirs: Vec<SetDir>,
    /// Directories in which names are made, copied or deleted, which changes their times.
    pub(crate) touched: BTreeSet<Vec<u8>>,
    /// Directories of the source.
    pub(crate) source_dirs: BTreeSet<Identity>,
    /// Directories that the source does not have, in which something is deleted.
    pub(crate) emptied: Vec<(Vec<u8>, Identity)>,
    /// Files of the source.
    pub(crate) all: Amount,
    /// Files that are copied.
    pub(crate) copied: Amount,
    /// How many names of the source are no directories.
    pub(crate) leaves: u64,
    /// How many directories of the source could not be read.
    pub(crate) unread: u64,
    /// What could not be read or is in the way, for the user.
    pub(crate) failures: Vec<String>,
    /// Names that had gone before they were read.
    pub(crate) vanished: Vec<String>,
}

/// So many files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    pub(crate) const fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A link that is made.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) path: Vec<u8>,
    pub(crate) text: Vec<u8>,
    pub(crate) setting: Setting,
}

/// A name that is deleted, if it is still what was listed.
#[derive(Debug)]
pub(crate) struct Doomed {
    pub(crate) path: Vec<u8>,
    pub(crate) meta: Meta,
    pub(crate) end: End,
    pub(crate) reason: Reason,
}

/// What becomes of a name that is deleted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Removed,
    /// It is kept under this path.
    Renamed(Vec<u8>),
}

/// Why a name is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The source does not have it. It is told when it is deleted.
    Extra,
    /// It is in a directory that is in the way of a file or link. It is told with that.
    Within,
    /// It is in a directory that is in the way of a backup. It is told with that.
    Backup,
    /// The same, and the source does not have the directory: rsync keeps the name first, as all that it deletes, and deletes
    /// what it has kept then. Both are told.
    BackupAfterAll,
    /// It is such a directory, which has nothing in it then. It is not told.
    InTheWay,
}

impl Reason {
    /// Whether a backup takes the place.
    pub(crate) const fn is_of_backup(self) -> bool {
        matches!(self, Self::Backup | Self::BackupAfterAll)
    }
}

/// Metadata that a directory gets at the end.
#[derive(Debug)]
pub(crate) struct SetDir {
    pub(crate) path: Vec<u8>,
    pub(crate) setting: Setting,
    /// Permission bits that a directory that was made keeps, of those that the umask of the target's machine has left.
    pub(crate) kept: Option<u32>,
    /// When it is set.
    pub(crate) when: When,
}

/// When metadata of a directory are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    /// In any case: they differ.
    Always,
    /// If the directory is touched.
    Touched,
}

impl Plan {
    /// How many names would be deleted that the source does not have.
    pub(crate) fn deletions(&self) -> u64 {
        self.doomed().filter(|doomed| doomed.reason != Reason::InTheWay).count() as u64
    }

    /// All that is deleted.
    pub(crate) fn doomed(&self) -> impl Iterator<Item = &Doomed> {
        self.early.iter().chain(&self.delete)
    }

    /// Directories whose metadata are to be set.
    pub(crate) fn due_dirs(&self) -> impl Iterator<Item = &SetDir> {
        let is_due = |dir: &&SetDir| dir.when == When::Always || self.touched.contains(&dir.path);
        self.set_dirs.iter().filter(is_due)
    }

    /// A directory of the source that would be deleted, or in which something would be: the two trees are in one another.
    pub(crate) fn deleted_source(&self) -> Option<&[u8]> {
        let is_source = |(_, dir): &&(Vec<u8>, Identity)| self.source_dirs.contains(dir);
        self.emptied.iter().find(is_source).map(|(path, _)| &path[..])
    }

    /// The directory of `path` is touched.
    pub(crate) fn touch(&mut self, path: &[u8]) {
        self.touched.insert(parent(path).to_vec());
    }
}

/// The directory of a path; the empty path is the root.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    &path[..slash]
}

/// The path of a name in a directory.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

/// A directory as it is shown: the root is `./`.
pub(crate) fn dir_line(path: &[u8]) -> Vec<u8> {
    if path.is_empty() { b"./".to_vec() } else { [path, b"/"].concat() }
}
