//! Answers that programs wait for, and programs that are to end meanwhile.
//!
//! The kernel's own word for this, `FUSE_INTERRUPT`, does not come through the library that reads its requests. So for a
//! request that waits, the signals of its thread are looked at in `/proc`: if one is there that ends programs, and the program
//! neither ignores nor blocks it, the request ends with `EINTR`. What the server answers later is kept like any other answer.

use crate::core::Core;
use fuser::{
    Errno, FileAttr, FileHandle, FopenFlags, Generation, ReplyAttr, ReplyCreate, ReplyData,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
};
use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The requests that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    all: Mutex<(u64, HashMap<u64, Waiter>)>,
}

struct Waiter {
    thread: u32,
    since: Instant,
    give_up: Box<dyn FnOnce() + Send>,
}

/// The place of an answer, which is given once: by the server's words, or because the program is to end.
pub(crate) struct Slot<R> {
    reply: Arc<Mutex<Option<R>>>,
    core: Arc<Core>,
    number: u64,
    /// The thread that waits for it.
    pub(crate) thread: u32,
}

/// An answer that may be an error.
pub(crate) trait Fails: Send + 'static {
    fn fail(self, errno: Errno);
}

macro_rules! fails {
    ($($reply:ty),*) => {
        $(impl Fails for $reply {
            fn fail(self, errno: Errno) {
                self.error(errno);
            }
        })*
    };
}

fails!(
    ReplyAttr,
    ReplyCreate,
    ReplyData,
    ReplyEmpty,
    ReplyEntry,
    ReplyOpen,
    ReplyStatfs,
    ReplyWrite,
    ReplyXattr
);

/// A request that waits for less is not looked at.
const PATIENCE: Duration = Duration::from_millis(200);
/// Requests that are looked at at once.
const LOOKS_MAX: usize = 512;

impl Waiting {
    fn all(&self) -> MutexGuard<'_, (u64, HashMap<u64, Waiter>)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the requests of programs that are to end.
    pub(crate) fn tend(&self) {
        let now = Instant::now();
        let is_old = |waiter: &Waiter| now.saturating_duration_since(waiter.since) >= PATIENCE;
        let all = self.all();
        let old = all.1.iter().filter(|(_, waiter)| is_old(waiter));
        let old: Vec<(u64, u32)> =
            old.map(|(&number, waiter)| (number, waiter.thread)).take(LOOKS_MAX).collect();
        drop(all);
        for (number, thread) in old {
            let status = fs::read_to_string(format!("/proc/{thread}/status"));
            if status.is_ok_and(|status| is_to_end(&status)) {
                let waiter = self.all().1.remove(&number);
                if let Some(waiter) = waiter {
                    (waiter.give_up)();
                }
            }
        }
    }
}

/// Whether a thread with this status, as proc_pid_status(5) shows it, has a signal that ends programs.
// fuzz: none, the kernel's own words
fn is_to_end(status: &str) -> bool {
    /// SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM.
    const ENDS: u64 = 0b111 | 1 << 8 | 1 << 14;
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(0)
    };
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    pending & !mask("SigBlk:") & !mask("SigIgn:") & ENDS != 0
}

impl Core {
    /// A place for the answer to a request.
    pub(crate) fn slot<R: Fails>(self: &Arc<Self>, request: &Request, reply: R) -> Slot<R> {
        let reply = Arc::new(Mutex::new(Some(reply)));
        let given_up = reply.clone();
        let give_up = move || {
            let reply = given_up.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(reply) = reply {
                reply.fail(Errno::EINTR);
            }
        };
        let mut all = self.waiting.all();
        all.0 += 1;
        let number = all.0;
        let thread = request.pid();
        let waiter = Waiter { thread, since: Instant::now(), give_up: Box::new(give_up) };
        all.1.insert(number, waiter);
        drop(all);
        Slot { reply, core: self.clone(), number, thread }
    }
}

impl<R: Fails> Slot<R> {
    /// Answers, unless that has been done. Returns whether the kernel has the answer.
    pub(crate) fn answer(self, with: impl FnOnce(R)) -> bool {
        let reply = self.reply.lock().unwrap_or_else(PoisonError::into_inner).take();
        let is_there = reply.is_some();
        if let Some(reply) = reply {
            with(reply);
        }
        is_there
    }

    pub(crate) fn error(self, errno: Errno) {
        self.answer(|reply| reply.fail(errno));
    }
}

impl<R> Drop for Slot<R> {
    fn drop(&mut self) {
        self.core.waiting.all().1.remove(&self.number);
    }
}

impl Slot<ReplyEntry> {
    pub(crate) fn entry(
        self,
        time: &Duration,
        attributes: &FileAttr,
        generation: Generation,
    ) -> bool {
        self.answer(|reply| reply.entry(time, attributes, generation))
    }
}

impl Slot<ReplyAttr> {
    pub(crate) fn attr(self, time: &Duration, attributes: &FileAttr) {
        self.answer(|reply| reply.attr(time, attributes));
    }
}

impl Slot<ReplyOpen> {
    pub(crate) fn opened(self, handle: FileHandle, flags: FopenFlags) -> bool {
        self.answer(|reply| reply.opened(handle, flags))
    }
}

impl Slot<ReplyEmpty> {
    pub(crate) fn ok(self) {
        self.answer(ReplyEmpty::ok);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_end_a_program_are_told_from_others() {
        let status = |pending: u64, shared: u64, blocked: u64, ignored: u64| {
            format!(
                "Name:\tcat\nSigPnd:\t{pending:016x}\nShdPnd:\t{shared:016x}\nSigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\n"
            )
        };
        let (int, child, kill) = (1 << 1, 1 << 16, 1 << 8);
        for (status, ends) in [
            (status(0, int, 0, 0), true),
            (status(kill, 0, 0, 0), true),
            (status(0, int, int, 0), false),
            (status(0, int, 0, int), false),
            (status(0, child, 0, 0), false),
            (status(0, 0, 0, 0), false),
        ] {
            assert_eq!(is_to_end(&status), ends, "{status}");
        }
        assert!(!is_to_end(""));
    }
}
