//! Directories, with those that a program opens next.

use super::GENERATION;
use crate::answer::{Fails, Slot};
use crate::attributes::{attributes, file_type};
use crate::core::{Core, errno};
use crate::listings::Listing;
use crate::unnamed::is_hidden;
use fuser::{
    Errno, FileHandle, FopenFlags, INodeNo, ReplyDirectory, ReplyDirectoryPlus, ReplyOpen,
};
use hikyaku_store::StorePath;
use std::sync::Arc;
use std::time::Instant;

/// A directory that a program has open.
pub(crate) struct OpenDir {
    listing: Arc<Listing>,
    reading: Reading,
}

/// Whether a program has read of an open directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    NotBegun,
    Begun,
}

impl Core {
    /// Opens a directory.
    pub(super) fn reply_opendir(self: &Arc<Self>, number: INodeNo, reply: Slot<ReplyOpen>) {
        let core = self.clone();
        self.with_path(number, reply, move |path, reply| core.open_dir((number, path), reply));
    }

    fn open_dir(self: &Arc<Self>, (number, path): (INodeNo, StorePath), reply: Slot<ReplyOpen>) {
        let core = self;
        core.list_siblings(&path);
        let found = core.clone();
        let at = core.state().at(path.clone());
        core.list(&path, move |listing| match listing {
            Ok(listing) => {
                let mut state = found.state();
                let handle = state.next();
                state.dirs.insert(handle, OpenDir { listing, reading: Reading::NotBegun });
                state.retries.end(reply.thread);
                drop(state);
                if !reply.opened(FileHandle(handle), FopenFlags::empty()) {
                    found.state().dirs.remove(&handle);
                }
            }
            Err(_) if found.state().has_moved(number.0, &at) => {
                let core = found.clone();
                found.after_changes(at, move || core.reply_opendir(number, reply));
            }
            Err(kind) => reply.error(errno(kind)),
        });
    }

    /// The entries of an open directory, from where a program reads on. One that is read from its beginning again is listed anew.
    fn with_listing<R: Fails>(
        self: &Arc<Self>,
        number: INodeNo,
        (handle, offset): (FileHandle, u64),
        reply: Slot<R>,
        tell: impl FnOnce(&Arc<Self>, &Listing, Slot<R>) + Send + 'static,
    ) {
        let mut state = self.state();
        let Some(open) = state.dirs.get_mut(&handle.0) else {
            drop(state);
            return reply.error(Errno::EBADF);
        };
        let before = std::mem::replace(&mut open.reading, Reading::Begun);
        let listing = open.listing.clone();
        let path = state.nodes.at(number.0).map(|dir| dir.path.clone());
        drop(state);
        let Some(path) = path else { return reply.error(Errno::ESTALE) };
        if offset > 0 || before == Reading::NotBegun {
            return tell(self, &listing, reply);
        }
        let core = self.clone();
        let at = core.state().at(path.clone());
        self.list(&path, move |listed| match listed {
            Ok(listing) => {
                if let Some(open) = core.state().dirs.get_mut(&handle.0) {
                    open.listing = listing.clone();
                }
                tell(&core, &listing, reply);
            }
            Err(_) if core.state().has_moved(number.0, &at) => {
                let again = core.clone();
                let read = move || again.with_listing(number, (handle, offset), reply, tell);
                core.after_changes(at, read);
            }
            Err(kind) => reply.error(errno(kind)),
        });
    }

    /// Sends the names in a directory.
    pub(super) fn reply_names(
        self: &Arc<Self>,
        number: INodeNo,
        (handle, offset): (FileHandle, u64),
        reply: Slot<ReplyDirectory>,
    ) {
        self.with_listing(number, (handle, offset), reply, move |core, listing, reply| {
            reply.answer(|reply| core.tell_names((number, offset), listing, reply));
        });
    }

    fn tell_names(
        &self,
        (number, offset): (INodeNo, u64),
        listing: &Listing,
        mut reply: ReplyDirectory,
    ) {
        let state = self.state();
        let Some(dir) = state.nodes.at(number.0).map(|dir| dir.path.clone()) else {
            return reply.error(Errno::ESTALE);
        };
        for (at, name) in [(0, "."), (1, "..")] {
            if offset <= at && reply.add(number, at + 1, fuser::FileType::Directory, name) {
                return reply.ok();
            }
        }
        let from = offset.saturating_sub(2) as usize;
        let shown = listing.entries().iter().enumerate().skip(from);
        for (at, item) in shown.filter(|(_, item)| !is_hidden(&item.name)) {
            let kind = file_type(item.found.kind);
            let Ok(path) = dir.join(&item.name) else { continue };
            let number = INodeNo(state.nodes.number_of(&path, &item.found));
            if reply.add(number, at as u64 + 3, kind, item.name.as_os_str()) {
                break;
            }
        }
        drop(state);
        reply.ok();
    }

    /// Sends the names in a directory with their metadata.
    pub(super) fn reply_entries(
        self: &Arc<Self>,
        number: INodeNo,
        (handle, offset): (FileHandle, u64),
        reply: Slot<ReplyDirectoryPlus>,
    ) {
        self.with_listing(number, (handle, offset), reply, move |core, listing, reply| {
            reply.answer(|reply| core.tell_entries((number, offset), listing, reply));
        });
    }

    fn tell_entries(
        &self,
        (number, offset): (INodeNo, u64),
        listing: &Listing,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (core, now) = (self, Instant::now());
        let mut state = core.state();
        let Some(dir) = state.nodes.at(number.0) else { return reply.error(Errno::ESTALE) };
        let (path, found, owner) = (dir.path.clone(), dir.shown(), core.settings.owner);
        let limit = core.settings.attr_ttl;
        let time = state.listing_fresh(&path, listing, limit, now).unwrap_or_default();
        for (at, name) in [(0, "."), (1, "..")] {
            let itself = attributes(number.0, &found, owner);
            if offset <= at && reply.add(number, at + 1, name, &time, &itself, GENERATION) {
                drop(state);
                return reply.ok();
            }
        }
        let from = offset.saturating_sub(2) as usize;
        let shown = listing.entries().iter().enumerate().skip(from);
        for (at, item) in shown.filter(|(_, item)| !is_hidden(&item.name)) {
            let Ok(path) = path.join(&item.name) else { continue };
            let child = state.observe(&path, listing.seen(item));
            let Some(node) = state.nodes.at(child) else { continue };
            let attributes = attributes(child, &node.shown(), owner);
            let time = state.fresh(node, limit, now).unwrap_or_default().min(time);
            let name = item.name.as_os_str();
            if reply.add(INodeNo(child), at as u64 + 3, name, &time, &attributes, GENERATION) {
                state.nodes.prune(child);
                break;
            }
            state.nodes.look_up(child);
        }
        drop(state);
        reply.ok();
    }

    /// A name in a directory is looked up: all of them may be wanted soon.
    pub(super) fn list_once(self: &Arc<Self>, dir: &StorePath) {
        /// A directory with more entries is not listed for one name.
        const ENTRIES_MAX: usize = 20_000;
        let state = self.state();
        let is_large = state.listings.of(dir).is_some_and(|old| old.entries().len() > ENTRIES_MAX);
        drop(state);
        if !is_large {
            self.list_ahead(dir);
        }
    }

    /// Asks for the listings of the directories that a program which lists a tree opens next.
    pub(super) fn list_siblings(self: &Arc<Self>, dir: &StorePath) {
        let times = (self.settings.attr_ttl, Instant::now());
        let ahead = {
            let mut state = self.state();
            let state = &mut *state;
            let lists = &state.lists;
            state.listings.open(dir, times, |path| lists.contains(path))
        };
        ahead.iter().for_each(|path| self.list_ahead(path));
    }
}
