//! Names and metadata, and the kernel's copies of them.

use super::retries::Attempt;
use super::{Front, GENERATION, NAME_BYTES_MAX, empty};
use crate::answer::Slot;
use crate::attributes::{NOTHING, attributes};
use crate::change::NewAttributes;
use crate::core::{Access, Core, State, errno};
use crate::nodes::Seen;
use fuser::{Errno, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry};
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
        (parent, name): (INodeNo, &OsStr),
        reply: Slot<ReplyEntry>,
    ) {
        if name.len() > NAME_BYTES_MAX {
            return reply.error(Errno::ENAMETOOLONG);
        }
        let (core, name) = (self.clone(), Name::new(name.as_bytes()));
        self.with_path(parent, reply, move |dir, reply| {
            let path = name.ok().and_then(|name| dir.join(&name).ok());
            let Some(path) = path else { return reply.error(Errno::ENOENT) };
            let attempt = core.state().retries.looks(reply.thread, &path, Instant::now());
            let who = (reply.thread, attempt);
            match core.known(&path, who) {
                Some(Known::There(number)) => core.reply_entry(number, reply),
                Some(Known::Absent(time)) => negative(reply, time),
                None => {
                    core.list_once(&dir);
                    core.clone().look_path(path, who, move |seen| match seen {
                        Ok(number) => core.reply_entry(number, reply),
                        Err(ErrorKind::NotFound) => negative(reply, core.settings.attr_ttl),
                        Err(kind) => reply.error(errno(kind)),
                    });
                }
            }
        });
    }

    /// Requests the metadata of a path. `done` receives the number of its node, with a reference for the kernel.
    pub(super) fn look_path(
        self: &Arc<Self>,
        path: StorePath,
        who: (u32, Attempt),
        done: impl FnOnce(Result<u64, ErrorKind>) + Send + 'static,
    ) {
        let asked = path.clone();
        let note = move |state: &mut State, seen: Result<Seen, ErrorKind>| {
            state.note_seen(&path, seen).map(|number| state.take(number, who))
        };
        self.look(asked, note, done);
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

    /// The cached state of a path, if it may still be used. At a second attempt only leases are relied on.
    pub(super) fn known(&self, path: &StorePath, who: (u32, Attempt)) -> Option<Known> {
        let limit = match who.1 {
            Attempt::First => self.settings.attr_ttl,
            Attempt::Second => Duration::ZERO,
        };
        let mut state = self.state();
        match state.known(path, limit, Instant::now())? {
            Known::There(number) => Some(Known::There(state.take(number, who))),
            absent @ Known::Absent(_) => Some(absent),
        }
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

/// The state of a name without a request to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
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
        (parent, name): (INodeNo, &OsStr),
        edit: impl FnOnce(&StorePath) -> Edit + Send + 'static,
        reply: Slot<ReplyEntry>,
    ) {
        let (core, name) = (self.0.clone(), name.to_owned());
        self.0.with_path(parent, reply, move |dir, reply| match core.path_to_make(&dir, &name) {
            Ok(path) => {
                let edit = edit(&path);
                let made = core.clone();
                core.make(path, edit, move |number| match number {
                    Ok(number) => made.reply_entry(number, reply),
                    Err(errno) => reply.error(errno),
                });
            }
            Err(errno) => reply.error(errno),
        });
    }

    /// Removes an entry.
    pub(super) fn remove_entry(
        &self,
        (parent, name): (INodeNo, &OsStr),
        is_dir: bool,
        reply: Slot<ReplyEmpty>,
    ) {
        let (core, name) = (self.0.clone(), name.to_owned());
        self.0.with_path(parent, reply, move |dir, reply| match core.path_to_change(&dir, &name) {
            Ok(path) => core.remove(path, is_dir, empty(reply)),
            Err(errno) => reply.error(errno),
        });
    }

    /// Gives an entry another name.
    pub(super) fn rename_entry(
        &self,
        (parent, name): (INodeNo, &OsStr),
        (new_parent, new_name): (INodeNo, &OsStr),
        replaces: bool,
        reply: Slot<ReplyEmpty>,
    ) {
        let (core, name, new_name) = (self.0.clone(), name.to_owned(), new_name.to_owned());
        self.0.with_path(parent, reply, move |from, reply| {
            core.clone().with_path(new_parent, reply, move |to, reply| {
                let from = core.path_to_change(&from, &name);
                match (from, core.path_to_make(&to, &new_name)) {
                    (Ok(from), Ok(to)) => core.rename((from, to), replaces, empty(reply)),
                    (Err(errno), _) | (_, Err(errno)) => reply.error(errno),
                }
            });
        });
    }
}
