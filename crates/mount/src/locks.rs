//! Locks of byte ranges, which the server has, so that they hold between mounts.
//!
//! The writes of a program reach the server before it frees a lock, and the owner of a new lock sees the file as the server
//! has it then: pages of another content are dropped, also by the kernel. The locks end with the connection; then the next
//! write or sync of the file fails, because another client may have had a lock meanwhile.

use crate::answer::Slot;
use crate::core::{Core, State, errno};
use crate::look::Pages;
use crate::nodes::{Node, Seen};
use fuser::{Errno, ReplyEmpty};
use hikyaku_reach::daemon::GIVE_UPS;
use hikyaku_read_ahead::Content;
use hikyaku_remote::{Lock, Patience, RemoteError, Wish};
use hikyaku_store::ErrorKind;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

#[cfg(test)]
mod tests;

/// Where locks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Locking {
    /// At the server.
    Server,
    /// In the kernel of this machine.
    Local,
}

/// Nodes and owners that have, or wait for, locks at the server.
pub(crate) type Locked = HashMap<(u64, u64), Owned>;

/// The locks of an owner on a node. For flock(2) the owner is an open file. The kernel reuses its number after the close, and
/// may send the close after the first lock of the next file. So the handles are recorded.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    /// The handles through which it has asked for locks.
    handles: HashSet<u64>,
    /// Whether it may have a lock.
    has: bool,
    /// Wishes for locks that are not answered.
    wishes: u32,
}

/// The last byte that a file can have.
const LAST: u64 = i64::MAX as u64;

/// The request for a lock type of fcntl(2).
pub(crate) fn wish(kind: i32, patience: Patience) -> Option<Wish> {
    match kind {
        // F_RDLCK, F_WRLCK, F_UNLCK
        0 => Some(Wish::Shared(patience)),
        1 => Some(Wish::Exclusive(patience)),
        2 => Some(Wish::Free),
        _ => None,
    }
}

impl Core {
    /// Locks or frees a range of a file, through a handle. A signal ends the wait of a program for a lock,
    /// once the server has cancelled the request.
    pub(crate) fn set_lock(
        self: &Arc<Self>,
        (number, owner, handle): (u64, u64, u64),
        range: (u64, u64),
        wish: Wish,
        reply: Slot<ReplyEmpty>,
    ) {
        let (key, waiter) = ((number, owner), reply.number());
        let done = move |set: Result<(), Errno>| match set {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        };
        if wish == Wish::Free {
            return self.free_lock(key, range, |_| true, done);
        }
        let mut state = self.state();
        let owned = state.locked.entry(key).or_default();
        owned.wishes += 1;
        owned.handles.insert(handle);
        drop(state);
        let core = self.clone();
        self.after_writes(number, move || {
            let order = core.lock_order();
            let mut state = core.state();
            if !state.locked.contains_key(&key) {
                drop(state);
                // The program has closed the file meanwhile, so that no close would free the lock.
                return done(Err(Errno::EINTR));
            }
            let client = state.crew.alone().cloned();
            let (lock, client) = match (state.lock_of_node(key, range, wish), client) {
                (Ok(lock), Some(client)) => (lock, client),
                (lock, _) => {
                    state.locked_or_not(key, false);
                    drop(state);
                    return done(Err(lock.err().unwrap_or(Errno::EIO)));
                }
            };
            drop(state);
            let (set, given_up) = (core.clone(), Arc::<OnceLock<()>>::default());
            let (is_given_up, asked) = (given_up.clone(), lock.clone());
            let request = client.lock_then(lock, move |answer| {
                set.state().locked_or_not(key, answer.is_ok());
                match answer.map_err(|error| refused(&error)) {
                    Ok(()) => set.refresh(number, done),
                    Err(_) if is_given_up.get().is_some() => done(Err(Errno::EINTR)),
                    Err(errno) => done(Err(errno)),
                }
            });
            if client.has(GIVE_UPS) {
                core.waiting.on_signal(waiter, move || {
                    let _ = given_up.set(());
                    let wish = Wish::GiveUp(request);
                    client.lock_then(Lock { wish, ..asked }, drop);
                });
            }
            drop(order);
        });
    }

    /// Frees a range, once the next owner of the lock can see the writes under it, if `is_wanted` holds then.
    fn free_lock(
        self: &Arc<Self>,
        key: (u64, u64),
        range: (u64, u64),
        is_wanted: impl FnOnce(&mut State) -> bool + Send + 'static,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let number = key.0;
        // A file that is closed may be forgotten here before all is written.
        let lock = self.state().lock_of_node(key, range, Wish::Free);
        let core = self.clone();
        self.after_writes(number, move || {
            let order = core.lock_order();
            let mut state = core.state();
            let is_wanted = is_wanted(&mut state);
            let client = state.crew.alone().cloned();
            let is_own = state.nodes.at(number).is_some_and(Node::is_own);
            drop(state);
            let (lock, client) = match (lock, client, is_wanted) {
                (_, _, false) => return done(Ok(())),
                (Ok(lock), Some(client), true) => (lock, client),
                (lock, _, true) => return done(Err(lock.err().unwrap_or(Errno::EIO))),
            };
            if is_own {
                // The metadata of the content under the lock are requested before another client may change it.
                core.look_node(number, drop);
            }
            client.lock_then(lock, move |answer| done(answer.map_err(|error| refused(&error))));
            drop(order);
        });
    }

    /// Held while requests about locks are sent, so that the server receives them in the order of the records here.
    fn lock_order(&self) -> MutexGuard<'_, ()> {
        self.lock_order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program closes one of its descriptors of a file: all its locks of fcntl(2) end.
    pub(crate) fn free_of_owner(
        self: &Arc<Self>,
        key: (u64, u64),
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        if !self.state().locked.contains_key(&key) {
            return done(Ok(()));
        }
        let is_wanted = move |state: &mut State| state.locked.remove(&key).is_some();
        self.free_lock(key, (0, LAST), is_wanted, done);
    }

    /// A handle is closed for good: the locks of flock(2) of it end, and those that fcntl(2) gives to an open file. The kernel
    /// names the owner of the former only. So owners that requested locks through this handle alone lose them.
    pub(crate) fn free_of_handle(self: &Arc<Self>, number: u64, handle: u64) {
        let mut state = self.state();
        let of_node = state.locked.iter_mut().filter(|((node, _), _)| *node == number);
        let of_handle = of_node.filter_map(|(&key, owned)| {
            let was_last = owned.handles.remove(&handle) && owned.handles.is_empty();
            was_last.then_some(key)
        });
        let keys: Vec<(u64, u64)> = of_handle.collect();
        drop(state);
        for key in keys {
            // Meanwhile another file may have got the number of the owner, and a lock.
            let is_wanted = move |state: &mut State| {
                let is_over = state.locked.get(&key).is_some_and(|owned| owned.handles.is_empty());
                is_over && state.locked.remove(&key).is_some()
            };
            self.free_lock(key, (0, LAST), is_wanted, drop);
        }
    }

    /// Returns the lock that conflicts with a request for a range.
    pub(crate) fn lock_against(
        self: &Arc<Self>,
        owner: (u64, u64),
        range: (u64, u64),
        done: impl FnOnce(Result<Option<(bool, (u64, u64))>, Errno>) + Send + 'static,
    ) {
        let core = self.clone();
        // A file that was made here may not be at the server.
        self.after_writes(owner.0, move || {
            let state = core.state();
            let client = state.crew.alone().cloned();
            let lock = state.lock_of_node(owner, range, Wish::Exclusive(Patience::None));
            drop(state);
            match (lock, client) {
                (Ok(lock), Some(client)) => client.lock_of_then(lock, move |answer| {
                    done(answer.map_err(|error| refused(&error)));
                }),
                (Err(errno), _) => done(Err(errno)),
                (Ok(_), None) => done(Err(Errno::EIO)),
            }
        });
    }

    /// Asks what a file is, and has the kernel drop what it knows of it: its pages only if they are of another content. A file
    /// without a name can be locked as well.
    fn refresh(
        self: &Arc<Self>,
        number: u64,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let path = self.state().nodes.at(number).map(|node| node.path.clone());
        let Some(path) = path else { return done(Err(Errno::ESTALE)) };
        let core = self.clone();
        let asked = path.clone();
        let note = move |state: &mut State, seen: Result<Seen, ErrorKind>| {
            if state.nodes.at(number).is_some_and(|node| node.path != path) {
                return Ok(Refreshed::Renamed);
            }
            let seen = match seen {
                Ok(seen) => seen,
                Err(ErrorKind::NotFound) => return Ok(Refreshed::Done),
                Err(kind) => return Err(errno(kind)),
            };
            match state.go_on(number, seen.clone()) {
                Some(Pages::Other) => {
                    let content = state.nodes.at(number).map(|node| node.content);
                    Ok(content.map_or(Refreshed::Done, Refreshed::OtherPages))
                }
                Some(Pages::Right) => Ok(Refreshed::Done),
                None => {
                    state.observe(&path, seen);
                    Ok(Refreshed::Done)
                }
            }
        };
        self.look(asked, note, move |refreshed| match refreshed {
            Ok(Refreshed::Done) => {
                core.kernel.drop_attributes(number);
                done(Ok(()));
            }
            Ok(Refreshed::OtherPages(content)) => {
                let dropped = core.clone();
                let then = move || {
                    if let Some(node) = dropped.state().nodes.at_mut(number) {
                        node.cached = Some(content);
                    }
                    done(Ok(()));
                };
                core.kernel.drop_pages(number, Box::new(then));
            }
            Ok(Refreshed::Renamed) => core.refresh(number, done),
            Err(errno) => done(Err(errno)),
        });
    }

    /// The connection is lost, and all locks with it.
    pub(crate) fn lose_locks(&self) {
        let mut state = self.state();
        let had = state.locked.iter().filter(|(_, locks)| locks.has);
        let had: HashSet<u64> = had.map(|((node, _), _)| *node).collect();
        state.locked.values_mut().for_each(|locks| locks.has = false);
        for open in state.handles.values_mut().filter(|open| had.contains(&open.number)) {
            open.error = Some(Errno::EIO);
        }
    }
}

impl State {
    fn lock_of_node(
        &self,
        (number, owner): (u64, u64),
        range: (u64, u64),
        wish: Wish,
    ) -> Result<Lock, Errno> {
        // A file without a name keeps its locks until they are freed. The server knows whether it has any.
        // spec: store-lock-3
        let node = self.nodes.at(number).ok_or(Errno::ESTALE)?;
        let path = node.path.as_bytes().to_vec();
        Ok(Lock { path, identity: node.found.identity, owner, range, wish })
    }

    /// The server has answered a request for a lock. Ranges that the owner has freed meanwhile are not locked.
    fn locked_or_not(&mut self, key: (u64, u64), has: bool) {
        let Some(locks) = self.locked.get_mut(&key) else { return };
        locks.has |= has;
        locks.wishes = locks.wishes.saturating_sub(1);
        if !locks.has && locks.wishes == 0 {
            self.locked.remove(&key);
        }
    }
}

/// The next step when the content of a locked file is known.
enum Refreshed {
    Done,
    /// The kernel is to drop its pages, which are not of this content.
    OtherPages(Content),
    /// The file was given another name meanwhile.
    Renamed,
}

fn refused(error: &RemoteError) -> Errno {
    match error {
        RemoteError::Refused { kind: ErrorKind::Busy, .. } => Errno::EAGAIN,
        RemoteError::Refused { kind, .. } => errno(*kind),
        _ => Errno::EIO,
    }
}
