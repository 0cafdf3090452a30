//! Paths in a store.

use hikyaku_fs::{Name, PathError, PeerPath, Shown};
use std::fmt;

/// A path relative to the root of a store. Unlike a [`PeerPath`] it may be the root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StorePath(Option<PeerPath>);

impl StorePath {
    /// The root of the store.
    pub const ROOT: Self = Self(None);

    /// Parses names that are separated by single slashes. The empty path is the root.
    ///
    /// # Errors
    ///
    /// An absolute path, an empty name, `.`, `..`, a zero byte, or a path beyond the limits of
    /// [`PeerPath`].
    pub fn new(bytes: &[u8]) -> std::result::Result<Self, PathError> {
        if bytes.is_empty() { Ok(Self::ROOT) } else { PeerPath::new(bytes).map(|p| Self(Some(p))) }
    }

    /// The names separated by slashes; empty for the root.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(b"", PeerPath::as_bytes)
    }

    /// The path below the root; `None` if it is the root.
    pub const fn below_root(&self) -> Option<&PeerPath> {
        self.0.as_ref()
    }

    /// The directory that holds the path, and its name there; `None` for the root.
    pub fn split(&self) -> Option<(Self, Name)> {
        let path = self.0.as_ref()?;
        Some((Self(path.parent()), path.name()))
    }

    /// The path of an entry of this directory.
    ///
    /// # Errors
    ///
    /// The path would exceed the limits of [`PeerPath`].
    pub fn join(&self, name: &Name) -> std::result::Result<Self, PathError> {
        Ok(Self(Some(match &self.0 {
            Some(path) => path.join(name)?,
            None => name.clone().into(),
        })))
    }

    /// Its names, outermost first; none for the root.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().flat_map(|path| path.names())
    }
}

impl From<PeerPath> for StorePath {
    fn from(path: PeerPath) -> Self {
        Self(Some(path))
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => Shown::new(path.as_bytes()).fmt(f),
            None => f.write_str("."),
        }
    }
}
