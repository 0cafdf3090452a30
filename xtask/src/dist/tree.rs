//! What a package puts into a file system.

use std::collections::{BTreeMap, BTreeSet};

/// Files and links by their paths, which are relative and have no `.` or `..`.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Entry>);

/// What is at a path.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A file and its permissions.
    File { bytes: Vec<u8>, mode: u32 },
    /// A symbolic link and what it says.
    Link(String),
}

impl Tree {
    /// Adds a file that everybody reads.
    pub(super) fn file(&mut self, path: impl Into<String>, bytes: &[u8]) {
        self.0.insert(path.into(), Entry::File { bytes: bytes.to_vec(), mode: 0o644 });
    }

    /// Adds a file that everybody runs.
    pub(super) fn program(&mut self, path: impl Into<String>, bytes: &[u8]) {
        self.0.insert(path.into(), Entry::File { bytes: bytes.to_vec(), mode: 0o755 });
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: impl Into<String>, to: &str) {
        self.0.insert(path.into(), Entry::Link(to.to_owned()));
    }

    /// Takes a path out again.
    pub(super) fn remove(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// Files and links in the order of their paths.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.0.iter().map(|(path, entry)| (path.as_str(), entry))
    }

    /// The directories that the paths need, each before those in it.
    pub(super) fn directories(&self) -> BTreeSet<&str> {
        let parents = |path: &'_ str| -> Vec<usize> {
            path.match_indices('/').map(|(at, _)| at).collect::<Vec<_>>()
        };
        self.0.keys().flat_map(|path| parents(path).into_iter().map(|at| &path[..at])).collect()
    }

    /// Bytes of all files.
    pub(super) fn size(&self) -> usize {
        let size = |entry: &Entry| match entry {
            Entry::File { bytes, .. } => bytes.len(),
            Entry::Link(_) => 0,
        };
        self.0.values().map(size).sum()
    }
}
