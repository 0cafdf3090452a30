//! Files that lose their name in this mount while a program here has them open.
//!
//! The server knows files by name. So a file that is removed, or that another one replaces, while it is open gets a hidden
//! name in its directory, under which reads and writes go on, and is removed at its last close. Listings do not show
//! such names. They are noted on this machine ([`crate::notes`]), so that after the end of a mount that was killed the
//! next one removes them.

use crate::attributes::attributes;
use crate::core::{Core, State};
use crate::nodes::{Node, is_within};
use crate::notes::{Notes, TOKEN_DIGITS, Why};
use crate::unconfirmed::Call;
use fuser::{Errno, FileAttr};
use hikyaku_fs::Name;
use hikyaku_remote::HIDDEN_PREFIX;
use hikyaku_store::StorePath;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod withdrawn;

/// The files.
#[derive(Default)]
pub(crate) struct Unnamed {
    /// Their hidden names, by the number of the node.
    files: BTreeMap<u64, StorePath>,
    /// Those of them that another file is about to replace. They get their names back if it does not.
    replaced: BTreeSet<u64>,
    /// Those whose hidden names are removed, while a handle or mapping here may still use them.
    withdrawn: BTreeSet<u64>,
    /// Calls that wait until one of these is removed.
    waits: Vec<Call>,
    notes: Option<Notes>,
    last: u64,
}

/// Whether listings leave the name out, and no program may make it: whether it is one that [`State::hidden_in`] gives.
pub(crate) fn is_hidden(name: &Name) -> bool {
    let Some(rest) = name.as_bytes().strip_prefix(HIDDEN_PREFIX) else { return false };
    let is_number = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    match rest.split_at_checked(TOKEN_DIGITS) {
        Some((token, [b'-', number @ ..])) => {
            token.iter().all(u8::is_ascii_hexdigit) && is_number(number)
        }
        _ => false,
    }
}

impl State {
    /// Where hidden names are noted.
    pub(crate) fn set_notes(&mut self, notes: Notes) {
        self.unnamed.notes = Some(notes);
    }

    /// The mount has ended. Names that it could not remove stay in the notes.
    pub(crate) fn end_notes(&mut self) {
        if let Some(notes) = self.unnamed.notes.take() {
            notes.end_all();
        }
    }

    /// Whether there are files without a name.
    pub(crate) fn has_unnamed(&self) -> bool {
        !self.unnamed.files.is_empty()
    }

    /// The metadata of a node as programs see them.
    pub(crate) fn shown(&self, number: u64, node: &Node, owner: Option<(u32, u32)>) -> FileAttr {
        let nlink = u32::from(!self.unnamed.files.contains_key(&number));
        FileAttr { nlink, ..attributes(number, &node.shown(), owner) }
    }

    /// A directory has another name, and with it the files without a name in it.
    pub(crate) fn moved_unnamed(&mut self, from: &StorePath, to: &StorePath) {
        let below = |path: &StorePath| is_within(from, path) && path != from;
        let files = self.unnamed.files.iter().filter(|(_, path)| below(path));
        let files: Vec<(u64, StorePath)> = files.map(|(&n, path)| (n, path.clone())).collect();
        for (number, old) in files {
            let rest = old.as_bytes().get(from.as_bytes().len()..).unwrap_or_default();
            let Ok(new) = StorePath::new(&[to.as_bytes(), rest].concat()) else { continue };
            if let Some(notes) = &mut self.unnamed.notes {
                // Without a note, the file stays at the server if the mount is killed.
                let _ = notes.begin(&new, &Why::Removed);
                notes.end(&old);
            }
            self.unnamed.files.insert(number, new);
        }
    }

    /// Calls `then` when a file without a name has been removed.
    fn after_removal(&mut self, then: impl FnOnce() + Send + 'static) {
        self.unnamed.waits.push(Box::new(then));
    }

    /// A hidden name in a directory, which is noted.
    fn hidden_in(&mut self, dir: &StorePath, why: &Why) -> Option<StorePath> {
        self.unnamed.last += 1;
        let notes = self.unnamed.notes.as_mut()?;
        let name =
            [HIDDEN_PREFIX, format!("{}-{}", notes.token(), self.unnamed.last).as_bytes()].concat();
        let path = dir.join(&Name::new(&name).ok()?).ok()?;
        // A name that is not noted would stay for ever if the mount were killed.
        notes.begin(&path, why).ok()?;
        Some(path)
    }

    /// A hidden name was removed.
    fn end_hidden(&mut self, path: &StorePath) {
        if let Some(notes) = &mut self.unnamed.notes {
            notes.end(path);
        }
    }
}

impl Core {
    /// Removes a name.
    pub(crate) fn remove(
        self: &Arc<Self>,
        path: StorePath,
        is_dir: bool,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        if is_dir {
            let core = self.clone();
            return self.leave_dir(path.clone(), move || core.remove_name(path, true, done));
        }
        let open = self.state().nodes.open_at(&path);
        let Some(number) = open else { return self.remove_name(path, false, done) };
        let core = self.clone();
        self.hide((number, path.clone()), &Why::Removed, move |hidden| match hidden {
            Ok(_) => {
                done(Ok(()));
                core.end_if_closed(number);
            }
            Err(errno) if is_final(errno) => done(Err(errno)),
            // The file cannot get a hidden name. Its handles become those of a removed file.
            Err(_) => core.remove_name(path, false, done),
        });
    }

    /// Changes a name.
    pub(crate) fn rename(
        self: &Arc<Self>,
        (from, to): (StorePath, StorePath),
        replaces: bool,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let open = self.state().nodes.open_at(&to).filter(|_| replaces && from != to);
        let Some(number) = open else { return self.rename_name((from, to), replaces, done) };
        let core = self.clone();
        self.hide((number, to.clone()), &Why::Replaced(to.clone()), move |hidden| {
            let hidden = match hidden {
                Ok(hidden) => Some(hidden),
                Err(errno) if is_final(errno) && errno != Errno::ENOENT => return done(Err(errno)),
                Err(_) => None,
            };
            let back = core.clone();
            core.rename_name((from, to.clone()), replaces, move |renamed| {
                match (renamed, hidden) {
                    (Err(errno), Some(hidden)) => {
                        back.unhide((number, hidden), to, move || done(Err(errno)))
                    }
                    (renamed, _) => {
                        done(renamed);
                        back.state().unnamed.replaced.remove(&number);
                        back.end_if_closed(number);
                    }
                }
            });
        });
    }

    /// Gives an open file a hidden name. `done` receives the result.
    fn hide(
        self: &Arc<Self>,
        (number, path): (u64, StorePath),
        why: &Why,
        done: impl FnOnce(Result<StorePath, Errno>) + Send + 'static,
    ) {
        let dir = path.split().map_or(StorePath::ROOT, |(dir, _)| dir);
        let is_replaced = matches!(why, Why::Replaced(_));
        let hidden = self.state().hidden_in(&dir, why);
        let Some(hidden) = hidden else { return done(Err(Errno::ENOSPC)) };
        let core = self.clone();
        self.rename_name((path, hidden.clone()), false, move |renamed| {
            let mut state = core.state();
            match renamed {
                Ok(()) => {
                    state.unnamed.files.insert(number, hidden.clone());
                    if is_replaced {
                        state.unnamed.replaced.insert(number);
                    }
                    drop(state);
                    done(Ok(hidden));
                }
                Err(errno) => {
                    // After a lost connection the result of the rename is unknown.
                    if errno != Errno::EIO {
                        state.end_hidden(&hidden);
                    }
                    drop(state);
                    done(Err(errno));
                }
            }
        });
    }

    /// Gives a hidden file its name back.
    fn unhide(
        self: &Arc<Self>,
        (number, hidden): (u64, StorePath),
        path: StorePath,
        done: impl FnOnce() + Send + 'static,
    ) {
        let core = self.clone();
        self.rename_name((hidden.clone(), path), false, move |renamed| {
            let mut state = core.state();
            state.unnamed.replaced.remove(&number);
            if renamed.is_ok() {
                state.unnamed.files.remove(&number);
                state.end_hidden(&hidden);
            }
            drop(state);
            done();
            core.end_if_closed(number);
        });
    }

    /// A file without a name is removed if no handle of it is open.
    pub(crate) fn end_if_closed(self: &Arc<Self>, number: u64) {
        let is_open = |state: &State| state.nodes.at(number).is_some_and(|node| node.opens > 0);
        if !is_open(&self.state()) {
            self.end_unnamed(number);
        }
    }

    /// A file without a name is removed, unless it may get its name back.
    fn end_unnamed(self: &Arc<Self>, number: u64) {
        let state = self.state();
        let hidden = state.unnamed.files.get(&number).cloned();
        let hidden = hidden.filter(|_| !state.unnamed.replaced.contains(&number));
        let is_withdrawn = state.unnamed.withdrawn.contains(&number);
        drop(state);
        let Some(hidden) = hidden else { return };
        let (core, path) = (self.clone(), hidden.clone());
        let ended = move |removed: Result<(), Errno>| {
            let mut state = core.state();
            // It may have got another hidden name meanwhile.
            if state.unnamed.files.get(&number) == Some(&hidden) {
                state.unnamed.files.remove(&number);
                state.unnamed.withdrawn.remove(&number);
            }
            // One that could not be removed stays among the notes, for the next mount.
            if removed.map_or_else(|errno| errno == Errno::ENOENT, |()| true) {
                state.end_hidden(&hidden);
            }
            let calls = std::mem::take(&mut state.unnamed.waits);
            drop(state);
            calls.into_iter().for_each(|call| call());
        };
        // Only the server knows a file without a name.
        match is_withdrawn {
            true => self.remove_there(path, false, ended),
            false => self.remove_name(path, false, ended),
        }
    }

    /// The mount ends: programs that still have files without a name open lose them.
    pub(crate) fn end_all_unnamed(self: &Arc<Self>) {
        let numbers: Vec<u64> = self.state().unnamed.files.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.end_unnamed(number));
    }

    /// Brings files without a name out of a directory that is to be removed, into the one above it.
    fn leave_dir(self: &Arc<Self>, dir: StorePath, then: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        let parent = |path: &StorePath| path.split().map(|(dir, _)| dir);
        let mut files = state.unnamed.files.iter();
        let withdrawn = &state.unnamed.withdrawn;
        let first = files.find(|(number, path)| {
            parent(path).as_ref() == Some(&dir) && !withdrawn.contains(number)
        });
        let Some((number, hidden)) = first.map(|(&number, path)| (number, path.clone())) else {
            drop(state);
            return then();
        };
        let core = self.clone();
        if state.nodes.at(number).is_none_or(|node| node.opens == 0) {
            // It is being removed.
            return state.after_removal(move || core.leave_dir(dir, then));
        }
        let above = parent(&dir).and_then(|above| state.hidden_in(&above, &Why::Removed));
        drop(state);
        let Some(above) = above else { return then() };
        self.rename_name((hidden.clone(), above.clone()), false, move |renamed| {
            if renamed.is_err() {
                core.state().end_hidden(&above);
                return then();
            }
            let mut state = core.state();
            state.end_hidden(&hidden);
            state.unnamed.files.insert(number, above);
            drop(state);
            core.end_if_closed(number);
            core.leave_dir(dir, then);
        });
    }
}

/// Whether the error is one of the call, and not of the hidden name.
fn is_final(errno: Errno) -> bool {
    [Errno::ENOENT, Errno::EIO, Errno::ESTALE, Errno::EROFS].contains(&errno)
}
