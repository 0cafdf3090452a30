//! Why a connection ended.

use alloc::string::{String, ToString};
use core::fmt;
use hikyaku_wire::{DecodeError, Version};

/// Error codes of the CLOSE frame. Codes below 0x100 are the transport's, the others the
/// application's.
pub mod code {
    /// A regular close.
    pub const DONE: u64 = 0;
    /// The peer's bytes could not be decoded.
    pub const FORMAT: u64 = 1;
    /// The peer violated the protocol.
    pub const PROTOCOL: u64 = 2;
    /// The peer exceeded a flow-control limit.
    pub const FLOW_CONTROL: u64 = 3;
    /// The TLS handshake failed.
    pub const CRYPTO: u64 = 4;
    /// The two ends have no cipher in common.
    pub const NO_CIPHER: u64 = 5;
    /// On a stream: its reader did not read while unread streams held three quarters of the receive
    /// window.
    pub const NOT_READ: u64 = 6;
    /// The first code of the application.
    pub const APPLICATION: u64 = 0x100;
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The connection was closed by this end.
    Local,
    /// The peer closed it with this code and text.
    Peer {
        /// See [`code`].
        code: u64,
        /// Text for the user, without characters that control a terminal.
        reason: String,
    },
    /// No answer came while connecting.
    Unreachable,
    /// No packet arrived during the idle timeout.
    TimedOut,
    /// The handshake failed.
    Handshake(String),
    /// The peer supports only these versions.
    Version(alloc::vec::Vec<Version>),
    /// The peer violated the protocol, as the text describes.
    Violation(String),
}

impl CloseReason {
    /// The reason in the peer's CLOSE frame. The text is printed and may come from an attacker, so
    /// control characters and invisible characters are replaced.
    pub(crate) fn of_peer(code: u64, text: &[u8]) -> Self {
        let plain = |c: char| {
            if c.is_control() || is_invisible(c) { char::REPLACEMENT_CHARACTER } else { c }
        };
        let reason = String::from_utf8_lossy(text).chars().map(plain).collect();
        Self::Peer { code, reason }
    }
}

/// Characters that change the text direction or are invisible.
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

/// A protocol violation by the peer, which ends the connection.
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
    fn control_characters_in_a_peers_text_are_replaced() {
        let CloseReason::Peer { reason, .. } =
            CloseReason::of_peer(7, b"no \x1b[2J\x07 room\n\xff\xe2\x80\xae")
        else {
            panic!("what a peer says is a peer's");
        };
        assert_eq!(reason, "no \u{fffd}[2J\u{fffd} room\u{fffd}\u{fffd}\u{fffd}");
    }
}
