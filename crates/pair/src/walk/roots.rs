//! Sources as their user named them.

use crate::landing::Descriptors;
use crate::read::ReadSource;
use crate::spot::failure;
use hikyaku_fs::{PeerPath, Shown};
use hikyaku_transfer::{Failure, Sources};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A source as its user named it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Root {
    /// The directory that it is looked up in; links on the way to it are its user's.
    pub(super) base: PathBuf,
    /// Where it is beneath; `None` if it is that directory.
    pub(super) below: Option<PeerPath>,
    /// Its name at the target; `None` if only what is in it is copied.
    pub(super) name: Option<Vec<u8>>,
}

/// The sources of a copy.
pub struct Roots {
    pub(crate) all: Vec<Root>,
    /// Whether there is one, which may get the destination's name, or several.
    pub(crate) sources: Sources,
    /// A hash of the sources.
    pub(crate) of: [u8; 32],
    /// The sources, for messages to the user.
    pub(crate) from: String,
    /// Whether what comes of one may have a name that came of another.
    pub(crate) meeting: Meeting,
    /// Whose the standard descriptors are.
    pub(crate) descriptors: Descriptors,
}

/// Whether sources may come to one name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meeting {
    Never,
    Perhaps,
}

impl Roots {
    /// The sources of these paths. Only `files` of them are copied, unless that is empty.
    pub fn new(paths: &[PathBuf], files: &[Vec<u8>], descriptors: Descriptors) -> Self {
        let listed = paths.iter().flat_map(|path| files.iter().map(|file| listed(path, file)));
        let all: Vec<Root> = match files {
            [] => paths.iter().map(|path| root(path)).collect(),
            _ => listed.flatten().collect(),
        };
        let sources = match all.as_slice() {
            _ if !files.is_empty() => Sources::Contents,
            [Root { name: None, .. }] => Sources::Contents,
            [_] => Sources::One,
            _ => Sources::Several,
        };
        let mut of = blake3::Hasher::new();
        of.update(rustix::system::uname().nodename().to_bytes());
        let mut from = Vec::new();
        for path in paths {
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            from.push(Shown::new(path.as_os_str().as_bytes()).to_string());
            of.update(b"\0").update(path.as_os_str().as_bytes());
        }
        let (of, from, meeting) = (*of.finalize().as_bytes(), from.join(" "), meeting(&all));
        Self { all, sources, of, from, meeting, descriptors }
    }
}

/// Whether entries of one source can have the names of another's: if both have one name, if one is below the other, or if
/// one stands for all names of a directory.
fn meeting(all: &[Root]) -> Meeting {
    let names: BTreeSet<&[u8]> = all.iter().filter_map(|root| root.name.as_deref()).collect();
    let is_below = |name: &&[u8]| {
        let slashes = name.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
        slashes.map(|(at, _)| &name[..at]).any(|dir| names.contains(dir))
    };
    let is_apart = names.len() == all.len() && !names.iter().any(is_below);
    if all.len() < 2 || is_apart { Meeting::Never } else { Meeting::Perhaps }
}

/// A file of a list, relative to a source.
fn listed(source: &Path, file: &[u8]) -> Option<Root> {
    // The list was checked when it was read.
    let below = PeerPath::new(file).ok()?;
    Some(Root { base: source.to_path_buf(), below: Some(below), name: Some(file.to_vec()) })
}

fn root(path: &Path) -> Root {
    // `run7/` is `run7`; `run7/.`, `..` and `/` have no name of their own.
    let bytes = path.as_os_str().as_bytes();
    let itself = |name: Option<&OsStr>| Root {
        base: path.to_path_buf(),
        below: None,
        name: name.map(|name| name.as_bytes().to_vec()),
    };
    match path.components().next_back() {
        Some(Component::Normal(_)) if bytes.ends_with(b"/.") => itself(None),
        // A link of that name is followed: the slash means a directory.
        Some(Component::Normal(name)) if bytes.ends_with(b"/") => itself(Some(name)),
        Some(Component::Normal(name)) => match PeerPath::new(name.as_bytes()) {
            Ok(below) => {
                let base = path.parent().map(Path::to_path_buf).unwrap_or_default();
                Root { base, below: Some(below), name: Some(name.as_bytes().to_vec()) }
            }
            // Opening it fails with the reason.
            Err(_) => itself(Some(name)),
        },
        _ => itself(None),
    }
}

impl Root {
    /// The open descriptor that it names, as `/dev/stdin` does.
    pub(super) fn descriptor(&self) -> Option<u32> {
        let below = self.below.as_ref()?;
        hikyaku_fs::descriptor_number(&self.base.join(OsStr::from_bytes(below.as_bytes())))
    }

    /// The failure to report if it cannot be read.
    pub(super) fn failure(&self, error: &ReadSource) -> Failure {
        failure(&self.base, self.below.as_ref().map_or(b"", PeerPath::as_bytes), error)
    }
}
