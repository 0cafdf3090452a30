//! Why a peer's bytes are not what the format allows.

use core::fmt;

/// A peer's bytes break the format of `docs/protocol.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The input ends inside a field.
    Truncated,
    /// A frame type that this version does not know.
    UnknownFrame(u64),
    /// A field holds a value outside its range; the text names the field.
    Invalid(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the packet ends inside a field"),
            Self::UnknownFrame(kind) => write!(f, "unknown frame type {kind:#x}"),
            Self::Invalid(field) => write!(f, "{field} is out of range"),
        }
    }
}

impl core::error::Error for DecodeError {}
