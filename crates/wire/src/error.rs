//! Errors of decoding.

use core::fmt;

/// A peer's bytes violate the format of `docs/internals/protocol.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The input ends within a field.
    Truncated,
    /// The frame type is unknown to this version.
    UnknownFrame(u64),
    /// A field has a value outside of its range; the text names the field.
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
