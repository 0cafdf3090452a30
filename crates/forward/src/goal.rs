//! Where a flow goes, or comes in: a host and a port, or a Unix socket.

use crate::fields::{Fields, MessageError};
use crate::target::Target;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Where a flow goes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Goal {
    /// A host and a port.
    Tcp(Target),
    /// A Unix socket of the host of the gateway that connects the flow.
    Socket(SocketPath),
}

/// The absolute path of a Unix socket: 2 to 107 bytes (unix(7), `sun_path`), without control characters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SocketPath(String);

/// A text that is no such path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the path of a Unix socket begins with / and has at most {SOCKET_BYTES_MAX} bytes")]
pub struct BadSocketPath;

/// Bytes of a path at most: the kernel's field has one more, for the end.
const SOCKET_BYTES_MAX: usize = 107;

impl SocketPath {
    /// Reads a path.
    ///
    /// # Errors
    ///
    /// It is not absolute, too long, or has control characters.
    // fuzz: forward
    pub fn parse(text: &str) -> Result<Self, BadSocketPath> {
        let fits = (2..=SOCKET_BYTES_MAX).contains(&text.len());
        match fits && text.starts_with('/') && !text.chars().any(char::is_control) {
            true => Ok(Self(text.to_owned())),
            false => Err(BadSocketPath),
        }
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        // At most 107 bytes.
        out.push(self.0.len() as u8);
        out.extend_from_slice(self.0.as_bytes());
    }

    // fuzz: forward
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, MessageError> {
        Self::parse(fields.text()?).map_err(|BadSocketPath| MessageError::Socket)
    }
}

impl From<Target> for Goal {
    fn from(target: Target) -> Self {
        Self::Tcp(target)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(target) => target.fmt(f),
            Self::Socket(path) => path.fmt(f),
        }
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_socket_is_absolute_and_fits() {
        for (text, is_path) in [
            ("/run/a.sock", true),
            ("/a", true),
            ("/", false),
            ("", false),
            ("run/a", false),
            ("/a\nb", false),
            ("/a\0", false),
        ] {
            assert_eq!(SocketPath::parse(text).is_ok(), is_path, "{text:?}");
        }
        let long =
            |length: usize| SocketPath::parse(&alloc::format!("/{}", "a".repeat(length - 1)));
        assert!(long(107).is_ok());
        assert_eq!(long(108), Err(BadSocketPath));
    }
}
