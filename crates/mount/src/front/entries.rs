//! Changes of the entries of a directory.
//!
//! The server makes a change at a path. If this mount gives a directory of the path another name meanwhile, the server may not find
//! the path; then the change is made at the new one.

use super::empty;
use crate::answer::{Fails, Slot};
use crate::core::Core;
use crate::look::At;
use fuser::{Errno, INodeNo, OpenFlags, ReplyCreate, ReplyEmpty, ReplyEntry};
use hikyaku_remote::Edit;
use hikyaku_store::StorePath;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// Receives the result of a change.
type Done<T> = Box<dyn FnOnce(Result<T, Errno>) + Send>;

impl Core {
    /// Whether a change has not found a directory that this mount has given another path since.
    fn has_missed<T>(&self, made: &Result<T, Errno>, dir: INodeNo, at: &At) -> bool {
        let is_absent = made.as_ref().is_err_and(|errno| errno.code() == Errno::ENOENT.code());
        is_absent && self.state().has_moved(dir.0, at)
    }

    /// Makes a change in a directory, whose path `change` receives. `tell` receives the result.
    fn change_in<R: Fails, T: 'static>(
        self: &Arc<Self>,
        dir: INodeNo,
        reply: Slot<R>,
        change: impl Fn(&Arc<Self>, &StorePath, Done<T>) + Clone + Send + 'static,
        tell: impl FnOnce(&Arc<Self>, Result<T, Errno>, Slot<R>) + Send + 'static,
    ) {
        let core = self.clone();
        self.with_path(dir, reply, move |path, reply| {
            let (changed, again) = (core.clone(), change.clone());
            let at = core.state().at(path.clone());
            let done = move |made: Result<T, Errno>| match changed.has_missed(&made, dir, &at) {
                true => {
                    let core = changed.clone();
                    let again = move || core.change_in(dir, reply, again, tell);
                    changed.after_changes(at, again);
                }
                false => tell(&changed, made, reply),
            };
            change(&core, &path, Box::new(done));
        });
    }

    /// Makes an entry, and `tell` receives the number of its node.
    fn make_in<R: Fails>(
        self: &Arc<Self>,
        (dir, name): (INodeNo, &OsStr),
        edit: impl Fn(&StorePath) -> Edit + Clone + Send + 'static,
        reply: Slot<R>,
        tell: impl FnOnce(&Arc<Self>, Result<u64, Errno>, Slot<R>) + Send + 'static,
    ) {
        let name = name.to_owned();
        let make = move |core: &Arc<Self>, dir: &StorePath, done: Done<u64>| match core
            .path_to_make(dir, &name)
        {
            Ok(path) => {
                let edit = edit(&path);
                core.make(path, edit, done);
            }
            Err(errno) => done(Err(errno)),
        };
        self.change_in(dir, reply, make, tell);
    }

    /// Makes an entry and sends it to the kernel.
    pub(super) fn make_entry(
        self: &Arc<Self>,
        at: (INodeNo, &OsStr),
        edit: impl Fn(&StorePath) -> Edit + Clone + Send + 'static,
        reply: Slot<ReplyEntry>,
    ) {
        self.make_in(at, edit, reply, |core, number, reply| match number {
            Ok(number) => core.reply_entry(number, reply),
            Err(errno) => reply.error(errno),
        });
    }

    /// Makes and opens a file.
    pub(super) fn reply_create(
        self: &Arc<Self>,
        at: (INodeNo, &OsStr),
        mode: u32,
        flags: OpenFlags,
        reply: Slot<ReplyCreate>,
    ) {
        let edit = move |path: &StorePath| Edit::Create { path: path.as_bytes().to_vec(), mode };
        let (dir, name) = (at.0, at.1.to_owned());
        self.make_in(at, edit, reply, move |core, number, reply| match number {
            Ok(number) => core.reply_created(number, flags, reply),
            Err(errno) => {
                let errno = core.not_created((dir, &name), flags, (reply.thread, errno));
                reply.error(errno);
            }
        });
    }

    /// Makes the entries of a directory durable at the server.
    pub(super) fn sync_dir(self: &Arc<Self>, dir: INodeNo, reply: Slot<ReplyEmpty>) {
        let sync = |core: &Arc<Self>, dir: &StorePath, done| core.sync_path(dir, done);
        self.change_in(dir, reply, sync, |_, synced, reply| empty(reply)(synced));
    }

    /// Removes an entry.
    pub(super) fn remove_entry(
        self: &Arc<Self>,
        (dir, name): (INodeNo, &OsStr),
        is_dir: bool,
        reply: Slot<ReplyEmpty>,
    ) {
        let name = name.to_owned();
        let remove = move |core: &Arc<Self>, dir: &StorePath, done: Done<()>| match core
            .path_to_change(dir, &name)
        {
            Ok(path) => core.remove(path, is_dir, done),
            Err(errno) => done(Err(errno)),
        };
        self.change_in(dir, reply, remove, |_, removed, reply| empty(reply)(removed));
    }

    /// Gives an entry another name.
    pub(super) fn rename_entry(
        self: &Arc<Self>,
        (dir, name): (INodeNo, OsString),
        (new_dir, new_name): (INodeNo, OsString),
        replaces: bool,
        reply: Slot<ReplyEmpty>,
    ) {
        let core = self.clone();
        self.with_path(new_dir, reply, move |to, reply| {
            let (renamed, new) = (core.clone(), (new_dir, new_name.clone()));
            let (old, at) = (name.clone(), core.state().at(to.clone()));
            let rename = move |core: &Arc<Self>, from: &StorePath, done: Done<()>| match (
                core.path_to_change(from, &name),
                core.path_to_make(&to, &new_name),
            ) {
                (Ok(from), Ok(to)) => core.rename((from, to), replaces, done),
                (Err(errno), _) | (_, Err(errno)) => done(Err(errno)),
            };
            core.change_in(dir, reply, rename, move |_, made, reply| {
                match renamed.has_missed(&made, new_dir, &at) {
                    true => {
                        let core = renamed.clone();
                        let again = move || core.rename_entry((dir, old), new, replaces, reply);
                        renamed.after_changes(at, again);
                    }
                    false => empty(reply)(made),
                }
            });
        });
    }
}
