//! The two ends that the user named: the roots of the two trees.

mod end;

pub(crate) use end::{End, Hosts, Reaching};

use crate::side::Side;
use anyhow::{Result, ensure};
use hikyaku_console::{misuse, with_remedy};
use hikyaku_stores::Location;

/// Refuses ends between which files are only copied, and not compared.
///
/// # Errors
///
/// One is a web server.
pub(crate) fn check_ends(ends: [&Location; 2]) -> Result<()> {
    match ends.into_iter().find(|end| matches!(end, Location::Web(_))) {
        Some(end) => {
            let text = format!("'{end}': a web server lists no directories to compare");
            Err(misuse(text, "hikyaku get URL, which downloads a file"))
        }
        None => Ok(()),
    }
}

/// The root of a tree.
pub(crate) struct Place<'a> {
    end: &'a End,
    /// The directory that is the root, or that the file is in.
    root: Vec<u8>,
}

impl Place<'_> {
    /// The root, or a name in it if that is not empty.
    pub(crate) fn location(&self, name: &[u8]) -> Location {
        self.end.location(&self.root, name)
    }

    /// The root as a side.
    pub(crate) fn side(&self) -> Result<Side> {
        self.end.side(&self.root)
    }
}

/// Whether what a link leads to is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Links {
    Followed,
    Kept,
}

/// What has a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Dir,
    Other,
    Nothing,
}

/// What a source means.
pub(crate) struct Source<'a> {
    pub(crate) place: Place<'a>,
    /// The one name in the root that is meant; `None` if all that is in the root is meant.
    pub(crate) only: Option<Vec<u8>>,
    pub(crate) kind: SourceKind,
}

/// What a source is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceKind {
    Directory,
    /// A file, a link or another: the target may be its new name.
    Other,
}

/// What a source without a slash at its end means if it is a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// The directory, as a name at the target.
    Itself,
    /// The root of the paths of a list.
    Root,
}

/// The root of the source.
///
/// # Errors
///
/// There is no such file or directory.
pub(crate) fn source_root(end: &End, meaning: Meaning) -> Result<Source<'_>> {
    let path = end.path();
    let trimmed = path.strip_suffix(b"/").unwrap_or(&path);
    let name = trimmed.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
    let is_contents = path.ends_with(b"/") || matches!(&name[..], b"" | b"." | b"..");
    let is_root = is_contents || meaning == Meaning::Root;
    // As in rsync, a link that is named without a slash is a link.
    let links = if is_root { Links::Followed } else { Links::Kept };
    let kind = match end.found(&path, links)? {
        Found::Nothing => return Err(end.missing(&path, "no such file or directory")),
        Found::Dir => SourceKind::Directory,
        Found::Other => SourceKind::Other,
    };
    if is_root {
        ensure!(kind == SourceKind::Directory, end.missing(&path, "not a directory"));
        return Ok(Source { place: Place { end, root: path }, only: None, kind });
    }
    let dir = path[..path.len() - name.len()].to_vec();
    let root = if dir.is_empty() { b"./".to_vec() } else { dir };
    Ok(Source { place: Place { end, root }, only: Some(name), kind })
}

/// Whether the root of the target was there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Root {
    There,
    Made,
    /// It is not there, and is not made.
    Absent,
}

/// What the target means for a source.
pub(crate) struct Target<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) root: Root,
    /// What the one file is called there, if it has another name.
    pub(crate) new_name: Option<Vec<u8>>,
}

/// Whether a root of the target that is not there is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Making {
    Made,
    /// In a rehearsal.
    Rehearsed,
    /// Only what is there takes part (`--existing`). As in rsync, the root is made all the same if more than one name
    /// comes into it.
    IfMany,
}

/// The root of the target, which is made if the directory above it is there. One file, or a directory in which no name
/// takes part, may get another name. `is_sole` tells whether a source is such a directory.
///
/// # Errors
///
/// It is no directory, or cannot be made.
pub(crate) fn target_root<'a>(
    end: &'a End,
    (source, is_sole): (&Source<'_>, impl Fn() -> bool),
    making: Making,
) -> Result<Target<'a>> {
    let (mut path, mut root, mut new_name) = (end.path(), Root::There, None);
    let at = end.found(&path, Links::Followed)?;
    let is_sole = at == Found::Nothing && !path.ends_with(b"/") && is_sole();
    match (at, &source.only, source.kind) {
        (Found::Dir, ..) => {}
        (_, Some(only), kind) if is_sole || kind == SourceKind::Other && !path.ends_with(b"/") => {
            let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
            let name = path.split_off(at);
            path = if path.is_empty() { b"./".to_vec() } else { path };
            if end.found(&path, Links::Followed)? != Found::Dir {
                let error = end.missing(&path, "no such directory");
                return Err(with_remedy(error, Some(end.make_it(&path))));
            }
            new_name = Some(name).filter(|name| name != only);
        }
        (Found::Nothing, ..) => {
            root = match making {
                Making::Rehearsed => Root::Absent,
                Making::IfMany if is_sole => Root::Absent,
                Making::IfMany | Making::Made => Root::Made,
            };
            if root == Root::Made {
                end.make_dir(&path).map_err(|error| {
                    let remedy = end.make_it(&path);
                    with_remedy(error.context("the target cannot be made"), Some(remedy))
                })?;
            }
        }
        (Found::Other, ..) => return Err(end.missing(&path, "not a directory")),
    }
    Ok(Target { place: Place { end, root: path }, root, new_name })
}
