//! Commands of applications to a driver, and its wake-up.
//!
//! The queues have no fixed capacity and need none: a connection is in them at most once for all of
//! its streams, and every other command is one that some task waits for or that ends a handle.

use crate::command::Command;
use crate::sync::{AtomicBool, Bell, SegQueue, fence};
use std::sync::atomic::Ordering;

/// The way into a driver thread.
pub(crate) struct Mailbox {
    commands: SegQueue<Command>,
    asleep: AtomicBool,
    gone: AtomicBool,
    waker: Bell,
}

impl Mailbox {
    pub(crate) fn new(waker: Bell) -> Self {
        Self {
            commands: SegQueue::new(),
            asleep: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            waker,
        }
    }

    /// Sends `command` to the driver, and wakes it if it sleeps. If the driver has ended the command
    /// is dropped, which answers its request.
    pub(crate) fn send(&self, command: Command) {
        self.commands.push(command);
        // Either the driver sees the command before it sleeps, or this sees that it sleeps.
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

    /// The driver is about to sleep; false if there is something to do first.
    pub(crate) fn lie_down(&self) -> bool {
        // An exchange, here and in `get_up`: it stands in one order with those of all senders, which makes it
        // plain to follow, and to sleep costs more.
        self.asleep.swap(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let is_empty = self.commands.is_empty();
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
    }
}
