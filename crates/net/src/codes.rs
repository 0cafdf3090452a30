//! The codes that applications give each other: one type for the close of a connection and one for
//! the end of a stream, so that neither is passed for the other.

use hikyaku_proto::code;
use std::fmt;

/// The code with which an application closes a connection. The peer gets it in
/// [`CloseReason::Peer`](crate::CloseReason::Peer).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppCode(u64);

/// The code with which an application resets or stops a stream. The peer gets it in
/// [`ReadError::Reset`](crate::ReadError::Reset) or
/// [`WriteError::Stopped`](crate::WriteError::Stopped).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamCode(u64);

impl AppCode {
    /// The clean end.
    pub const DONE: Self = Self(code::DONE);
    /// The first code that is the application's own: all codes from this one on are. Those between
    /// [`AppCode::DONE`] and this one belong to the transport.
    pub const FIRST: Self = Self(code::APPLICATION);

    /// The code with this number on the wire, which has 62 bits.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number on the wire.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl StreamCode {
    /// The code of a stream half that was dropped before it had ended.
    pub const DROPPED: Self = Self(0);
    /// The code with which the transport resets a stream whose reader did not read
    /// ([`StalledStreams`](crate::StalledStreams)).
    pub const NOT_READ: Self = Self(code::NOT_READ);

    /// The code with this number on the wire. Numbers of 2^61 and more are sent as 2^61 - 1 when they
    /// reset a stream.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number on the wire.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for AppCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for StreamCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
