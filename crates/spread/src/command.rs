//! Commands of the scheduler to its caller, and the time of the next call.

use crate::ids::{AskId, FileId, ServerId};
use alloc::vec::Vec;
use core::ops::Range;
use hikyaku_units::{DataSize, Instant, Rate};

/// A command to the caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Ask a server for bytes. The caller reports each arrival, each proven range, and the end of the ask.
    Ask {
        /// The server of the request.
        server: ServerId,
        /// The ask's id, for reports and for [`Command::Cut`].
        ask: AskId,
        /// The requested parts.
        work: Work,
    },
    /// Cancel the parts that the server has not sent yet. Bytes that still arrive count as before.
    Cut {
        /// The server of the request.
        server: ServerId,
        /// Which ask.
        ask: AskId,
        /// Where the server is to stop: an offset in the bytes of the ask, all ranges one behind the other.
        from: DataSize,
    },
    /// The rate that a server may send at; `None` lifts the limit.
    Cap {
        /// The server with the new limit.
        server: ServerId,
        /// The limit.
        rate: Option<Rate>,
    },
    /// Try a server again: connect if it was lost, ask for a sign of life if it is quiet.
    Retry {
        /// The server to try.
        server: ServerId,
    },
    /// A server of a pool has no more work and gets none: another one is awake in its place, or fewer are. Its connection can
    /// be closed after what it still sends.
    Rest {
        /// The server that rests.
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
