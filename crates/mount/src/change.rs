//! Changes of names and metadata: made at the server, and known here when it has answered.

use crate::ask::What;
use crate::core::{Access, Core, State, errno};
use crate::nodes::Seen;
use crate::unconfirmed::Sending;
use crate::unnamed::is_hidden;
use fuser::Errno;
use hikyaku_fs::Name;
use hikyaku_remote::Edit;
use hikyaku_store::{ErrorKind, Kind, StorePath, Time};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Instant;

/// Metadata that a program sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct NewAttributes {
    pub(crate) size: Option<u64>,
    pub(crate) mode: Option<u32>,
    pub(crate) modified: Option<Time>,
}

impl Core {
    /// The path of a name in a directory, if it may be changed.
    pub(crate) fn path_to_change(&self, dir: &StorePath, name: &OsStr) -> Result<StorePath, Errno> {
        if self.settings.access == Access::Read {
            return Err(Errno::EROFS);
        }
        let name = Name::new(name.as_bytes()).map_err(|_| Errno::EINVAL)?;
        dir.join(&name).map_err(|_| Errno::ENAMETOOLONG)
    }

    /// The path of a new name that a program gives. The hidden names of unlinked files are refused.
    pub(crate) fn path_to_make(&self, dir: &StorePath, name: &OsStr) -> Result<StorePath, Errno> {
        let path = self.path_to_change(dir, name)?;
        match path.split() {
            Some((_, name)) if is_hidden(&name) => Err(Errno::EINVAL),
            _ => Ok(path),
        }
    }

    /// Makes an entry; `done` receives the number of its node, with a reference for the kernel.
    pub(crate) fn make(
        self: &Arc<Self>,
        path: StorePath,
        edit: Edit,
        done: impl FnOnce(Result<u64, Errno>) + Send + 'static,
    ) {
        let core = self.clone();
        self.with_leases([path.clone()], move || match core.decide_make(&path, &edit) {
            Some(made) => done(made),
            None => core.make_there(path, edit, done),
        });
    }

    /// Calls `then` when there is room for a change, and leases of the directories of these paths are had or refused.
    fn with_leases<const N: usize>(
        self: &Arc<Self>,
        paths: [StorePath; N],
        then: impl FnOnce() + Send + 'static,
    ) {
        let mut then: Box<dyn FnOnce() + Send> = Box::new(then);
        for (dir, _) in paths.iter().filter_map(StorePath::split) {
            let (core, next) = (self.clone(), then);
            then = Box::new(move || core.with_lease(&dir, next));
        }
        self.with_room(then);
    }

    /// Makes an entry at the server.
    fn make_there(
        self: &Arc<Self>,
        path: StorePath,
        edit: Edit,
        done: impl FnOnce(Result<u64, Errno>) + Send + 'static,
    ) {
        let made = move |state: &mut State, seen: Option<Seen>| {
            let seen = seen.ok_or(Errno::EIO)?;
            // The name was free, otherwise the change would have failed.
            state.nodes.observe_absent(&path);
            let (asked, sent) = (Instant::now(), state.changes.turn());
            let number = state.observe(&path, Seen { asked, sent, ..seen });
            state.nodes.look_up(number);
            Ok(number)
        };
        self.change_names(edit, made, done);
    }

    /// Makes a change of names at the server. When it has answered, `apply` notes what is there then.
    fn change_names<T: 'static>(
        self: &Arc<Self>,
        edit: Edit,
        apply: impl FnOnce(&mut State, Option<Seen>) -> Result<T, Errno> + Send + 'static,
        done: impl FnOnce(Result<T, Errno>) + Send + 'static,
    ) {
        let paths: Vec<StorePath> =
            edit.paths().filter_map(|path| StorePath::new(path).ok()).collect();
        let mut state = self.state();
        paths.iter().for_each(|path| state.changes.begin(path));
        drop(state);
        let core = self.clone();
        let answered = move |answer: Result<Option<Seen>, ErrorKind>| {
            let mut state = core.state();
            for path in &paths {
                state.changes.end(path);
                state.note_change_there(path);
            }
            let outcome = answer.map_err(errno).and_then(|seen| apply(&mut state, seen));
            let calls = std::mem::take(&mut state.change_waits);
            drop(state);
            core.names_told.notify_all();
            done(outcome);
            calls.into_iter().for_each(|call| call());
        };
        let core = self.clone();
        let ask = move || core.ask(What::Edit(edit, Box::new(answered)));
        let mut state = self.state();
        // A write that is being sent has been given the path of before.
        if let Sending::UnderWay(calls) = &mut state.writes.sending {
            return calls.push(Box::new(ask));
        }
        drop(state);
        ask();
    }

    /// Removes a name, even if programs have the file open.
    pub(crate) fn remove_name(
        self: &Arc<Self>,
        path: StorePath,
        is_dir: bool,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let core = self.clone();
        self.with_leases([path.clone()], move || match core.decide_remove(&path, is_dir) {
            Some(removed) => done(removed),
            None => core.remove_there(path, is_dir, done),
        });
    }

    /// Removes a name at the server.
    pub(crate) fn remove_there(
        self: &Arc<Self>,
        path: StorePath,
        is_dir: bool,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let known = self.state().nodes.of_path(&path).map(|(number, _)| number);
        let is_dropped = known.is_some_and(|number| self.drop_refused(number));
        let state = self.state();
        let node = state.nodes.of_path(&path);
        let known = node.map_or(Kind::File, |(_, node)| node.found.kind);
        let number = node.map(|(number, _)| number);
        drop(state);
        let kind = match (is_dir, known) {
            (true, _) => Kind::Dir,
            (false, Kind::Dir) => Kind::File,
            (false, kind) => kind,
        };
        let edit = Edit::Remove { path: path.as_bytes().to_vec(), kind };
        let (lost, gone, untold) = (self.clone(), path.clone(), path.clone());
        let done = move |removed: Result<(), Errno>| {
            if is_dropped && removed.is_err() {
                lost.state().lost_untold(&untold, Errno::ENOSPC);
            }
            done(removed);
        };
        let removed = move |state: &mut State, _: Option<Seen>| {
            state.nodes.observe_absent(&gone);
            state.leases.removed(&gone);
            Ok(())
        };
        let core = self.clone();
        // Earlier writes reach the server before the name is removed.
        self.settle_node(number.unwrap_or(0), move |_| {
            let asked = core.clone();
            core.after_staged(&[&path], move |staged| match staged {
                Ok(()) => asked.change_names(edit, removed, done),
                Err(errno) => done(Err(errno)),
            });
        });
    }

    /// Changes a name, even if programs have the replaced file open.
    pub(crate) fn rename_name(
        self: &Arc<Self>,
        (from, to): (StorePath, StorePath),
        replaces: bool,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let core = self.clone();
        self.with_leases([from.clone(), to.clone()], move || {
            match core.decide_rename((&from, &to), replaces) {
                Some(renamed) => done(renamed),
                None => core.rename_there((from, to), replaces, done),
            }
        });
    }

    fn rename_there(
        self: &Arc<Self>,
        (from, to): (StorePath, StorePath),
        replaces: bool,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let edit =
            Edit::Rename { from: from.as_bytes().to_vec(), to: to.as_bytes().to_vec(), replaces };
        let mut state = self.state();
        let number = state.nodes.of_path(&from).map(|(number, _)| number);
        // Leases are known by path, and this may be a directory.
        state.leases.moved(&from, &to);
        drop(state);
        let core = self.clone();
        let paths = [from.clone(), to.clone()];
        let renamed = move |state: &mut State, _: Option<Seen>| {
            state.nodes.rename(&from, &to);
            state.moved_unnamed(&from, &to);
            state.leases.moved(&from, &to);
            Ok(())
        };
        self.settle_node(number.unwrap_or(0), move |_| {
            let asked = core.clone();
            core.after_staged(&paths.each_ref(), move |staged| match staged {
                Ok(()) => asked.change_names(edit, renamed, done),
                Err(errno) => done(Err(errno)),
            });
        });
    }

    /// Sets metadata, after all that was written before.
    pub(crate) fn set_attributes(
        self: &Arc<Self>,
        number: u64,
        new: NewAttributes,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        if self.decide_attributes(number, new).is_some() {
            return done(Ok(()));
        }
        if new.size == Some(0) {
            self.drop_refused(number);
        }
        let core = self.clone();
        self.settle_node(number, move |settled| {
            if let Err(errno) = settled {
                return done(Err(errno));
            }
            let path = core.state().nodes.at(number).map(|node| node.path.clone());
            let Some(path) = path else { return done(Err(Errno::ESTALE)) };
            let set = core.clone();
            core.after_staged(&[&path], move |staged| match staged {
                Ok(()) => set.set_settled(number, new, done),
                Err(errno) => done(Err(errno)),
            });
        });
    }

    /// Sets metadata of a file of which the server has all that was written.
    fn set_settled(
        self: &Arc<Self>,
        number: u64,
        new: NewAttributes,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let core = self.clone();
        let mut state = core.state();
        let node = state.nodes.at_mut(number).filter(|node| !node.is_stale);
        // The path of a file that has lost its name may have another one.
        let Some(node) = node else {
            drop(state);
            return done(Err(Errno::ESTALE));
        };
        // Answers to concurrent requests may be from before or after the change.
        node.unconfirmed += 1;
        let path = node.path.clone();
        let at = state.at(path.clone());
        drop(state);
        let bytes = path.as_bytes().to_vec();
        let NewAttributes { size, mode, modified } = new;
        let edit = match size {
            Some(size) => Edit::SetLength { path: bytes, size },
            None => Edit::Change { path: bytes, mode, modified },
        };
        let next = size.is_some() && (mode.is_some() || modified.is_some());
        let (core, set) = (core.clone(), core.clone());
        let changed = move |seen: Result<Option<Seen>, ErrorKind>| {
            let mut state = set.state();
            if let Some(node) = state.nodes.at_mut(number) {
                node.unconfirmed -= 1;
            }
            let is_absent = matches!(seen, Err(ErrorKind::NotFound));
            let changed = match seen {
                Ok(Some(seen)) => {
                    // The change is one of this mount, so that its own handles go on.
                    if let Some(node) = state.nodes.at_mut(number) {
                        node.written = Some(seen.asked);
                        if modified.is_some() {
                            node.touched.clear();
                        }
                    }
                    state.note_node(number, seen);
                    // Answers to earlier requests may be from before the change.
                    if let Some(node) = state.nodes.at_mut(number) {
                        node.asked = Instant::now();
                    }
                    state.doubt_listing(&path);
                    Ok(())
                }
                Ok(None) => Err(Errno::EIO),
                Err(kind) => Err(errno(kind)),
            };
            let is_moved = is_absent && state.has_moved(number, &at);
            let calls = state.settled(number);
            drop(state);
            calls.into_iter().for_each(|call| call());
            match changed {
                Err(_) if is_moved => {
                    let again = set.clone();
                    set.after_changes(at, move || again.set_attributes(number, new, done));
                }
                Ok(()) if next => {
                    set.set_attributes(number, NewAttributes { size: None, ..new }, done);
                }
                changed => done(changed),
            }
        };
        core.ask(What::Edit(edit, Box::new(changed)));
    }

    /// Makes what was written through a handle durable: on this machine if its journal has it, otherwise at the server.
    pub(crate) fn sync(
        self: &Arc<Self>,
        handle: u64,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        if let (Some(stage), Some(staged)) = (&self.stage, self.is_staged(handle)) {
            match staged {
                Ok(path) if stage.has(&path) => return stage.sync_then(done),
                Ok(_) => {}
                Err(errno) => return done(Err(errno)),
            }
        }
        let core = self.clone();
        self.settle_handle(handle, move |settled| {
            let state = core.state();
            let number = state.handles.get(&handle).map(|open| open.number);
            let node = number.and_then(|number| Some((number, state.nodes.at(number)?)));
            let place = node.map(|(number, node)| (number, state.at(node.path.clone())));
            drop(state);
            match (settled, place) {
                (Err(errno), _) => done(Err(errno)),
                (Ok(()), Some((number, at))) => {
                    let again = core.clone();
                    core.sync_path(&at.path.clone(), move |synced| match synced {
                        Err(_) if again.state().has_moved(number, &at) => {
                            let core = again.clone();
                            again.after_changes(at, move || core.sync(handle, done));
                        }
                        synced => done(synced),
                    });
                }
                (Ok(()), _) => done(Err(Errno::EBADF)),
            }
        });
    }

    /// Makes a file, or the entries of a directory, durable at the server.
    pub(crate) fn sync_path(
        self: &Arc<Self>,
        path: &StorePath,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let edit = Edit::Sync { path: path.as_bytes().to_vec() };
        let synced = move |answer: Result<Option<Seen>, ErrorKind>| {
            done(answer.map(drop).map_err(errno));
        };
        self.ask(What::Edit(edit, Box::new(synced)));
    }
}
