//! Names and metadata, and the kernel's copies of them.

use super::retries::Attempt;
use super::{GENERATION, NAME_BYTES_MAX};
use crate::answer::Slot;
use crate::ask::What;
use crate::attributes::{NOTHING, attributes};
use crate::change::NewAttributes;
use crate::core::{Access, Core, State, errno};
use crate::nodes::Seen;
use fuser::{Errno, INodeNo, ReplyAttr, ReplyData, ReplyEntry};
use hikyaku_fs::Name;
use hikyaku_store::{ErrorKind, Kind, StorePath};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

impl Core {
    /// Looks a name up.
    pub(super) fn reply_lookup(
        self: &Arc<Self>,
        (parent, name): (INodeNo, &OsStr),
        reply: Slot<ReplyEntry>,
    ) {
        if name.len() > NAME_BYTES_MAX {
            return reply.error(Errno::ENAMETOOLONG);
        }
        let (core, name) = (self.clone(), name.to_owned());
        self.with_path(parent, reply, move |dir, reply| {
            let path = Name::new(name.as_bytes()).ok().and_then(|name| dir.join(&name).ok());
            let Some(path) = path else { return reply.error(Errno::ENOENT) };
            let limit = core.settings.attr_ttl;
            let mut state = core.state();
            let who = (reply.thread, state.retries.looks(reply.thread, &path, Instant::now()));
            let known = match state.is_elsewhere(parent, &dir) {
                true => Some(Known::Moved),
                false => state.known_to(&path, limit, who),
            };
            drop(state);
            let answered = core.clone();
            let answer = move |found| match found {
                Ok(Known::There(number)) => answered.reply_entry(number, reply),
                Ok(Known::Absent(time)) => negative(reply, time),
                Ok(Known::Moved) => answered.reply_lookup((parent, &name), reply),
                Err(kind) => reply.error(errno(kind)),
            };
            if let Some(known) = known {
                return answer(Ok(known));
            }
            core.list_once(&dir);
            core.look_path((parent, dir), path, who, answer);
        });
    }

    /// Requests the metadata of a path in the directory of a node. A node that is found has a reference for the kernel.
    pub(super) fn look_path(
        self: &Arc<Self>,
        (parent, dir): (INodeNo, StorePath),
        path: StorePath,
        who: (u32, Attempt),
        done: impl FnOnce(Result<Known, ErrorKind>) + Send + 'static,
    ) {
        let (asked, limit) = (path.clone(), self.settings.attr_ttl);
        let note = move |state: &mut State, seen: Result<Seen, ErrorKind>| {
            let noted = state.note_seen(&path, seen);
            match noted {
                _ if state.is_elsewhere(parent, &dir) => Ok(Known::Moved),
                Ok(number) => Ok(Known::There(state.take(number, who))),
                Err(ErrorKind::NotFound) => Ok(Known::Absent(limit)),
                Err(kind) => Err(kind),
            }
        };
        self.look(asked, note, done);
    }

    /// Sends the text of a link.
    pub(super) fn reply_link(self: &Arc<Self>, number: INodeNo, reply: Slot<ReplyData>) {
        let state = self.state();
        let Some(node) = state.nodes.at(number.0) else { return reply.error(Errno::ESTALE) };
        if let Some(text) = &node.link {
            reply.answer(|reply| reply.data(text));
            return;
        }
        let (path, places) = (node.path.clone(), node.at);
        let at = state.at(path.clone());
        drop(state);
        let core = self.clone();
        let done = move |text: Result<Vec<u8>, ErrorKind>| {
            let mut state = core.state();
            if state.has_moved(number.0, &at) {
                drop(state);
                let again = core.clone();
                return core.after_changes(at, move || again.reply_link(number, reply));
            }
            match text {
                Ok(text) => {
                    reply.answer(|reply| reply.data(&text));
                    if let Some(node) = state.nodes.at_mut(number.0) {
                        node.link = Some(text);
                    }
                }
                Err(kind) => reply.error(errno(kind)),
            }
        };
        self.ask(What::ReadLink(path, places, Box::new(done)));
    }

    /// Sends the metadata of a node.
    pub(super) fn reply_attributes(self: &Arc<Self>, number: INodeNo, reply: Slot<ReplyAttr>) {
        let core = self.clone();
        self.with_path(number, reply, move |path, reply| core.attributes((number, &path), reply));
    }

    fn attributes(self: &Arc<Self>, (number, path): (INodeNo, &StorePath), reply: Slot<ReplyAttr>) {
        let (limit, now) = (self.settings.attr_ttl, Instant::now());
        let is_fresh = |state: &State| {
            let node = state.nodes.at(number.0);
            node.is_some_and(|node| state.fresh(node, limit, now).is_some())
        };
        let mut state = self.state();
        if !is_fresh(&state)
            && let Some(seen) = state.listed(path, limit, now)
        {
            state.observe(path, seen);
        }
        let is_known = is_fresh(&state);
        drop(state);
        if is_known {
            return self.tell_attributes(number, reply);
        }
        let core = self.clone();
        core.clone().look_node(number.0, move |looked| match looked {
            Ok(()) => core.tell_attributes(number, reply),
            Err(ErrorKind::Gone) => core
                .clone()
                .with_present(number, reply, move |_, reply| core.tell_attributes(number, reply)),
            Err(kind) => reply.error(errno(kind)),
        });
    }

    /// Sends the known metadata of a node.
    fn tell_attributes(&self, number: INodeNo, reply: Slot<ReplyAttr>) {
        let state = self.state();
        let Some(node) = state.nodes.at(number.0) else { return reply.error(Errno::ESTALE) };
        let time = state.fresh(node, self.settings.attr_ttl, Instant::now()).unwrap_or_default();
        reply.attr(&time, &state.shown(number.0, node, self.settings.owner));
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
        // Access times are not kept.
        if new == NewAttributes::default() {
            return core.tell_set(number, reply);
        }
        self.with_path(number, reply, move |_, reply| {
            core.clone().set_attributes(number.0, new, move |set| match set {
                Ok(()) => core.tell_set(number, reply),
                Err(errno) => reply.error(errno),
            });
        });
    }

    /// Sends the metadata of a node that a program has set.
    fn tell_set(&self, number: INodeNo, reply: Slot<ReplyAttr>) {
        let state = self.state();
        let Some(node) = state.nodes.at(number.0) else { return reply.error(Errno::ESTALE) };
        reply.attr(&self.settings.attr_ttl, &state.shown(number.0, node, self.settings.owner));
    }

    /// Sends a node to the kernel, which gets a reference that was taken.
    pub(super) fn reply_entry(&self, number: u64, reply: Slot<ReplyEntry>) {
        let mut state = self.state();
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

impl State {
    /// The path of a node, unless that has another file by now.
    pub(super) fn path_of(&self, number: u64) -> Option<StorePath> {
        let node = self.nodes.at(number).filter(|node| !node.is_stale)?;
        Some(node.path.clone())
    }

    /// Whether a directory that had this path has another one by now.
    fn is_elsewhere(&self, dir: INodeNo, path: &StorePath) -> bool {
        self.path_of(dir.0).is_some_and(|now| now != *path)
    }

    /// The cached state of a path, if it may still be used. At a second attempt only leases are relied on. A node that is found
    /// has a reference for the kernel.
    pub(super) fn known_to(
        &mut self,
        path: &StorePath,
        limit: Duration,
        who: (u32, Attempt),
    ) -> Option<Known> {
        let limit = match who.1 {
            Attempt::First => limit,
            Attempt::Second => Duration::ZERO,
        };
        match self.known(path, limit, Instant::now())? {
            Known::There(number) => Some(Known::There(self.take(number, who))),
            other => Some(other),
        }
    }

    pub(super) fn known(
        &mut self,
        path: &StorePath,
        limit: Duration,
        now: Instant,
    ) -> Option<Known> {
        let state = self;
        let was_there = match state.nodes.of_path(path) {
            Some((number, node)) if state.fresh(node, limit, now).is_some() => {
                return Some(Known::There(number));
            }
            Some((_, node)) if node.is_doubted => return None,
            known => known.is_some(),
        };
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
            // A server that reads a directory while others change names in it may miss one that is there all the time.
            None if was_there => None,
            None => Some(Known::Absent(time)),
        }
    }
}

/// The state of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    There(u64),
    /// The name does not exist. The kernel may cache that for this time.
    Absent(Duration),
    /// The directory of the name has been given another path meanwhile.
    Moved,
}

/// There is no such name, and the kernel may remember that for `time`.
fn negative(reply: Slot<ReplyEntry>, time: Duration) {
    reply.entry(&time, &NOTHING, GENERATION);
}
