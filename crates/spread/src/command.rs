//! What the scheduler asks of its caller, and when it wants to be called.

use crate::ids::{AskId, FileId, ServerId};
use alloc::vec::Vec;
use core::ops::Range;
use hikyaku_units::{DataSize, Instant, Rate};

/// What the caller is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Ask a server for bytes. The caller reports each arrival, each proven range, and the end of the ask.
    Ask {
        /// Who is asked.
        server: ServerId,
        /// The ask's id, for reports and for [`Command::Cut`].
        ask: AskId,
        /// What is asked.
        work: Work,
    },
    /// Take back what has not left the server yet. What arrives all the same is worth as much as before.
    Cut {
        /// Who was asked.
        server: ServerId,
        /// Which ask.
        ask: AskId,
        /// Where the server is to stop: an offset in the bytes of the ask, all ranges one behind the other.
        from: DataSize,
    },
    /// The rate that a server may send at; `None` lifts the limit.
    Cap {
        /// Who is limited.
        server: ServerId,
        /// The limit.
        rate: Option<Rate>,
    },
    /// Try a server again: connect if it was lost, ask for a sign of life if it is quiet.
    Retry {
        /// Who is tried.
        server: ServerId,
    },
    /// Every byte of the file is proven. Given once, unless the file is voided later.
    Done {
        /// Which file.
        file: FileId,
    },
}

/// The work of an ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// Ranges of one file in bytes, along segment borders, sorted.
    Ranges {
        /// Which file.
        file: FileId,
        /// Which bytes.
        ranges: Vec<Range<u64>>,
    },
    /// Several small files whole, in this order.
    Files(Vec<FileId>),
}

/// When the scheduler wants to be polled, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// When.
    pub at: Instant,
    /// Why.
    pub reason: WakeReason,
}

/// Why the scheduler wants to be polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeReason {
    /// The plan is due again.
    Plan,
    /// A server's silence may be called quiet.
    Quiet,
    /// A server is to be tried again.
    Retry,
}
