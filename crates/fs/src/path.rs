//! Names and paths as a peer may send them.

use crate::shown::Shown;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The longest name of a file that Linux has.
const MAX_NAME: usize = 255;
/// The deepest path taken. A tree of 2,000 levels is in use somewhere; a million is an attack.
const MAX_DEPTH: usize = 4096;

/// What is wrong with a path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// No name at all, or two slashes in a row.
    #[error("an empty name")]
    Empty,
    /// Begins with a slash.
    #[error("an absolute path")]
    Absolute,
    /// `.` or `..`.
    #[error("'{0}' as a name")]
    Dots(&'static str),
    /// A zero byte or, in a single name, a slash.
    #[error("a name with {0} in it")]
    Forbidden(&'static str),
    /// More than 255 bytes.
    #[error("a name of {0} bytes, more than 255")]
    TooLong(usize),
    /// More than 4,096 names.
    #[error("a path of {0} names, more than 4096")]
    TooDeep(usize),
}

/// One name: bytes that can stand for a file in a directory, and for nothing else.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Takes a name that is one.
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
        if bytes.len() > MAX_NAME {
            return Err(PathError::TooLong(bytes.len()));
        }
        Ok(Self(bytes.into()))
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As the system wants it.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// For a person.
    pub const fn shown(&self) -> Shown<'_> {
        Shown::new(&self.0)
    }
}

/// A relative path of at least one name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PeerPath {
    bytes: Box<[u8]>,
}

impl PeerPath {
    /// Takes a path whose every name is one, with single slashes between them.
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.first() == Some(&b'/') {
            return Err(PathError::Absolute);
        }
        let mut depth = 0;
        for name in bytes.split(|&byte| byte == b'/') {
            depth += 1;
            if depth <= MAX_DEPTH {
                Name::new(name)?;
            }
        }
        if depth > MAX_DEPTH {
            return Err(PathError::TooDeep(depth));
        }
        Ok(Self { bytes: bytes.into() })
    }

    /// This path and a name below it.
    pub fn join(&self, name: &Name) -> Result<Self, PathError> {
        let depth = self.names().count() + 1;
        if depth > MAX_DEPTH {
            return Err(PathError::TooDeep(depth));
        }
        Ok(Self { bytes: [&self.bytes, &b"/"[..], name.as_bytes()].concat().into() })
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its names, outermost first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.bytes.split(|&byte| byte == b'/')
    }

    /// The innermost name.
    pub fn name(&self) -> Name {
        Name(self.names().next_back().unwrap_or_default().into())
    }

    /// The path without its innermost name; `None` if there is only that.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.bytes.iter().rposition(|&byte| byte == b'/')?;
        Some(Self { bytes: self.bytes[..slash].into() })
    }

    /// For a person.
    pub const fn shown(&self) -> Shown<'_> {
        Shown::new(&self.bytes)
    }
}

impl From<Name> for PeerPath {
    fn from(name: Name) -> Self {
        Self { bytes: name.0 }
    }
}

#[cfg(test)]
mod tests;
