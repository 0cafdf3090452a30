//! The only names of a source that take part: those of a list (`--files-from`), or the one that the user has named.

use crate::filter::Rules;
use crate::plan::parent;
use anyhow::{Context, Result, ensure};
use hikyaku_console::At;
use hikyaku_fs::{PeerPath, Shown};
use std::collections::BTreeSet;
use std::path::Path;

/// Names below the root that take part, and the directories above them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Names {
    wanted: BTreeSet<Vec<u8>>,
    /// Directories of which the names in them take part, but not what is in those.
    opened: BTreeSet<Vec<u8>>,
    depth: Depth,
    origin: Origin,
}

/// Whether what is in a wanted directory takes part, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    Name,
    Tree,
}

/// Where names come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// The user has named it as the source. Rules and messages are about it, and not only about what is in it.
    Source,
    List,
}

impl Names {
    /// The one name that is the source: all that is in it takes part.
    pub(crate) fn one(name: Vec<u8>) -> Self {
        let (wanted, opened) = (BTreeSet::from([name]), BTreeSet::new());
        Self { wanted, opened, depth: Depth::Tree, origin: Origin::Source }
    }

    /// The names of a list, each of which ends with `end`. In a list of lines, those that begin
    /// with `#` or `;` are comments, as in rsync.
    ///
    /// # Errors
    ///
    /// The list cannot be read, or a line of it is no path below the source.
    pub(crate) fn read(path: &Path, end: u8, depth: Depth) -> Result<Self> {
        let bytes = hikyaku_fs::read_list(path).at(path.display())?;
        Self::of(&bytes, end, depth).with_context(|| path.display().to_string())
    }

    fn of(bytes: &[u8], end: u8, depth: Depth) -> Result<Self> {
        let (mut wanted, mut opened) = (BTreeSet::new(), BTreeSet::new());
        for line in bytes.split(|&byte| byte == end) {
            if line.is_empty() || (end != 0 && matches!(line[0], b'#' | b';')) {
                continue;
            }
            let names =
                line.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
            let path = names.collect::<Vec<_>>().join(&b'/');
            if !path.is_empty() {
                PeerPath::new(&path).with_context(|| {
                    format!("{} is not a path below the source", Shown::new(line))
                })?;
            }
            // As in rsync, a slash or a dot at the end means the names in the directory.
            if line.ends_with(b"/") || line.ends_with(b"/.") || line == b"." {
                opened.insert(path.clone());
            }
            wanted.insert(path);
        }
        ensure!(!wanted.is_empty(), "there are no names in it");
        Ok(Self { wanted, opened, depth, origin: Origin::List })
    }

    /// Whether the root itself is part of the transfer.
    pub(crate) fn has_root(&self) -> bool {
        self.wanted.contains(&b""[..])
    }

    /// The name that is the source. No other name of its directory is looked at.
    pub(crate) fn source(&self) -> Option<&[u8]> {
        let first = self.wanted.iter().next();
        first.filter(|_| self.origin == Origin::Source).map(|name| &name[..])
    }

    /// Whether all that is in a directory takes part, so that what the source does not have may be deleted in it.
    pub(crate) fn are_all_of(&self, dir: &[u8]) -> bool {
        self.origin == Origin::Source && !dir.is_empty()
    }

    /// Those for which `is_kept` is true, and the root.
    pub(crate) fn kept(&self, is_kept: impl Fn(&[u8]) -> bool) -> Self {
        let mut kept = self.clone();
        kept.wanted.retain(|name| name.is_empty() || is_kept(name));
        kept.opened.retain(|name| kept.wanted.contains(name));
        kept
    }

    /// Whether a path is a wanted one or above one, whatever rules say, or is in one and left out by no rule.
    pub(crate) fn takes_part(&self, path: &[u8], is_dir: bool, rules: &Rules) -> bool {
        let is_in_opened = || self.opened.contains(parent(path));
        self.wanted.contains(path)
            || self.is_above(path)
            || ((is_in_opened() || self.is_in_wanted(path, rules)) && rules.copies(path, is_dir))
    }

    /// Whether the list takes a path for a directory: it has names below it, or has it with a slash at its end.
    pub(crate) fn means_dir(&self, path: &[u8]) -> bool {
        self.is_opened(path) || self.is_above(path)
    }

    /// Whether the list has a path with a slash at its end.
    pub(crate) fn is_opened(&self, path: &[u8]) -> bool {
        self.opened.contains(path)
    }

    fn is_above(&self, path: &[u8]) -> bool {
        let inner = [path, b"/"].concat();
        let first = self.wanted.range(inner.clone()..).next();
        first.is_some_and(|first| first.starts_with(&inner))
    }

    /// Whether a path is in a wanted directory, and rules leave out none of those between.
    fn is_in_wanted(&self, path: &[u8], rules: &Rules) -> bool {
        let mut dir = path;
        while self.depth == Depth::Tree && !dir.is_empty() {
            dir = parent(dir);
            if self.wanted.contains(dir) {
                return true;
            }
            if !dir.is_empty() && !rules.copies(dir, true) {
                return false;
            }
        }
        false
    }

    /// The wanted names.
    pub(crate) fn wanted(&self) -> BTreeSet<Vec<u8>> {
        self.wanted.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_list_and_the_directories_above_them_take_part() {
        let list = b"a/b/c\n# none\n./d\n\n; e\nf\n";
        let names = Names::of(list, b'\n', Depth::Name).unwrap();
        let takes = |names: &Names, paths: &[&str]| {
            paths
                .iter()
                .map(|path| names.takes_part(path.as_bytes(), false, &Rules::default()))
                .collect::<Vec<_>>()
        };
        assert_eq!(takes(&names, &["a", "a/b", "a/b/c", "d", "f"]), [true; 5]);
        assert_eq!(takes(&names, &["b", "a/b/d", "a/b/c/d", "d/x", "e", "ff"]), [false; 6]);
        let tree = Names::of(list, b'\n', Depth::Tree).unwrap();
        assert_eq!(takes(&tree, &["d/x", "d/x/y", "a/b/c/d"]), [true; 3]);
        assert_eq!(takes(&tree, &["a/x", "e/x"]), [false; 2]);
        let opened = Names::of(b"./d//\ne/.\n", b'\n', Depth::Name).unwrap();
        assert_eq!(
            takes(&opened, &["d", "d/x", "e/x", "d/x/y", "x"]),
            [true, true, true, false, false]
        );
        let root = Names::of(b"./\n", b'\n', Depth::Name).unwrap();
        assert_eq!(takes(&root, &["d", "d/x"]), [true, false]);
        let zeros = Names::of(b"a\nb\0#c\0", 0, Depth::Name).unwrap();
        assert_eq!(takes(&zeros, &["a\nb", "#c", "a"]), [true, true, false]);
        for bad in [&b"../x\n"[..], b"", b"a/../../b\n"] {
            assert!(Names::of(bad, b'\n', Depth::Name).is_err(), "{bad:?}");
        }
    }
}
