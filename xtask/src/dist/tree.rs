//! What a package puts into a file system.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

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

    /// Writes it below a directory. What has a name already is replaced in one step.
    pub(super) fn write(&self, root: &Path) -> Result<()> {
        for (path, entry) in self.entries() {
            let to = root.join(path);
            let cannot = || format!("cannot write {}", to.display());
            let folder = to.parent().unwrap_or(root);
            fs::create_dir_all(folder).with_context(cannot)?;
            let name = to.file_name().unwrap_or_default().to_string_lossy();
            let draft = folder.join(format!(".{name}.{}", std::process::id()));
            let written = entry.write(&draft).and_then(|()| fs::rename(&draft, &to));
            if written.is_err() {
                // The error that is reported is the first one.
                let _ = fs::remove_file(&draft);
            }
            written.with_context(cannot)?;
        }
        Ok(())
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

impl Entry {
    fn write(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::File { bytes, mode } => {
                fs::write(path, bytes)?;
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
            Self::Link(to) => symlink(to, path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_replaces_what_has_its_names_and_nothing_else() {
        let root = std::env::temp_dir().join(format!("hikyaku-tree-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("bin")).unwrap();
        // An older program that runs cannot be written to, but replaced.
        fs::write(root.join("bin/a"), "older").unwrap();
        fs::write(root.join("bin/other"), "stays").unwrap();
        let running = fs::File::open(root.join("bin/a")).unwrap();
        let mut tree = Tree::default();
        tree.program("bin/a", b"run");
        tree.link("bin/b", "a");
        tree.file("share/doc/c", b"text");
        for _ in 0..2 {
            tree.write(&root).unwrap();
            assert_eq!(fs::read(root.join("bin/b")).unwrap(), b"run");
            assert_eq!(
                fs::metadata(root.join("bin/a")).unwrap().permissions().mode() & 0o777,
                0o755
            );
            assert_eq!(fs::read_dir(root.join("bin")).unwrap().count(), 3, "a draft is left");
        }
        assert_eq!(io::read_to_string(running).unwrap(), "older");
        assert_eq!(fs::read(root.join("share/doc/c")).unwrap(), b"text");
        assert_eq!(fs::read(root.join("bin/other")).unwrap(), b"stays");
        fs::remove_dir_all(&root).unwrap();
    }
}
