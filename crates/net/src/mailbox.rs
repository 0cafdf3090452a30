//! Commands of applications to a driver, messages that other drivers have received for it, and its wake-up.
//!
//! The queue of commands has no fixed capacity and needs none: a connection is in it at most once for all of
//! its streams, and every other command is one that some task waits for or that ends a handle. That of messages has one: a
//! driver that is slow loses messages, as those that its socket has no room for, and does not hold up the others.

use crate::command::{Command, Stray};
use crate::sync::{ArrayQueue, AtomicBool, AtomicU64, Bell, SegQueue, fence};
use std::sync::atomic::Ordering;

/// The way into a driver thread.
pub(crate) struct Mailbox {
    commands: SegQueue<Command>,
    strays: ArrayQueue<Stray>,
    /// Messages for which there was no room.
    dropped: AtomicU64,
    asleep: AtomicBool,
    gone: AtomicBool,
    waker: Bell,
}

/// Messages of other drivers that wait: 4 MB at most.
const STRAYS_MAX: usize = 64;

impl Mailbox {
    pub(crate) fn new(waker: Bell) -> Self {
        Self {
            commands: SegQueue::new(),
            strays: ArrayQueue::new(STRAYS_MAX),
            dropped: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            waker,
        }
    }

    /// Sends `command` to the driver, and wakes it if it sleeps. If the driver has ended the command
    /// is dropped, which answers its request.
    pub(crate) fn send(&self, command: Command) {
        self.commands.push(command);
        self.call();
    }

    /// Gives the driver a message that another one has received.
    pub(crate) fn pass(&self, stray: Stray) {
        if self.strays.push(stray).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        self.call();
    }

    /// Wakes the driver if it sleeps.
    fn call(&self) {
        // Either the driver sees what was put here before it sleeps, or this sees that it sleeps.
        fence(Ordering::SeqCst);
        if self.gone.load(Ordering::Relaxed) {
            self.clear();
        } else if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed)
        {
            self.waker.wake();
        }
    }

    pub(crate) fn receive(&self) -> Option<Command> {
        self.commands.pop()
    }

    pub(crate) fn stray(&self) -> Option<Stray> {
        self.strays.pop()
    }

    /// The number of messages that found no room since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// The driver is about to sleep; false if there is something to do first.
    pub(crate) fn lie_down(&self) -> bool {
        // An exchange, here and in `get_up`: it stands in one order with those of all senders, which makes it
        // plain to follow, and to sleep costs more.
        self.asleep.swap(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let is_empty = self.commands.is_empty() && self.strays.is_empty();
        if !is_empty {
            self.get_up();
        }
        is_empty
    }

    /// The driver is awake and needs no wake-up.
    pub(crate) fn get_up(&self) {
        self.asleep.swap(false, Ordering::Relaxed);
    }

    /// The driver ends.
    pub(crate) fn close(&self) {
        self.gone.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.clear();
    }

    fn clear(&self) {
        while self.commands.pop().is_some() {}
        while self.strays.pop().is_some() {}
    }
}
