//! Requests that the kernel makes once more after `ESTALE`.
//!
//! The kernel looks the names of a path up, and asks for something of the nodes that it has found. A node whose name another
//! mount has given to another file meanwhile is answered with `ESTALE`. Then the kernel looks all names of the path up once
//! more, asks once more, and returns the result. So a name that gets other files all the time could be used only by luck.
//!
//! The nodes that a thread finds at its second attempt are recorded, and go on with the present files of their names under
//! the same numbers. A node that another program has open cannot do that, because the program would get another file. So
//! at the second attempt a thread finds a node that no program has open, and is the first to open it.

use crate::answer::{Fails, Slot};
use crate::core::{Core, State, errno};
use crate::nodes::{Company, Node, Seen, is_within};
use crate::options::Checks;
use fuser::{Errno, INodeNo};
use hikyaku_store::{ErrorKind, Found, StorePath};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// The threads that make a request once more.
#[derive(Default)]
pub(crate) struct Retries {
    threads: HashMap<u32, Retry>,
}

struct Retry {
    /// The path that was answered with `ESTALE`.
    path: StorePath,
    /// The nodes that the thread has found since.
    found: Vec<u64>,
    /// Time of the last answer.
    answered: Instant,
}

/// Whether a thread makes a request once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    First,
    Second,
}

/// Maximum number of remembered threads. A forgotten one may get `ESTALE` twice.
const THREADS_MAX: usize = 1024;
/// A thread that looks more names up does not make a request once more.
const NAMES_MAX: usize = 64;
/// The kernel sends the next request of a path at once.
const AT_ONCE: Duration = Duration::from_secs(3);

impl Retries {
    /// The thread gets `ESTALE` for this path.
    fn begin(&mut self, thread: u32, path: StorePath, now: Instant) {
        if self.threads.len() >= THREADS_MAX {
            self.threads.retain(|_, retry| retry.is_live(now));
        }
        let oldest = self.threads.iter().min_by_key(|(_, retry)| retry.answered);
        let oldest =
            oldest.filter(|_| self.threads.len() >= THREADS_MAX).map(|(&thread, _)| thread);
        oldest.into_iter().for_each(|thread| self.end(thread));
        self.threads.insert(thread, Retry { path, found: Vec::new(), answered: now });
    }

    /// The thread has opened something.
    pub(super) fn end(&mut self, thread: u32) {
        self.threads.remove(&thread);
    }

    /// The attempt at which a thread looks this name up.
    pub(super) fn looks(&self, thread: u32, name: &StorePath, now: Instant) -> Attempt {
        let is_of_path =
            |retry: &Retry| is_within(name, &retry.path) || is_within(&retry.path, name);
        match self.threads.get(&thread) {
            Some(retry) if retry.is_live(now) && is_of_path(retry) => Attempt::Second,
            _ => Attempt::First,
        }
    }

    /// The thread finds a node at its second attempt.
    fn find(&mut self, thread: u32, number: u64, now: Instant) {
        let Some(retry) = self.threads.get_mut(&thread) else { return };
        retry.answered = now;
        retry.found.push(number);
        if retry.found.len() > NAMES_MAX {
            self.end(thread);
        }
    }

    /// The attempt at which a thread asks for something of a node.
    fn uses(&self, thread: u32, number: u64, now: Instant) -> Attempt {
        match self.threads.get(&thread) {
            Some(retry) if retry.is_live(now) && retry.found.contains(&number) => Attempt::Second,
            _ => Attempt::First,
        }
    }

    /// Whether another thread has found the node at its second attempt, and is about to open it.
    fn is_of_another(&self, thread: u32, number: u64, now: Instant) -> bool {
        let mut others = self.threads.iter().filter(|(other, _)| **other != thread);
        others.any(|(_, retry)| retry.is_live(now) && retry.found.contains(&number))
    }
}

impl Retry {
    fn is_live(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.answered) < AT_ONCE
    }
}

impl State {
    /// The kernel gets a node, and a reference to it that the caller returns with [`crate::nodes::Nodes::forget`] if it does
    /// not. The node is taken in the same hold of the lock in which it was found: the kernel may forget it meanwhile.
    pub(super) fn take(&mut self, number: u64, (thread, attempt): (u32, Attempt)) -> u64 {
        let now = Instant::now();
        let mut number = number;
        if attempt == Attempt::Second {
            if (self.nodes.is_open(number) || self.retries.is_of_another(thread, number, now))
                && let Some(twin) = self.nodes.twin(number)
            {
                number = twin;
            }
            self.retries.find(thread, number, now);
        }
        self.nodes.look_up(number);
        number
    }

    /// The thread gets `ESTALE` for this path, and looks it up again. The kernel does so once and not again, so what is known
    /// of it must be new.
    pub(super) fn begin_retry(&mut self, thread: u32, path: &StorePath) -> Errno {
        self.retries.begin(thread, path.clone(), Instant::now());
        self.nodes.doubt(path);
        Errno::ESTALE
    }

    /// The path of a node, if another thread has found it at its second attempt and is to open it first.
    pub(super) fn kept_from(&self, thread: u32, number: u64) -> Option<StorePath> {
        let now = Instant::now();
        let is_kept = self.retries.uses(thread, number, now) == Attempt::First
            && self.retries.is_of_another(thread, number, now);
        self.nodes.at(number).filter(|_| is_kept).map(|node| node.path.clone())
    }

    /// A node goes on with the present file of its name.
    fn go_on_with(
        &mut self,
        (number, path): (u64, &StorePath),
        seen: Result<Seen, ErrorKind>,
        checks: Checks,
    ) -> Result<GoneOn, Errno> {
        let noted = self.note_seen(path, seen.clone());
        let node = self.nodes.at(number).ok_or(Errno::ESTALE)?;
        if node.path != *path {
            return Ok(GoneOn::Renamed);
        }
        let (at, seen) = (noted.map_err(errno)?, seen.map_err(errno)?);
        // The answer to a later question may have come first.
        let later = self.nodes.at(at).filter(|node| node.asked > seen.asked);
        let seen = later.map_or(seen, Node::seen);
        let rights = |found: &Found| (found.mode, found.owner);
        // The kernel has checked those of the other file.
        if checks == Checks::Made && rights(&seen.found) != rights(&node.found) {
            return Err(Errno::ESTALE);
        }
        self.succeed((number, path), seen).map(GoneOn::With).ok_or(Errno::ESTALE)
    }
}

/// Whether a node has gone on with another file.
enum GoneOn {
    With(Company),
    /// It was given another name meanwhile.
    Renamed,
}

impl Core {
    /// Calls `then` with the path of a node, or answers that the path has another file.
    pub(super) fn with_path<R: Fails>(
        self: &Arc<Self>,
        number: INodeNo,
        reply: Slot<R>,
        then: impl FnOnce(StorePath, Slot<R>) + Send + 'static,
    ) {
        let path = self.state().path_of(number.0);
        match path {
            Some(path) => then(path, reply),
            None => {
                let core = self.clone();
                self.with_present(number, reply, move |_, reply| {
                    let path = core.state().path_of(number.0);
                    match path {
                        Some(path) => then(path, reply),
                        None => reply.error(Errno::ESTALE),
                    }
                });
            }
        }
    }

    /// The path of a node has another file. The first attempt of a thread is answered with that. At the second one the node
    /// goes on with the present file, once the server has what was written to the other one, and `then` is called.
    pub(super) fn with_present<R: Fails>(
        self: &Arc<Self>,
        number: INodeNo,
        reply: Slot<R>,
        then: impl FnOnce(Company, Slot<R>) + Send + 'static,
    ) {
        let mut state = self.state();
        let Some(path) = state.nodes.at(number.0).map(|node| node.path.clone()) else {
            drop(state);
            return reply.error(Errno::ESTALE);
        };
        if state.retries.uses(reply.thread, number.0, Instant::now()) == Attempt::First {
            let errno = state.begin_retry(reply.thread, &path);
            drop(state);
            return reply.error(errno);
        }
        drop(state);
        let core = self.clone();
        self.after_writes(number.0, move || {
            let asked = core.clone();
            core.after_staged(&[&path.clone()], move |_| {
                let (core, look) = (asked.clone(), path.clone());
                let checks = core.settings.checks;
                let note = move |state: &mut State, seen| {
                    state.go_on_with((number.0, &path), seen, checks)
                };
                asked.look(look, note, move |gone_on| match gone_on {
                    Ok(GoneOn::With(company)) => then(company, reply),
                    Ok(GoneOn::Renamed) => core.with_present(number, reply, then),
                    Err(errno) => reply.error(errno),
                });
            });
        });
    }
}
