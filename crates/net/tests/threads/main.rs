//! The state that threads share, in every order of events that the memory model allows.
//!
//! The files are those of the crate, compiled once more over the models in `sync`: `loom` runs each test again
//! and again, with another schedule and other values that a load may see, until all have been seen (at most
//! three preemptions each). A wake-up that is lost is a deadlock, and that it reports.
#![allow(dead_code, unreachable_pub, reason = "files of the crate, of which not all is used here")]

#[path = "../../src/budget.rs"]
mod budget;
#[path = "../../src/inbox.rs"]
mod inbox;
#[path = "../../src/link.rs"]
mod link;
#[path = "../../src/lobby.rs"]
mod lobby;
#[path = "../../src/mailbox.rs"]
mod mailbox;
mod models;
#[path = "../../src/notify.rs"]
mod notify;
#[path = "../../src/outbox.rs"]
mod outbox;
#[path = "../../src/blocking/park.rs"]
mod park;
#[path = "../../src/reply.rs"]
mod reply;
mod sync;

/// Definitions that the files need from those that are not modelled.
mod command {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Key(pub(crate) u32);

    #[derive(PartialEq, Eq, Debug)]
    pub(crate) enum Order {
        Touch,
        Abandon,
    }

    #[derive(PartialEq, Eq, Debug)]
    pub(crate) enum Command {
        For(Key, Order),
    }

    #[derive(PartialEq, Eq, Debug)]
    pub(crate) struct Stray(pub(crate) u32);
}

mod error {
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(crate) enum WriteError {
        Finished,
    }

    #[derive(Clone, PartialEq, Eq, Debug)]
    pub(crate) enum AcceptError {
        Closed,
    }
}
