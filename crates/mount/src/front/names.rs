//! Names and metadata, and the kernel's copies of them.

use super::{Front, GENERATION, NAME_BYTES_MAX};
use crate::answer::Slot;
use crate::attributes::{NOTHING, attributes};
use crate::change::NewAttributes;
use crate::core::{Access, Core, State, errno};
use crate::nodes::Node;
use fuser::{Errno, INodeNo, ReplyAttr, ReplyEntry};
use hikyaku_fs::Name;
use hikyaku_remote::Edit;
use hikyaku_store::{ErrorKind, Kind, StorePath};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Core {
    /// Looks a name up.
    pub(super) fn reply_lookup(
        self: &Arc<Self>,
        parent: INodeNo,
        name: &OsStr,
        reply: Slot<ReplyEntry>,
    ) {
        let core = self;
        let Some(dir) = core.usable(parent.0) else { return reply.error(Errno::ESTALE) };
        if name.len() > NAME_BYTES_MAX {
            return reply.error(Errno::ENAMETOOLONG);
        }
        let path = Name::new(name.as_bytes()).ok().and_then(|name| dir.join(&name).ok());
        let Some(path) = path else { return reply.error(Errno::ENOENT) };
        match core.known(&path) {
            Some(Known::There(number)) => core.reply_entry(number, reply),
            Some(Known::Absent(time)) => negative(reply, time),
            None => {
                core.list_once(&dir);
                let found = core.clone();
                core.look_path(path, move |seen| match seen {
                    Ok(number) => found.reply_entry(number, reply),
                    Err(ErrorKind::NotFound) => negative(reply, found.settings.attr_ttl),
                    Err(kind) => reply.error(errno(kind)),
                });
            }
        }
    }

    /// Sends the metadata of a node.
    pub(super) fn reply_attributes(self: &Arc<Self>, number: INodeNo, reply: Slot<ReplyAttr>) {
        let (core, now) = (self, Instant::now());
        let Some(path) = core.usable(number.0) else { return reply.error(Errno::ESTALE) };
        let mut state = core.state();
        let is_fresh = |node: &Node| state.fresh(node, core.settings.attr_ttl, now).is_some();
        if !state.nodes.at(number.0).is_some_and(is_fresh)
            && let Some(seen) = state.listed(&path, core.settings.attr_ttl, now)
        {
            state.observe(&path, seen);
        }
        let owner = core.settings.owner;
        let answer = move |state: &State, node: &Node, reply: Slot<ReplyAttr>, time: Duration| {
            reply.attr(&time, &state.shown(number.0, node, owner));
        };
        let limit = core.settings.attr_ttl;
        match state.nodes.at(number.0).map(|node| (node, state.fresh(node, limit, now))) {
            Some((node, Some(time))) => answer(&state, node, reply, time),
            _ => {
                drop(state);
                let core = core.clone();
                core.clone().look_node(number.0, move |looked| {
                    let state = core.state();
                    match (looked, state.nodes.at(number.0)) {
                        (Ok(()), Some(node)) => {
                            let now = Instant::now();
                            let time = state.fresh(node, limit, now).unwrap_or_default();
                            answer(&state, node, reply, time);
                        }
                        (Ok(()), None) => reply.error(Errno::ESTALE),
                        (Err(kind), _) => reply.error(errno(kind)),
                    }
                });
            }
        }
    }

    /// Sets metadata, and sends the resulting ones.
    pub(super) fn reply_set(
        self: &Arc<Self>,
        number: INodeNo,
        new: NewAttributes,
        (uid, gid): (Option<u32>, Option<u32>),
        reply: Slot<ReplyAttr>,
    ) {
        let core = self.clone();
        if core.settings.access == Access::Read {
            return reply.error(Errno::EROFS);
        }
        let is_other = |id: Option<u32>, own: u32| id.is_some_and(|id| id != own);
        if let Some((user, group)) = core.settings.owner
            && (is_other(uid, user) || is_other(gid, group))
        {
            return reply.error(Errno::EPERM);
        }
        if core.settings.owner.is_none() && (uid.is_some() || gid.is_some()) {
            return reply.error(Errno::EPERM);
        }
        let answer = core.clone();
        let done = move |set: Result<(), Errno>| {
            let (core, state) = (&answer, answer.state());
            match (set, state.nodes.at(number.0)) {
                (Ok(()), Some(node)) => {
                    let attributes = state.shown(number.0, node, core.settings.owner);
                    reply.attr(&core.settings.attr_ttl, &attributes);
                }
                (Err(errno), _) => reply.error(errno),
                (Ok(()), None) => reply.error(Errno::ESTALE),
            }
        };
        match new == NewAttributes::default() {
            // Access times are not kept.
            true => done(Ok(())),
            false => core.set_attributes(number.0, new, done),
        }
    }

    /// The cached state of a path, if it may still be used.
    fn known(&self, path: &StorePath) -> Option<Known> {
        let (limit, now) = (self.settings.attr_ttl, Instant::now());
        let mut state = self.state();
        match state.nodes.of_path(path) {
            Some((number, node)) if state.fresh(node, limit, now).is_some() => {
                return Some(Known::There(number));
            }
            Some((_, node)) if node.is_doubted => return None,
            _ => {}
        }
        let (dir, name) = path.split()?;
        if let Some(names) = state.leases.names(&dir, now) {
            let Some(item) = names.get(name.as_bytes()) else {
                return Some(Known::Absent(limit));
            };
            let known = state.nodes.of_path(path).filter(|(_, node)| node.found.kind == Kind::Dir);
            let seen = item.seen(match (item.found.kind, known) {
                // The directory exists. Its time is requested separately.
                (Kind::Dir, Some((number, _))) => return Some(Known::There(number)),
                (Kind::Dir, None) => state.leases.told(&dir)?,
                _ => (now, state.changes.turn()),
            });
            return Some(Known::There(state.observe(path, seen)));
        }
        let listing = state.listings.of(&dir)?.clone();
        let time = state.listing_fresh(&dir, &listing, limit, now)?;
        match listing.find(name.as_bytes()) {
            Some(item) => Some(Known::There(state.observe(path, listing.seen(item)))),
            // Where leases are granted, a mount without one that covers the listing has received a recall: the directory changes.
            None if state.crew.leasing().is_some() && !state.covers(&dir, &listing, now) => None,
            None => Some(Known::Absent(time)),
        }
    }

    /// The path of a node, unless it has another file by now.
    pub(super) fn usable(&self, number: u64) -> Option<StorePath> {
        let mut state = self.state();
        let node = state.nodes.at(number)?;
        let (path, is_stale) = (node.path.clone(), node.is_stale);
        if is_stale {
            state.nodes.doubt(&path);
            return None;
        }
        Some(path)
    }

    /// Sends a node to the kernel.
    pub(super) fn reply_entry(&self, number: u64, reply: Slot<ReplyEntry>) {
        let mut state = self.state();
        state.nodes.look_up(number);
        let Some(node) = state.nodes.at(number) else { return reply.error(Errno::ESTALE) };
        let now = Instant::now();
        let time = state.fresh(node, self.settings.attr_ttl, now).unwrap_or_default();
        let attributes = attributes(number, &node.shown(), self.settings.owner);
        if !reply.entry(&time, &attributes, GENERATION)
            && let Some(content) = state.nodes.forget(number, 1)
        {
            state.pages.drop_content(content);
        }
    }
}

/// The state of a name without a request to the server.
enum Known {
    There(u64),
    Absent(Duration),
}

/// There is no such name, and the kernel may remember that for `time`.
fn negative(reply: Slot<ReplyEntry>, time: Duration) {
    reply.entry(&time, &NOTHING, GENERATION);
}

impl Front {
    /// Makes an entry and sends it to the kernel.
    pub(super) fn make_entry(
        &self,
        (parent, name): (u64, &OsStr),
        edit: impl FnOnce(&StorePath) -> Edit,
        reply: Slot<ReplyEntry>,
    ) {
        let core = self.0.clone();
        match core.path_to_make(parent, name) {
            Ok(path) => {
                let edit = edit(&path);
                let made = core.clone();
                core.make(path, edit, move |number| match number {
                    Ok(number) => made.reply_entry(number, reply),
                    Err(errno) => reply.error(errno),
                });
            }
            Err(errno) => reply.error(errno),
        }
    }
}
