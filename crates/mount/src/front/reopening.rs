//! Files that no longer exist when they are opened, because their names belong to other files by then.
//!
//! The kernel looks a name up and opens what it has found, which is `ESTALE` where another mount has put another file into its
//! place between the two. Then the kernel looks the name up once more, opens that file, and returns the result. So a name whose
//! file changes all the time could be opened only by luck. At the second of these opens, the present file of the name at
//! the server is opened, under the number of the earlier one.

use crate::answer::Slot;
use crate::core::{Core, State, errno};
use crate::nodes::Seen;
use fuser::{Errno, INodeNo, OpenFlags, ReplyOpen};
use hikyaku_store::{ErrorKind, StorePath};
use std::collections::HashMap;
use std::sync::Arc;

/// The name that each thread looks up once more after `ESTALE`.
#[derive(Default)]
pub(crate) struct Reopenings {
    names: HashMap<u32, StorePath>,
}

/// Whether a thread opens a name for the second time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attempt {
    First,
    Again,
}

/// Maximum number of remembered threads. A forgotten one gets `ESTALE` twice.
const THREADS_MAX: usize = 1024;
/// The kernel's number for threads outside of this process's PID namespace.
const UNKNOWN: u32 = 0;

impl Reopenings {
    /// The thread gets `ESTALE`, so that it looks the name up again.
    pub(crate) fn begin(&mut self, thread: u32, path: StorePath) {
        if self.names.len() >= THREADS_MAX {
            self.names.clear();
        }
        if thread != UNKNOWN {
            self.names.insert(thread, path);
        }
    }

    /// The thread has opened something.
    pub(crate) fn end(&mut self, thread: u32) {
        self.names.remove(&thread);
    }

    fn attempt(&self, thread: u32, path: &StorePath) -> Attempt {
        match self.names.get(&thread) {
            Some(name) if name == path => Attempt::Again,
            _ => Attempt::First,
        }
    }
}

impl Core {
    /// Opens a file whose name has another one by now, or none.
    pub(super) fn reply_open_gone(
        self: &Arc<Self>,
        number: INodeNo,
        flags: OpenFlags,
        reply: Slot<ReplyOpen>,
    ) {
        let mut state = self.state();
        let Some(path) = state.nodes.at(number.0).map(|node| node.path.clone()) else {
            drop(state);
            return reply.error(Errno::ESTALE);
        };
        match state.reopenings.attempt(reply.thread, &path) {
            Attempt::First => {
                state.reopenings.begin(reply.thread, path.clone());
                state.nodes.doubt(&path);
                drop(state);
                return reply.error(Errno::ESTALE);
            }
            Attempt::Again => state.reopenings.end(reply.thread),
        }
        drop(state);
        let asked = path.clone();
        let note = move |state: &mut State, seen: Result<Seen, ErrorKind>| {
            state.note_seen(&path, seen.clone()).map_err(errno)?;
            let company = seen.ok().and_then(|seen| state.succeed((number.0, &path), seen));
            company.ok_or(Errno::ESTALE)
        };
        let core = self.clone();
        self.look(asked, note, move |found| match found {
            Ok(company) => core.reply_opened((number, company), flags, reply),
            Err(errno) => reply.error(errno),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_opens_a_name_again_only_after_it_was_told_to() {
        let path = |name: &str| StorePath::new(name.as_bytes()).unwrap();
        let mut reopenings = Reopenings::default();
        assert_eq!(reopenings.attempt(7, &path("a")), Attempt::First);
        reopenings.begin(7, path("a"));
        assert_eq!(reopenings.attempt(7, &path("a")), Attempt::Again);
        assert_eq!(reopenings.attempt(7, &path("b")), Attempt::First);
        assert_eq!(reopenings.attempt(8, &path("a")), Attempt::First);
        reopenings.end(7);
        assert_eq!(reopenings.attempt(7, &path("a")), Attempt::First);
        reopenings.begin(UNKNOWN, path("a"));
        assert_eq!(reopenings.attempt(UNKNOWN, &path("a")), Attempt::First);
        for thread in 1..=3 * THREADS_MAX as u32 {
            reopenings.begin(thread, path("a"));
        }
        assert!(reopenings.names.len() <= THREADS_MAX);
    }
}
