//! What has lasted for sure, and what may have.
//!
//! Nothing is promised but what was synced: a file's content by a sync of the file, its name by a
//! sync of the directory, and neither by the other (fsync(2)).

use super::record::{Event, Made, Number, Slot};
use anyhow::Result;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something on the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    File(Arc<Vec<u8>>),
    Dir(BTreeMap<OsString, Number>),
    Link(PathBuf),
}

/// What has lasted, whether or not a name leads there.
#[derive(Clone, Default, Debug)]
pub(crate) struct Lasting {
    pub(crate) nodes: BTreeMap<Number, Node>,
}

/// A change of names that may have lasted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Names {
    Put(Slot, Number),
    Move(Slot, Slot),
    Drop(Slot),
}

/// A change of a file's bytes that may have lasted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bytes {
    Write(u64, Vec<u8>),
    Zero(Range<u64>),
    /// Only the length.
    Length(u64),
}

/// The disk at a point of the copy.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) lasting: Lasting,
    pub(crate) names: Vec<Names>,
    pub(crate) bytes: BTreeMap<Number, Vec<Bytes>>,
    /// Lengths of files as programs see them.
    lengths: BTreeMap<Number, u64>,
}

impl Names {
    pub(crate) fn slots(&self) -> Vec<&Slot> {
        match self {
            Self::Put(slot, _) | Self::Drop(slot) => vec![slot],
            Self::Move(from, to) => vec![from, to],
        }
    }
}

impl Lasting {
    /// Takes up everything below `root`, as of before a copy: it has lasted.
    pub(crate) fn take_up(&mut self, root: &Path) -> Result<Number> {
        let meta = fs::symlink_metadata(root)?;
        let node = if meta.is_dir() {
            let mut names = BTreeMap::new();
            for entry in fs::read_dir(root)? {
                let name = entry?.file_name();
                names.insert(name.clone(), self.take_up(&root.join(name))?);
            }
            Node::Dir(names)
        } else if meta.is_symlink() {
            Node::Link(fs::read_link(root)?)
        } else {
            Node::File(Arc::new(fs::read(root)?))
        };
        self.nodes.insert(meta.ino(), node);
        Ok(meta.ino())
    }

    /// All that names lead to from `root`.
    pub(crate) fn below(&self, root: Number) -> BTreeMap<PathBuf, &Node> {
        let mut all = BTreeMap::new();
        let mut open = vec![(PathBuf::new(), root)];
        while let Some((path, number)) = open.pop() {
            let Some(Node::Dir(names)) = self.nodes.get(&number) else { continue };
            for (name, number) in names {
                if let Some(node) = self.nodes.get(number) {
                    let path = path.join(name);
                    all.insert(path.clone(), node);
                    open.push((path, *number));
                }
            }
        }
        all
    }

    /// What stands at `path` below `root`.
    pub(crate) fn find(&self, root: Number, path: &Path) -> Option<Number> {
        path.iter().try_fold(root, |dir, name| match self.nodes.get(&dir) {
            Some(Node::Dir(names)) => names.get(name).copied(),
            _ => None,
        })
    }

    fn names_of(&mut self, dir: Number) -> Option<&mut BTreeMap<OsString, Number>> {
        match self.nodes.get_mut(&dir) {
            Some(Node::Dir(names)) => Some(names),
            _ => None,
        }
    }

    pub(crate) fn rename(&mut self, change: &Names) {
        match change {
            Names::Put((dir, name), number) => {
                self.names_of(*dir).map(|names| names.insert(name.clone(), *number));
            }
            Names::Drop((dir, name)) => {
                self.names_of(*dir).map(|names| names.remove(name));
            }
            Names::Move((from, old), (to, new)) => {
                let moved = self.names_of(*from).and_then(|names| names.remove(old));
                if let (Some(number), Some(names)) = (moved, self.names_of(*to)) {
                    names.insert(new.clone(), number);
                }
            }
        }
    }
}

impl Disk {
    /// Before a copy.
    pub(crate) fn new(lasting: Lasting) -> Self {
        let length = |node: &Node| match node {
            Node::File(bytes) => Some(bytes.len() as u64),
            _ => None,
        };
        let lengths = lasting.nodes.iter().filter_map(|(n, node)| Some((*n, length(node)?)));
        Self { lengths: lengths.collect(), lasting, ..Self::default() }
    }

    /// What happens next.
    pub(crate) fn handle(&mut self, event: &Event) {
        match event {
            Event::Put(slot, number, made) => {
                let node = match made {
                    Made::File => Some(Node::File(Arc::default())),
                    Made::Dir => Some(Node::Dir(BTreeMap::new())),
                    Made::Link(to) => Some(Node::Link(to.clone())),
                    Made::Known => None,
                };
                node.map(|node| self.lasting.nodes.insert(*number, node));
                self.names.push(Names::Put(slot.clone(), *number));
            }
            Event::Move(from, to) => self.names.push(Names::Move(from.clone(), to.clone())),
            Event::Drop(slot) => self.names.push(Names::Drop(slot.clone())),
            Event::Write(number, at, bytes) => {
                let end = at + bytes.len() as u64;
                self.change(*number, Bytes::Write(*at, bytes.clone()));
                self.grow(*number, end);
            }
            Event::Punch(number, range) => self.change(*number, Bytes::Zero(range.clone())),
            Event::Resize(number, length) => {
                let old = self.lengths.insert(*number, *length).unwrap_or(0);
                if *length < old {
                    self.change(*number, Bytes::Zero(*length..old));
                }
                self.change(*number, Bytes::Length(*length));
            }
            Event::Sync(number) => {
                self.sync_bytes(*number);
                self.sync_names(*number);
            }
            Event::SyncAll => {
                let numbers: Vec<_> = self.bytes.keys().copied().collect();
                numbers.into_iter().for_each(|number| self.sync_bytes(number));
                let names = std::mem::take(&mut self.names);
                names.iter().for_each(|change| self.lasting.rename(change));
            }
            Event::Told => {}
        }
    }

    fn change(&mut self, number: Number, change: Bytes) {
        self.bytes.entry(number).or_default().push(change);
    }

    fn grow(&mut self, number: Number, end: u64) {
        let length = self.lengths.entry(number).or_default();
        *length = end.max(*length);
        let length = *length;
        self.change(number, Bytes::Length(length));
    }

    fn sync_bytes(&mut self, number: Number) {
        let changes = self.bytes.remove(&number).unwrap_or_default();
        if let Some(Node::File(bytes)) = self.lasting.nodes.get_mut(&number) {
            let bytes = Arc::make_mut(bytes);
            changes.iter().for_each(|change| apply(bytes, change));
        }
    }

    /// Changes of names in this directory, and those before them that they stand on.
    fn sync_names(&mut self, dir: Number) {
        let mut needed: Vec<&Slot> = Vec::new();
        let mut lasts = vec![false; self.names.len()];
        for (at, change) in self.names.iter().enumerate().rev() {
            let slots = change.slots();
            if slots.iter().any(|slot| slot.0 == dir || needed.contains(slot)) {
                lasts[at] = true;
                needed.extend(slots);
            }
        }
        let names = std::mem::take(&mut self.names);
        for (change, lasts) in names.into_iter().zip(lasts) {
            if lasts {
                self.lasting.rename(&change);
            } else {
                self.names.push(change);
            }
        }
    }
}

/// Makes a change whole.
pub(crate) fn apply(bytes: &mut Vec<u8>, change: &Bytes) {
    match change {
        Bytes::Write(at, new) => put(bytes, *at as usize, new),
        Bytes::Zero(range) => {
            let end = bytes.len().min(range.end as usize);
            bytes[(range.start as usize).min(end)..end].fill(0);
        }
        Bytes::Length(length) => bytes.resize(*length as usize, 0),
    }
}

/// Writes, and fills with zeros what lies between.
pub(crate) fn put(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    let end = at + new.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(new);
}
