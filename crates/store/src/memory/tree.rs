//! The files and directories of a store in memory.

use super::blocks::{BLOCK_BYTES, Blocks};
use super::{Entry, tick};
use crate::error::ErrorKind;
use crate::found::{Found, Identity, Kind, Owner, Time, Version};
use crate::path::StorePath;
use crate::store::{Attribute, Change, Extent, Finish, Naming, Replace, Token};
use hikyaku_fs::Name;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ops::Range;

/// The number of a node.
pub(super) type Number = u64;
type TreeResult<T> = std::result::Result<T, ErrorKind>;

const ROOT: Number = 1;
/// All nodes of the store.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: BTreeMap<Number, Node>,
    next: Number,
    clock: u64,
    room: u64,
    used: u64,
    drafts: BTreeMap<Token, TreeDraft>,
}

/// A draft.
#[derive(Clone, Debug)]
struct TreeDraft {
    dir: Number,
    name: Name,
    number: Number,
    is_open: bool,
}

/// A file, directory or symbolic link.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) body: Body,
    mode: u32,
    owner: Owner,
    modified: Time,
    attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The number of changes of the content.
    revision: u64,
    /// The number of names, open handles and drafts that refer to the node.
    uses: u64,
    /// The number of synced names, which a power failure would restore.
    synced_uses: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    File(File),
    Dir(Dir),
    Link(Vec<u8>),
}

/// A file's content as readers see it, and as it has reached the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct File {
    seen: Blocks,
    synced: Blocks,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Dir {
    seen: BTreeMap<Name, Number>,
    synced: BTreeMap<Name, Number>,
}

impl Body {
    pub(super) fn empty_dir() -> Self {
        Self::Dir(Dir::default())
    }
}

impl Tree {
    pub(super) fn new(room: u64) -> Self {
        let (drafts, nodes) = (BTreeMap::new(), BTreeMap::new());
        let mut tree = Self { nodes, next: ROOT, clock: 1, room, used: 0, drafts };
        let root = tree.add(Body::empty_dir(), 0o755);
        tree.hold(root);
        tree
    }

    fn now(&mut self) -> Time {
        self.clock += 1;
        tick(self.clock)
    }

    fn add(&mut self, body: Body, mode: u32) -> Number {
        let (number, modified) = (self.next, self.now());
        self.next += 1;
        let (owner, attributes) = (Owner::default(), BTreeMap::new());
        let node =
            Node { body, mode, owner, modified, attributes, revision: 0, uses: 0, synced_uses: 0 };
        self.nodes.insert(number, node);
        number
    }

    pub(super) const fn room(&self) -> u64 {
        self.room
    }

    pub(super) const fn free(&self) -> u64 {
        self.room.saturating_sub(self.used)
    }

    pub(super) fn find(&self, path: &StorePath) -> TreeResult<Number> {
        path.names().try_fold(ROOT, |dir, name| {
            let name = Name::new(name).map_err(|_| ErrorKind::BadName)?;
            self.entries(dir)?.get(&name).copied().ok_or(ErrorKind::NotFound)
        })
    }

    pub(super) fn node(&self, number: Number) -> &Node {
        &self.nodes[&number]
    }

    fn node_mut(&mut self, number: Number) -> &mut Node {
        self.nodes.get_mut(&number).expect("a number stands for a node for as long as it is held")
    }

    pub(super) fn entries(&self, dir: Number) -> TreeResult<&BTreeMap<Name, Number>> {
        match &self.node(dir).body {
            Body::Dir(dir) => Ok(&dir.seen),
            Body::Link(_) => Err(ErrorKind::Link),
            Body::File(_) => Err(ErrorKind::NotDir),
        }
    }

    fn dir(&mut self, dir: Number) -> TreeResult<&mut Dir> {
        match &mut self.node_mut(dir).body {
            Body::Dir(dir) => Ok(dir),
            Body::Link(_) => Err(ErrorKind::Link),
            Body::File(_) => Err(ErrorKind::NotDir),
        }
    }

    fn file(&mut self, number: Number) -> TreeResult<&mut File> {
        match &mut self.node_mut(number).body {
            Body::File(file) => Ok(file),
            Body::Dir(_) | Body::Link(_) => Err(ErrorKind::IsDir),
        }
    }

    pub(super) fn found(&self, number: Number) -> Found {
        let node = self.node(number);
        let (kind, size, allocated) = match &node.body {
            Body::File(file) => (Kind::File, file.seen.length(), file.seen.allocated()),
            Body::Dir(_) => (Kind::Dir, 0, 0),
            Body::Link(text) => (Kind::Link, text.len() as u64, 0),
        };
        let mut version = [0; 32];
        version[..8].copy_from_slice(&number.to_le_bytes());
        version[8..16].copy_from_slice(&node.revision.to_le_bytes());
        Found {
            kind,
            size,
            allocated,
            mode: node.mode,
            owner: node.owner,
            modified: node.modified,
            identity: Identity { device: 0, number },
            version: Some(Version(version)),
        }
    }

    /// Adds a name or handle that refers to the node.
    pub(super) fn hold(&mut self, number: Number) {
        self.node_mut(number).uses += 1;
    }

    /// Removes a name or handle that refers to the node.
    pub(super) fn release(&mut self, number: Number) {
        self.node_mut(number).uses -= 1;
        self.forget_unused(number);
    }

    fn forget_unused(&mut self, number: Number) {
        let node = self.node(number);
        if node.uses == 0
            && node.synced_uses == 0
            && let Some(node) = self.nodes.remove(&number)
        {
            self.used -= node.allocated();
        }
    }

    pub(super) fn make(
        &mut self,
        dir: Number,
        name: &Name,
        body: Body,
        mode: u32,
    ) -> TreeResult<Number> {
        if self.entries(dir)?.contains_key(name) {
            return Err(ErrorKind::Exists);
        }
        let number = self.add(body, mode);
        self.enter(dir, name, number)?;
        Ok(number)
    }

    fn enter(&mut self, dir: Number, name: &Name, number: Number) -> TreeResult<()> {
        let old = self.dir(dir)?.seen.insert(name.clone(), number);
        self.hold(number);
        self.touch_dir(dir);
        old.into_iter().for_each(|old| self.release(old));
        Ok(())
    }

    fn touch_dir(&mut self, dir: Number) {
        let now = self.now();
        self.node_mut(dir).modified = now;
    }

    pub(super) fn remove(&mut self, dir: Number, name: &Name, kind: Kind) -> TreeResult<()> {
        let number = *self.entries(dir)?.get(name).ok_or(ErrorKind::NotFound)?;
        match (self.found(number).kind, kind) {
            (have, wanted) if have == wanted => {}
            (Kind::Dir, _) => return Err(ErrorKind::IsDir),
            (_, Kind::Dir) => return Err(ErrorKind::NotDir),
            _ => return Err(ErrorKind::Changed),
        }
        if self.is_in_use(number) {
            return Err(ErrorKind::NotEmpty);
        }
        self.dir(dir)?.seen.remove(name);
        self.touch_dir(dir);
        self.release(number);
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        from: Entry<'_>,
        to: Entry<'_>,
        replace: Replace,
    ) -> TreeResult<()> {
        let number = *self.entries(from.0)?.get(from.1).ok_or(ErrorKind::NotFound)?;
        let old = self.entries(to.0)?.get(to.1).copied();
        if self.is_below(to.0, number) {
            return Err(ErrorKind::of(Errno::INVAL));
        }
        if replace == Replace::Exchange {
            let old = old.ok_or(ErrorKind::NotFound)?;
            if self.is_below(from.0, old) {
                return Err(ErrorKind::of(Errno::INVAL));
            }
            self.dir(from.0)?.seen.insert(from.1.clone(), old);
            self.dir(to.0)?.seen.insert(to.1.clone(), number);
            return Ok(());
        }
        if let Some(old) = old {
            if old == number && replace == Replace::Allowed {
                return Ok(());
            }
            self.may_replace(number, old, replace)?;
        }
        self.dir(from.0)?.seen.remove(from.1);
        self.enter(to.0, to.1, number)?;
        self.touch_dir(from.0);
        self.release(number);
        Ok(())
    }

    fn may_replace(&self, number: Number, old: Number, replace: Replace) -> TreeResult<()> {
        let (new, there) = (self.found(number).kind, self.found(old).kind);
        match replace {
            Replace::Never => Err(ErrorKind::Exists),
            _ if there == Kind::Dir && new != Kind::Dir => Err(ErrorKind::IsDir),
            _ if there != Kind::Dir && new == Kind::Dir => Err(ErrorKind::NotDir),
            _ if self.is_in_use(old) => Err(ErrorKind::NotEmpty),
            _ => Ok(()),
        }
    }

    /// Whether a directory has entries or drafts.
    fn is_in_use(&self, dir: Number) -> bool {
        self.entries(dir).is_ok_and(|entries| !entries.is_empty())
            || self.drafts.values().any(|draft| draft.dir == dir)
    }

    /// Whether the directory `dir` is `number` or lies below it.
    fn is_below(&self, dir: Number, number: Number) -> bool {
        dir == number
            || self
                .entries(number)
                .is_ok_and(|entries| entries.values().any(|&entry| self.is_below(dir, entry)))
    }

    pub(super) fn change(&mut self, number: Number, change: &Change) {
        let node = self.node_mut(number);
        node.mode = change.mode.map_or(node.mode, |mode| mode & 0o7777);
        node.modified = change.modified.unwrap_or(node.modified);
        node.owner = change.owner.unwrap_or(node.owner);
        let set = change.attributes.iter().cloned();
        node.attributes.extend(set.map(|Attribute { name, value }| (name, value)));
    }

    pub(super) fn attributes(&self, number: Number) -> Vec<Attribute> {
        let all = self.node(number).attributes.iter();
        all.map(|(name, value)| Attribute { name: name.clone(), value: value.clone() }).collect()
    }

    pub(super) fn read(&mut self, number: Number, at: u64, into: &mut [u8]) -> TreeResult<usize> {
        Ok(self.file(number)?.seen.read(at, into))
    }

    pub(super) fn write(&mut self, number: Number, at: u64, bytes: &[u8]) -> TreeResult<()> {
        let end = at.checked_add(bytes.len() as u64).ok_or(ErrorKind::TooLarge)?;
        let free = self.free();
        let file = self.file(number)?;
        let needed = file.seen.missing(&(at..end)).saturating_mul(BLOCK_BYTES);
        if needed > free {
            return Err(ErrorKind::NoSpace);
        }
        file.seen.write(at, bytes);
        self.used += needed;
        self.touch(number);
        Ok(())
    }

    pub(super) fn set_length(&mut self, number: Number, length: u64) -> TreeResult<()> {
        let file = self.file(number)?;
        let before = file.seen.allocated();
        file.seen.set_length(length);
        let after = file.seen.allocated();
        self.used = self.used + after - before;
        self.touch(number);
        Ok(())
    }

    pub(super) fn extents(&mut self, number: Number, range: Range<u64>) -> TreeResult<Vec<Extent>> {
        Ok(self.file(number)?.seen.extents(range))
    }

    fn touch(&mut self, number: Number) {
        let now = self.now();
        let node = self.node_mut(number);
        node.modified = now;
        node.revision += 1;
    }

    pub(super) fn sync_file(&mut self, number: Number) -> TreeResult<()> {
        let file = self.file(number)?;
        file.synced = file.seen.clone();
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, number: Number) -> TreeResult<()> {
        let dir = self.dir(number)?;
        let old = std::mem::replace(&mut dir.synced, dir.seen.clone());
        let new: Vec<Number> = dir.synced.values().copied().collect();
        new.into_iter().for_each(|entry| self.node_mut(entry).synced_uses += 1);
        for entry in old.into_values() {
            self.node_mut(entry).synced_uses -= 1;
            self.forget_unused(entry);
        }
        Ok(())
    }

    pub(super) fn begin_draft(&mut self, dir: Number, name: &Name) -> (Number, Token) {
        let number = self.add(Body::File(File::default()), 0o600);
        let token = Token(number.to_le_bytes().to_vec());
        self.hold(number);
        let draft = TreeDraft { dir, name: name.clone(), number, is_open: true };
        self.drafts.insert(token.clone(), draft);
        (number, token)
    }

    pub(super) fn resume_draft(
        &mut self,
        dir: Number,
        name: &Name,
        token: &Token,
    ) -> TreeResult<Number> {
        let draft = self.drafts.get_mut(token).ok_or(ErrorKind::NotFound)?;
        if (draft.dir, &draft.name) != (dir, name) {
            return Err(ErrorKind::NotFound);
        }
        if draft.is_open {
            return Err(ErrorKind::Busy);
        }
        draft.is_open = true;
        Ok(draft.number)
    }

    /// Releases the draft's lock but keeps the draft, as after the exit of its writer.
    pub(super) fn leave_draft(&mut self, token: &Token) {
        if let Some(draft) = self.drafts.get_mut(token) {
            draft.is_open = false;
        }
    }

    pub(super) fn discard_draft(&mut self, token: &Token) {
        if let Some(draft) = self.drafts.remove(token) {
            self.release(draft.number);
        }
    }

    pub(super) fn name_draft(
        &mut self,
        token: &Token,
        naming: Naming,
        finish: &Finish,
    ) -> TreeResult<Found> {
        let TreeDraft { dir, name, number, .. } =
            self.drafts.get(token).cloned().ok_or(ErrorKind::Gone)?;
        let old = self.entries(dir)?.get(&name).copied();
        let version = old.and_then(|old| self.found(old).version);
        match (naming, old) {
            (Naming::IfAbsent, Some(_)) => return Err(ErrorKind::Exists),
            (Naming::IfVersion(wanted), _) if version != Some(wanted) => {
                return Err(ErrorKind::Changed);
            }
            (_, Some(old)) if self.found(old).kind == Kind::Dir => return Err(ErrorKind::IsDir),
            _ => {}
        }
        let Finish { mode, modified, owner, attributes, .. } = finish.clone();
        let mode = Some(mode.unwrap_or(0o644));
        self.change(number, &Change { mode, modified, owner, attributes });
        self.enter(dir, &name, number)?;
        self.discard_draft(token);
        Ok(self.found(number))
    }

    /// The tree after a power failure.
    pub(super) fn crashed(&self) -> Self {
        let mut nodes = self.nodes.clone();
        for node in nodes.values_mut() {
            match &mut node.body {
                Body::File(file) => file.seen = file.synced.clone(),
                Body::Dir(dir) => dir.seen = dir.synced.clone(),
                Body::Link(_) => {}
            }
            (node.uses, node.synced_uses) = (0, 0);
        }
        let names: Vec<Number> = nodes.values().flat_map(Node::entries).collect();
        for number in names {
            nodes.entry(number).and_modify(|node| {
                node.uses += 1;
                node.synced_uses += 1;
            });
        }
        nodes.entry(ROOT).and_modify(|root| root.uses += 1);
        nodes.retain(|_, node| node.uses > 0);
        let used = nodes.values().map(Node::allocated).sum();
        Self {
            nodes,
            next: self.next,
            clock: self.clock,
            room: self.room,
            used,
            drafts: BTreeMap::new(),
        }
    }
}

impl Node {
    fn allocated(&self) -> u64 {
        match &self.body {
            Body::File(file) => file.seen.allocated(),
            Body::Dir(_) | Body::Link(_) => 0,
        }
    }

    fn entries(&self) -> Vec<Number> {
        match &self.body {
            Body::Dir(dir) => dir.seen.values().copied().collect(),
            Body::File(_) | Body::Link(_) => Vec::new(),
        }
    }
}
