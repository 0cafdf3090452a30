//! Hidden names that go before the program that closes its file goes on.
//!
//! The kernel sends the last close of a file (`FUSE_RELEASE`) without waiting for the answer, so that a client which lists
//! the directory just after it would see the hidden name. It waits for the answer to each close of a descriptor (`FUSE_FLUSH`),
//! after which a copy of the descriptor, or a mapping, may be left. So the server removes the name then, and keeps
//! the file itself for this connection. Another process than the one that has opened the file closes a copy: each process that
//! is started does so with those of its parent.

use crate::ask::What;
use crate::core::{Core, State};
use hikyaku_reach::daemon::WITHDRAWALS;
use hikyaku_remote::Edit;
use hikyaku_store::{ErrorKind, StorePath};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

impl Core {
    /// A thread has closed a descriptor. Calls `done` when the hidden name of its file is removed, if it has one and no other
    /// handle of it is open here.
    pub(crate) fn withdraw(
        self: &Arc<Self>,
        (handle, thread): (u64, u32),
        done: impl FnOnce() + Send + 'static,
    ) {
        // Staged changes are sent later, in their order.
        if self.stage.is_some() {
            return done();
        }
        let state = self.state();
        let hidden = state.to_withdraw(handle);
        let opener = state.handles.get(&handle).map(|open| open.thread);
        drop(state);
        let is_own = |_: &_| opener.is_some_and(|opener| is_of_process(opener, thread));
        let Some((number, hidden)) = hidden.filter(is_own) else { return done() };
        if !self.state().unnamed.withdrawn.insert(number) {
            return done();
        }
        let core = self.clone();
        let answered = move |answer: Result<_, ErrorKind>| {
            if answer.is_err() {
                // It goes at the last close.
                core.state().unnamed.withdrawn.remove(&number);
            }
            done();
        };
        let edit = Edit::Withdraw { path: hidden.as_bytes().to_vec() };
        self.ask(What::Edit(edit, Box::new(answered)));
    }
}

/// Whether two threads are of one process.
fn is_of_process(one: u32, other: u32) -> bool {
    Path::new(&format!("/proc/{other}/task/{one}")).exists()
}

impl State {
    /// The number and the hidden name of the file of a handle, if no other handle of it is open.
    fn to_withdraw(&self, handle: u64) -> Option<(u64, StorePath)> {
        self.crew.alone()?.has(WITHDRAWALS).then_some(())?;
        let number = self.handles.get(&handle)?.number;
        let hidden = self.unnamed.files.get(&number)?;
        let (dir, _) = hidden.split()?;
        let is_last = self.nodes.at(number)?.opens == 1;
        let is_free = !self.unnamed.replaced.contains(&number)
            && !self.unnamed.withdrawn.contains(&number)
            // Under a lease all changes are sent later.
            && self.leases.names(&dir, Instant::now()).is_none();
        (is_last && is_free).then(|| (number, hidden.clone()))
    }
}
