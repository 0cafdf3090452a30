//! Answers that programs wait for, and programs that are to end meanwhile.
//!
//! The kernel's own word for this, `FUSE_INTERRUPT`, does not come through the library that reads its requests. So for a
//! request that waits, the pending signals of its thread are read in `/proc`: if one of them ends programs, and the program
//! neither ignores nor blocks it, the request ends with `EINTR`. A later answer of the server is cached like any other.
//! A request for a lock may wait for ever. It also ends when a signal is pending that the program handles.

use crate::core::Core;
use fuser::{
    Errno, FileAttr, FileHandle, FopenFlags, Generation, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request,
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
    give_up: Call,
    on_signal: OnSignal,
}

type Call = Box<dyn FnOnce() + Send>;

/// The effect of a handled signal on a request.
enum OnSignal {
    /// Those that end programs end the request.
    Nothing,
    /// The server is asked to answer without what was asked for.
    TakeBack(Call),
    /// It has been asked.
    TakenBack,
}

/// The signals of a thread that it neither ignores nor blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signals {
    None,
    /// Some that it handles.
    Handled,
    /// Handled signals are pending, and one of them ends programs by default.
    HandledEnd,
    /// One ends it.
    End,
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
    ReplyDirectory,
    ReplyDirectoryPlus,
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
            let call = status.ok().and_then(|status| self.end_of(number, signals(&status)));
            if let Some(call) = call {
                call();
            }
        }
    }

    /// The call that ends the wait of a request whose thread has these pending signals.
    fn end_of(&self, number: u64, signals: Signals) -> Option<Call> {
        let mut all = self.all();
        let waiter = all.1.get_mut(&number)?;
        match (signals, &mut waiter.on_signal) {
            (Signals::None, _) => None,
            (Signals::End, _) | (Signals::HandledEnd, OnSignal::Nothing) => {
                all.1.remove(&number).map(|waiter| waiter.give_up)
            }
            (Signals::Handled | Signals::HandledEnd, on_signal) => {
                match std::mem::replace(on_signal, OnSignal::TakenBack) {
                    OnSignal::TakeBack(call) => Some(call),
                    before => {
                        *on_signal = before;
                        None
                    }
                }
            }
        }
    }

    /// Calls `take_back` if the program of a request that waits has a signal that it handles.
    pub(crate) fn on_signal(&self, number: u64, take_back: impl FnOnce() + Send + 'static) {
        if let Some(waiter) = self.all().1.get_mut(&number) {
            waiter.on_signal = OnSignal::TakeBack(Box::new(take_back));
        }
    }
}

/// The signals of a thread with this status, as proc_pid_status(5) shows it.
// fuzz: none, the kernel's own words
fn signals(status: &str) -> Signals {
    /// SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM.
    const ENDS: u64 = 0b111 | 1 << 8 | 1 << 14;
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(0)
    };
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    let heard = pending & !mask("SigBlk:") & !mask("SigIgn:");
    let handled = heard & mask("SigCgt:");
    match (heard & ENDS, handled) {
        (0, 0) => Signals::None,
        (0, _) => Signals::Handled,
        (ends, _) if ends & !handled == 0 => Signals::HandledEnd,
        _ => Signals::End,
    }
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
        let (since, on_signal) = (Instant::now(), OnSignal::Nothing);
        let waiter = Waiter { thread, since, give_up: Box::new(give_up), on_signal };
        all.1.insert(number, waiter);
        drop(all);
        Slot { reply, core: self.clone(), number, thread }
    }
}

impl<R: Fails> Slot<R> {
    /// The number of the request among those that wait.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

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
    fn signals_that_end_a_program_are_told_from_those_that_it_handles() {
        let status = |[pending, shared, blocked, ignored, handled]: [u64; 5]| {
            format!(
                "Name:\tcat\nSigPnd:\t{pending:016x}\nShdPnd:\t{shared:016x}\nSigBlk:\t{blocked:016x}\n\
                 SigIgn:\t{ignored:016x}\nSigCgt:\t{handled:016x}\n"
            )
        };
        let (int, alarm, child, kill) = (1 << 1, 1 << 13, 1 << 16, 1 << 8);
        for (masks, expected) in [
            ([0, int, 0, 0, 0], Signals::End),
            ([kill, 0, 0, 0, int], Signals::End),
            ([kill, int, 0, 0, int], Signals::End),
            ([0, int, 0, 0, int], Signals::HandledEnd),
            ([0, int | alarm, 0, 0, int | alarm], Signals::HandledEnd),
            ([alarm, 0, 0, 0, alarm], Signals::Handled),
            ([alarm, 0, alarm, 0, alarm], Signals::None),
            ([0, int, int, 0, 0], Signals::None),
            ([0, int, 0, int, 0], Signals::None),
            ([0, child, 0, 0, 0], Signals::None),
            ([0, 0, 0, 0, int], Signals::None),
        ] {
            assert_eq!(signals(&status(masks)), expected, "{masks:x?}");
        }
        assert_eq!(signals(""), Signals::None);
    }
}
