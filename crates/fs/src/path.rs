//! Names and paths received from a peer.

use crate::shown::Shown;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The longest file name of Linux in bytes (`NAME_MAX`).
const NAME_BYTES_MAX: usize = 255;
/// The most names in one path. Far above real trees, and low enough to bound the work that a
/// hostile path causes.
const PATH_NAMES_MAX: usize = 4096;
/// The longest path in bytes. It bounds what a peer makes the receiver store for each path.
const PATH_BYTES_MAX: usize = 256 << 10;

/// Why a name or path is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// The path is empty, ends in a slash, or has two slashes in a row.
    #[error("an empty name")]
    Empty,
    /// The path begins with a slash.
    #[error("an absolute path")]
    Absolute,
    /// A name is `.` or `..`.
    #[error("'{0}' as a name")]
    Dots(&'static str),
    /// A name contains a NUL byte or, where a single name is expected, a slash.
    #[error("a name with {0} in it")]
    Forbidden(&'static str),
    /// A name has more than 255 bytes.
    #[error("a name of {0} bytes, more than 255")]
    TooLong(usize),
    /// The path has more than 262,144 bytes.
    #[error("a path of {0} bytes, more than 262144")]
    PathTooLong(usize),
    /// The path has more than 4,096 names.
    #[error("a path of {0} names, more than 4096")]
    TooDeep(usize),
}

/// A file name: not empty, not `.` or `..`, without slash and NUL, at most 255 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Checks `bytes` and takes a copy of them.
    // fuzz: names
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        match bytes {
            b"" => return Err(PathError::Empty),
            b"." => return Err(PathError::Dots(".")),
            b".." => return Err(PathError::Dots("..")),
            _ => {}
        }
        if bytes.contains(&b'/') {
            return Err(PathError::Forbidden("a slash"));
        }
        if bytes.contains(&0) {
            return Err(PathError::Forbidden("a zero byte"));
        }
        if bytes.len() > NAME_BYTES_MAX {
            return Err(PathError::TooLong(bytes.len()));
        }
        Ok(Self(bytes.into()))
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its bytes as an argument for system calls.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// The name for messages, escaped for a terminal.
    pub const fn shown(&self) -> Shown<'_> {
        Shown::new(&self.0)
    }
}

/// A relative path of one or more names, at most 4,096 names and 262,144 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerPath {
    bytes: Box<[u8]>,
}

impl PeerPath {
    /// Checks every name of `bytes` and takes a copy. Names are separated by single slashes.
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.first() == Some(&b'/') {
            return Err(PathError::Absolute);
        }
        let mut depth = 0;
        for name in bytes.split(|&byte| byte == b'/') {
            depth += 1;
            if depth <= PATH_NAMES_MAX {
                Name::new(name)?;
            }
        }
        if depth > PATH_NAMES_MAX {
            return Err(PathError::TooDeep(depth));
        }
        if bytes.len() > PATH_BYTES_MAX {
            return Err(PathError::PathTooLong(bytes.len()));
        }
        Ok(Self { bytes: bytes.into() })
    }

    /// This path with `name` appended. Fails if the result is too deep or too long.
    pub fn join(&self, name: &Name) -> Result<Self, PathError> {
        let depth = self.names().count() + 1;
        if depth > PATH_NAMES_MAX {
            return Err(PathError::TooDeep(depth));
        }
        let bytes = [&self.bytes, &b"/"[..], name.as_bytes()].concat();
        if bytes.len() > PATH_BYTES_MAX {
            return Err(PathError::PathTooLong(bytes.len()));
        }
        Ok(Self { bytes: bytes.into() })
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its names from the first to the last.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.bytes.split(|&byte| byte == b'/')
    }

    /// Its last name.
    pub fn name(&self) -> Name {
        Name(self.names().next_back().unwrap_or_default().into())
    }

    /// The path without its last name; `None` if it has only one.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.bytes.iter().rposition(|&byte| byte == b'/')?;
        Some(Self { bytes: self.bytes[..slash].into() })
    }

    /// The path for messages, escaped for a terminal.
    pub const fn shown(&self) -> Shown<'_> {
        Shown::new(&self.bytes)
    }
}

impl From<Name> for PeerPath {
    fn from(name: Name) -> Self {
        Self { bytes: name.0 }
    }
}

/// The paths of the directories above a path, outermost first.
pub fn dirs_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests;
