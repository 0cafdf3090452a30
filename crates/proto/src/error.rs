//! Why a connection ended.

use alloc::string::{String, ToString};
use core::fmt;
use hikyaku_wire::{DecodeError, Version};

/// Codes of the CLOSE frame. Below 0x100 they are the transport's, above the application's.
pub mod code {
    /// A clean end.
    pub const DONE: u64 = 0;
    /// The peer's bytes break the format.
    pub const FORMAT: u64 = 1;
    /// The peer did what the protocol forbids.
    pub const PROTOCOL: u64 = 2;
    /// The peer sent more than it was allowed.
    pub const FLOW_CONTROL: u64 = 3;
    /// The TLS handshake failed.
    pub const CRYPTO: u64 = 4;
    /// No common cipher.
    pub const NO_CIPHER: u64 = 5;
    /// First code of the application.
    pub const APPLICATION: u64 = 0x100;
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// We closed it.
    Local,
    /// The peer closed it with this code and text.
    Peer {
        /// See [`code`].
        code: u64,
        /// For a person: text that does nothing to a terminal.
        reason: String,
    },
    /// Nothing came back while connecting.
    Unreachable,
    /// Nothing came for the idle time-out.
    TimedOut,
    /// The handshake failed.
    Handshake(String),
    /// The peer speaks other versions.
    Version(alloc::vec::Vec<Version>),
    /// The peer broke the protocol; the text says how.
    Violation(String),
}

impl CloseReason {
    /// What a CLOSE frame of the peer says. Its text may come from anybody, and is printed: what is
    /// no plain character is replaced (T63).
    pub(crate) fn of_peer(code: u64, text: &[u8]) -> Self {
        let plain = |c: char| {
            if c.is_control() || is_invisible(c) { char::REPLACEMENT_CHARACTER } else { c }
        };
        let reason = String::from_utf8_lossy(text).chars().map(plain).collect();
        Self::Peer { code, reason }
    }
}

/// Characters that turn the direction of reading, or hide.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => write!(f, "closed by this side"),
            Self::Peer { code: code::DONE, .. } => write!(f, "closed by the other side"),
            Self::Peer { code, reason } => {
                write!(f, "the other side closed the connection: {reason} (code {code})")
            }
            Self::Unreachable => write!(f, "no answer"),
            Self::TimedOut => write!(f, "nothing heard from the other side for too long"),
            Self::Handshake(text) => write!(f, "the handshake failed: {text}"),
            Self::Version(_) => write!(f, "the other side speaks another protocol version"),
            Self::Violation(text) => write!(f, "the other side broke the protocol: {text}"),
        }
    }
}

impl core::error::Error for CloseReason {}

/// A fault of the peer's that ends the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Violation {
    pub(crate) code: u64,
    pub(crate) text: String,
}

impl Violation {
    pub(crate) fn protocol(text: &str) -> Self {
        Self { code: code::PROTOCOL, text: text.to_string() }
    }

    pub(crate) fn flow_control(text: &str) -> Self {
        Self { code: code::FLOW_CONTROL, text: text.to_string() }
    }
}

impl From<DecodeError> for Violation {
    fn from(error: DecodeError) -> Self {
        Self { code: code::FORMAT, text: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_text_does_nothing_to_a_terminal() {
        let CloseReason::Peer { reason, .. } =
            CloseReason::of_peer(7, b"no \x1b[2J\x07 room\n\xff\xe2\x80\xae")
        else {
            panic!("what a peer says is a peer's");
        };
        assert_eq!(reason, "no \u{fffd}[2J\u{fffd} room\u{fffd}\u{fffd}\u{fffd}");
    }
}
