//! What a tree holds, and how two of them differ.

use anyhow::{Context, Result};
use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lsetxattr};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// All entries by their paths.
pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

/// One entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// What it is and holds.
    pub(crate) content: Content,
    /// What else is known of it.
    pub(crate) dress: Dress,
}

/// What it is and holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// A file: its length, and the hash of its bytes.
    File(u64, [u8; 32]),
    /// A directory.
    Dir,
    /// A link, and what it says.
    Link(PathBuf),
    /// Anything else.
    Special,
}

/// What `-a` keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dress {
    /// Permissions.
    pub(crate) mode: u32,
    /// When it was last written.
    pub(crate) modified: (i64, i64),
    /// Extended attributes of users.
    pub(crate) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// How much two entries must agree in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closeness {
    /// What they are and hold.
    Content,
    /// And what `-a` keeps.
    Dressed,
}

/// How names of unfinished files end, and begin.
pub(crate) fn is_partial(path: &Path) -> bool {
    let name = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    name.starts_with(b".") && name.ends_with(b".hikyaku")
}

/// Everything below `root`.
pub(crate) fn read(root: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        let here = root.join(&dir);
        let listing = fs::read_dir(&here).with_context(|| format!("{}", here.display()))?;
        for entry in listing {
            let path = dir.join(entry?.file_name());
            let entry = entry_at(&root.join(&path))?;
            if entry.content == Content::Dir {
                open.push(path.clone());
            }
            tree.insert(path, entry);
        }
    }
    Ok(tree)
}

fn entry_at(path: &Path) -> Result<Entry> {
    let meta = fs::symlink_metadata(path)?;
    let content = if meta.is_file() {
        let bytes = fs::read(path)?;
        Content::File(bytes.len() as u64, *blake3::hash(&bytes).as_bytes())
    } else if meta.is_dir() {
        Content::Dir
    } else if meta.is_symlink() {
        Content::Link(fs::read_link(path)?)
    } else {
        Content::Special
    };
    let attributes =
        if meta.is_symlink() { BTreeMap::new() } else { attributes(path).unwrap_or_default() };
    let modified = (meta.mtime(), meta.mtime_nsec());
    Ok(Entry { content, dress: Dress { mode: meta.mode() & 0o7777, modified, attributes } })
}

fn attributes(path: &Path) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut names = vec![0; 4096];
    let length = llistxattr(path, &mut names)?;
    let mut all = BTreeMap::new();
    for name in names[..length].split(|&byte| byte == 0).filter(|name| name.starts_with(b"user.")) {
        let mut value = vec![0; 4096];
        let length = lgetxattr(path, std::ffi::OsStr::from_bytes(name), &mut value)?;
        value.truncate(length);
        all.insert(name.to_vec(), value);
    }
    Ok(all)
}

/// Gives a file an attribute.
pub(crate) fn set_attribute(path: &Path, name: &str, value: &[u8]) -> Result<()> {
    Ok(lsetxattr(path, name, value, XattrFlags::empty())?)
}

/// Where `found` is not as `wanted`, in words.
pub(crate) fn differences(wanted: &Tree, found: &Tree, closeness: Closeness) -> Vec<String> {
    let mut said = Vec::new();
    for (path, want) in wanted {
        let shown = path.display();
        match found.get(path) {
            None => said.push(format!("{shown} is missing")),
            Some(have) if have.content != want.content => {
                said.push(format!("{shown} has other content"));
            }
            Some(have) if closeness == Closeness::Dressed => {
                said.extend(
                    undressed(want, have).map(|what| format!("{shown} has another {what}")),
                );
            }
            Some(_) => {}
        }
    }
    let extra = found.keys().filter(|path| !wanted.contains_key(*path));
    said.extend(extra.map(|path| format!("{} should not be there", path.display())));
    said
}

fn undressed(want: &Entry, have: &Entry) -> Option<&'static str> {
    if matches!(want.content, Content::Link(_)) {
        return None;
    }
    if want.dress.mode != have.dress.mode {
        return Some("mode");
    }
    if want.dress.attributes != have.dress.attributes {
        return Some("set of attributes");
    }
    (want.dress.modified != have.dress.modified).then_some("time")
}
