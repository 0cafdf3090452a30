//! Messages of locks of byte ranges.

use super::RequestId;
use hikyaku_store::Identity;
use serde::{Deserialize, Serialize};

/// A request about the locks of a file. A client's locks end with its connection.
// spec: store-feature-6
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lock {
    /// The path of the file.
    pub path: Vec<u8>,
    /// Which file it must be; another one of the path is answered with `Changed`.
    pub identity: Identity,
    /// The program of the client, by a number of the client's choice.
    pub owner: u64,
    /// The first and the last byte.
    pub range: (u64, u64),
    /// What is wanted.
    pub wish: Wish,
}

/// What a client wants of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Wish {
    /// Others may lock it shared as well. Answered by [`Reply::Done`](super::Reply::Done), or refused as `Busy`.
    Shared(Patience),
    /// Nobody else has a lock of it. Answered likewise.
    Exclusive(Patience),
    /// No lock any more. Answered by [`Reply::Done`](super::Reply::Done).
    Free,
    /// The lock that this earlier request waits for is not wanted any more: that one is refused as `Busy`, unless it was
    /// answered before. Answered by [`Reply::Done`](super::Reply::Done).
    // spec: store-lock-4
    GiveUp(RequestId),
}

/// Whether a lock is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Patience {
    /// A lock that cannot be had is refused.
    None,
    /// The answer comes when it is had, or when the owner asks for the same range as [`Wish::Free`].
    Wait,
}
