//! Locks of byte ranges, which the server has, so that they hold between mounts.
//!
//! What a program has written is at the server before it frees a lock, and whoever gets a lock sees the file as the server
//! has it then: pages of another content are dropped, those of the kernel as well. The locks end with the connection; then
//! the next write or sync of the file fails, because somebody else may have had a lock meanwhile.

use crate::core::{Core, errno};
use crate::nodes::Node;
use fuser::{Errno, INodeNo, Notifier};
use hikyaku_read_ahead::Content;
use hikyaku_remote::{Lock, Patience, RemoteError, Wish};
use hikyaku_store::ErrorKind;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;

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

/// Nodes and owners that have locks at the server.
pub(crate) type Locked = HashSet<(u64, u64)>;

/// A file of which the kernel is to drop its pages, and what is done then.
pub(crate) type Dropping = (u64, Box<dyn FnOnce() + Send>);

/// The last byte that a file can have.
const LAST: u64 = i64::MAX as u64;

/// Drops pages of the kernel, on a thread of its own: the kernel waits for reads of the file that are under way, which other
/// threads answer.
pub(crate) fn start_dropping(notifier: Notifier, droppings: Receiver<Dropping>) -> io::Result<()> {
    let named = thread::Builder::new().name("mount-drop".to_owned());
    named.spawn(move || {
        for (number, then) in droppings {
            // A file that the kernel does not know has no pages.
            let _ = notifier.inval_inode(INodeNo(number), 0, 0);
            then();
        }
    })?;
    Ok(())
}

/// What a program wants, of the type that fcntl(2) has for it.
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
    /// Locks or frees a range of a file.
    pub(crate) fn set_lock(
        self: &Arc<Self>,
        (number, owner): (u64, u64),
        range: (u64, u64),
        wish: Wish,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let core = self.clone();
        // What was written under the lock is seen by whoever gets it next.
        self.settle_node(number, move |settled| {
            let lock = match (settled, core.lock_of_node((number, owner), range, wish)) {
                (Ok(()), Ok(lock)) => lock,
                // Others are not kept out for a write that has failed.
                (Err(_), Ok(lock)) if wish == Wish::Free => lock,
                (Err(errno), _) | (Ok(()), Err(errno)) => return done(Err(errno)),
            };
            let client = core.state().crew.alone().cloned();
            let Some(client) = client else { return done(Err(Errno::EIO)) };
            let set = core.clone();
            client.lock_then(lock, move |answer| match answer {
                Ok(()) if wish == Wish::Free => done(settled),
                Ok(()) => {
                    set.state().locked.insert((number, owner));
                    set.refresh(number, done);
                }
                Err(error) => done(Err(refused(&error))),
            });
        });
    }

    /// Frees all locks of an owner, who closes a file.
    pub(crate) fn free_locks(
        self: &Arc<Self>,
        number: u64,
        owner: Option<u64>,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let owner = owner.filter(|&owner| self.state().locked.remove(&(number, owner)));
        match owner {
            Some(owner) => self.set_lock((number, owner), (0, LAST), Wish::Free, done),
            None => done(Ok(())),
        }
    }

    /// Tells who keeps an owner from locking a range.
    pub(crate) fn lock_against(
        self: &Arc<Self>,
        owner: (u64, u64),
        range: (u64, u64),
        done: impl FnOnce(Result<Option<(bool, (u64, u64))>, Errno>) + Send + 'static,
    ) {
        let client = self.state().crew.alone().cloned();
        let wish = Wish::Exclusive(Patience::None);
        match (self.lock_of_node(owner, range, wish), client) {
            (Ok(lock), Some(client)) => client.lock_of_then(lock, move |answer| {
                done(answer.map_err(|error| refused(&error)));
            }),
            (Err(errno), _) => done(Err(errno)),
            (Ok(_), None) => done(Err(Errno::EIO)),
        }
    }

    fn lock_of_node(
        &self,
        (number, owner): (u64, u64),
        range: (u64, u64),
        wish: Wish,
    ) -> Result<Lock, Errno> {
        let state = self.state();
        // A file that has lost its name keeps its locks until they are freed.
        // spec: store-lock-3
        let may_be = |node: &&Node| !node.is_stale || wish == Wish::Free;
        let node = state.nodes.at(number).filter(may_be).ok_or(Errno::ESTALE)?;
        let path = node.path.as_bytes().to_vec();
        Ok(Lock { path, identity: node.found.identity, owner, range, wish })
    }

    /// Asks what a file is, and has the kernel drop its pages if it is another one than it has.
    fn refresh(
        self: &Arc<Self>,
        number: u64,
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let node = move |core: &Self| -> Option<(hikyaku_store::StorePath, Content)> {
            core.state().nodes.at(number).map(|node| (node.path.clone(), node.content))
        };
        let Some((path, before)) = node(self) else { return done(Err(Errno::ESTALE)) };
        let core = self.clone();
        self.look(path.clone(), move |seen| {
            let seen = match seen {
                Ok(seen) => seen,
                Err(kind) => return done(Err(errno(kind))),
            };
            let mut state = core.state();
            // Whoever uses locks shares the file with others: the handles that are open go on with its new content.
            if let Some(node) = state.nodes.at_mut(number) {
                node.written = Some(seen.asked);
            }
            state.observe(&path, seen);
            drop(state);
            if node(&core).is_none_or(|(_, after)| after == before) {
                return done(Ok(()));
            }
            core.drop_pages(number, Box::new(move || done(Ok(()))));
        });
    }

    fn drop_pages(&self, number: u64, then: Box<dyn FnOnce() + Send>) {
        let droppings: Option<Sender<Dropping>> = self.state().droppings.clone();
        let unsent = match droppings {
            Some(droppings) => droppings.send((number, then)).map_err(|unsent| unsent.0.1),
            None => Err(then),
        };
        if let Err(then) = unsent {
            then();
        }
    }

    /// The connection is lost, and all locks with it.
    pub(crate) fn lose_locks(&self) {
        let mut state = self.state();
        let locked = std::mem::take(&mut state.locked);
        let is_locked = |number: u64| locked.iter().any(|(node, _)| *node == number);
        for open in state.handles.values_mut().filter(|open| is_locked(open.number)) {
            open.error = Some(Errno::EIO);
        }
    }
}

fn refused(error: &RemoteError) -> Errno {
    match error {
        RemoteError::Refused { kind: ErrorKind::Busy, .. } => Errno::EAGAIN,
        RemoteError::Refused { kind, .. } => errno(*kind),
        _ => Errno::EIO,
    }
}
