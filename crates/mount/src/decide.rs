//! Changes in a directory for which this mount has a write lease. They are decided by this mount.
//!
//! Each function returns `None` where it cannot decide; then the server is asked.

use crate::change::NewAttributes;
use crate::core::{Core, State};
use crate::listings::Item;
use crate::nodes::{Node, Seen};
use bytes::Bytes;
use fuser::Errno;
use hikyaku_remote::Edit;
use hikyaku_store::{Kind, StorePath};
use std::sync::Arc;
use std::time::Instant;

impl Core {
    /// Makes an entry. Returns the number of its node, with a reference for the kernel.
    pub(crate) fn decide_make(
        self: &Arc<Self>,
        path: &StorePath,
        edit: &Edit,
    ) -> Option<Result<u64, Errno>> {
        let (dir, name) = path.split()?;
        let now = Instant::now();
        let (kind, mode, link) = match edit {
            Edit::Create { mode, .. } => (Kind::File, *mode, None),
            Edit::MakeDir { mode, .. } => (Kind::Dir, *mode, None),
            Edit::MakeLink { text, .. } => (Kind::Link, 0o777, Some(text.clone())),
            _ => return None,
        };
        let mut state = self.state();
        state.may_decide().then_some(())?;
        let names = state.leases.names(&dir, now)?;
        if names.contains_key(name.as_bytes()) {
            return Some(Err(Errno::EEXIST));
        }
        if kind == Kind::Dir && !state.leases.has_room() {
            return None;
        }
        let size = link.as_ref().map_or(0, |text| text.len() as u64);
        let found = state.provisional(&dir, (kind, mode, size));
        let at = State::place();
        let item = Item { name: name.clone(), found, link: link.clone(), at };
        state.leases.names_mut(&dir, now)?.insert(name.as_bytes().to_vec(), item);
        // An earlier file of this name does not exist any more.
        state.nodes.observe_absent(path);
        state.note_change(path);
        let sent = state.changes.turn();
        if kind == Kind::Dir {
            state.leases.made(path, (now, sent));
        }
        let number = state.observe(path, Seen { found, link, at, asked: now, sent });
        state.nodes.look_up(number);
        state.touch(&dir);
        let id = state.hold(number, edit.clone(), Bytes::new());
        drop(state);
        self.held_outbox.put([id]);
        Some(Ok(number))
    }

    /// Removes a name.
    pub(crate) fn decide_remove(
        self: &Arc<Self>,
        path: &StorePath,
        is_dir: bool,
    ) -> Option<Result<(), Errno>> {
        let (dir, name) = path.split()?;
        let now = Instant::now();
        let mut state = self.state();
        state.may_decide().then_some(())?;
        let names = state.leases.names(&dir, now)?;
        let Some(item) = names.get(name.as_bytes()) else { return Some(Err(Errno::ENOENT)) };
        let kind = item.found.kind;
        match (kind == Kind::Dir, is_dir) {
            (true, false) => return Some(Err(Errno::EISDIR)),
            (false, true) => return Some(Err(Errno::ENOTDIR)),
            (true, true) if !state.leases.names(path, now)?.is_empty() => {
                return Some(Err(Errno::ENOTEMPTY));
            }
            _ => {}
        }
        let number = state.nodes.of_path(path).map_or(0, |(number, _)| number);
        state.decided_here(number)?;
        state.leases.names_mut(&dir, now)?.remove(name.as_bytes());
        if is_dir {
            state.leases.removed(path);
        }
        state.touch(&dir);
        let id =
            state.hold(number, Edit::Remove { path: path.as_bytes().to_vec(), kind }, Bytes::new());
        state.nodes.observe_absent(path);
        state.note_change(path);
        drop(state);
        self.held_outbox.put([id]);
        Some(Ok(()))
    }

    /// Changes the name of a file or a link.
    pub(crate) fn decide_rename(
        self: &Arc<Self>,
        (from, to): (&StorePath, &StorePath),
        replaces: bool,
    ) -> Option<Result<(), Errno>> {
        let (from_dir, from_name) = from.split()?;
        let (to_dir, to_name) = to.split()?;
        let now = Instant::now();
        let mut state = self.state();
        state.may_decide().then_some(())?;
        let target = state.leases.names(&to_dir, now)?.get(to_name.as_bytes());
        let target = target.map(|item| item.found.kind);
        let Some(item) = state.leases.names(&from_dir, now)?.get(from_name.as_bytes()) else {
            return Some(Err(Errno::ENOENT));
        };
        // The paths below a directory change with it.
        if item.found.kind == Kind::Dir || target == Some(Kind::Dir) || from == to {
            return None;
        }
        if target.is_some() && !replaces {
            return Some(Err(Errno::EEXIST));
        }
        let item = Item { name: to_name.clone(), ..item.clone() };
        let number = state.nodes.of_path(from).map_or(0, |(number, _)| number);
        state.decided_here(number)?;
        state.leases.names_mut(&from_dir, now)?.remove(from_name.as_bytes());
        state.leases.names_mut(&to_dir, now)?.insert(to_name.as_bytes().to_vec(), item);
        let edit =
            Edit::Rename { from: from.as_bytes().to_vec(), to: to.as_bytes().to_vec(), replaces };
        let id = state.hold(number, edit, Bytes::new());
        state.nodes.rename(from, to);
        state.note_change(from);
        state.note_change(to);
        state.touch(&from_dir);
        state.touch(&to_dir);
        drop(state);
        self.held_outbox.put([id]);
        Some(Ok(()))
    }

    /// Sets metadata.
    pub(crate) fn decide_attributes(
        self: &Arc<Self>,
        number: u64,
        new: NewAttributes,
    ) -> Option<()> {
        let NewAttributes { size, mode, modified } = new;
        let mut state = self.state();
        let path = state.decided_path(number)?;
        let bytes = path.as_bytes().to_vec();
        let mut ids = Vec::new();
        if let Some(size) = size {
            let at = modified.unwrap_or_else(crate::write::now);
            if let Some(old) = state.nodes.set_length(number, size, at) {
                state.pages.drop_content(old);
            }
            for handle in state.handles.values_mut().filter(|handle| handle.number == number) {
                handle.reader.set_size(size);
                handle.reader.handle_lost(0);
            }
            let edit = Edit::SetLength { path: bytes.clone(), size };
            ids.push(state.hold(number, edit, Bytes::new()));
        }
        if mode.is_some() || modified.is_some() {
            let node = state.nodes.at_mut(number)?;
            node.found.mode = mode.map_or(node.found.mode, |mode| mode & 0o1777);
            if let Some(modified) = modified {
                node.found.modified = modified;
                node.touched.clear();
            }
            ids.push(state.hold(
                number,
                Edit::Change { path: bytes, mode, modified },
                Bytes::new(),
            ));
        }
        if let Some((dir, _)) = path.split() {
            state.note_entries(&dir);
        }
        let forgotten = state.forgotten(Some(number));
        drop(state);
        self.held_outbox.put(ids);
        self.take_up(forgotten);
        Some(())
    }
}

impl State {
    /// The path of a node, if this mount decides on changes of it.
    pub(crate) fn decided_path(&self, number: u64) -> Option<StorePath> {
        self.may_decide().then_some(())?;
        let node = self.nodes.at(number).filter(|node| !node.is_stale)?;
        // The server makes a change of its name, or of a directory above it, first.
        (!self.changes.is_under_way(&node.path)).then_some(())?;
        let (dir, name) = node.path.split()?;
        let names = self.leases.names(&dir, Instant::now())?;
        names.get(name.as_bytes())?;
        self.decided_here(number)?;
        Some(node.path.clone())
    }

    /// Whether all unconfirmed changes of a node go the way of decided ones, so that their order is kept.
    fn decided_here(&self, number: u64) -> Option<()> {
        self.nodes.at(number).is_none_or(Node::is_held_only).then_some(())
    }

    /// The entries of a directory have changed.
    fn touch(&mut self, dir: &StorePath) {
        if let Some(node) = self.nodes.of_path_mut(dir) {
            node.found.modified = node.touched.give(node.found.modified, crate::write::now());
        }
    }
}
