//! Where a path leads that a user has named: stores follow no symbolic links, so that nothing below a root is reached
//! through a link of another user. This module follows a path that its user has named, name by name.

use crate::error::{ErrorKind, Result as StoreResult, doing};
use crate::found::{Found, Kind};
use crate::path::StorePath;
use crate::store::Store;
use std::collections::VecDeque;

/// Links that are followed for one path, as Linux has it (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// The kind of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A symbolic link with this target.
    Link(Vec<u8>),
    /// Anything else.
    Other,
    /// Nothing.
    Nothing,
}

/// The meaning of a store's root for the links in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    /// That of the file system: absolute links begin there.
    OfAll,
    /// A directory of a file system: the target of absolute links is unknown.
    Somewhere,
}

/// Whether the last name of a path is followed if it is a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// It is.
    Followed,
    /// The link itself is meant.
    Kept,
}

/// Where a path leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Led {
    /// The path without links.
    pub path: StorePath,
    /// The kind of the place.
    pub end: End,
}

/// The entry at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Something.
    There,
    /// Nothing.
    Nothing,
    /// Nothing, and the path names a link.
    Dangling,
    /// Links lead out of the store, or to each other: the path has no end here.
    Away,
}

/// Follows the links on `path`. `look` returns the kind of each of its parts. The parts that it gets have no links before
/// their last name.
///
/// # Errors
///
/// That of `look`.
pub fn lead<E>(
    path: &StorePath,
    (root, last): (Root, Last),
    mut look: impl FnMut(&StorePath) -> Result<Step, E>,
) -> Result<Led, E> {
    let mut rest: VecDeque<Vec<u8>> = path.names().map(<[u8]>::to_vec).collect();
    let (mut done, mut links, mut end) = (Vec::<Vec<u8>>::new(), 0, End::There);
    let away = Led { path: path.clone(), end: End::Away };
    let mut is_link = false;
    while let Some(name) = rest.pop_front() {
        match &name[..] {
            b"." => continue,
            b".." => {
                if done.pop().is_none() && root == Root::Somewhere {
                    return Ok(away);
                }
                continue;
            }
            _ => done.push(name),
        }
        let Ok(at) = StorePath::new(&done.join(&b'/')) else { return Ok(away) };
        // A path below a missing entry is missing.
        let step = if end == End::There { look(&at)? } else { Step::Nothing };
        let text = match step {
            Step::Link(_) if rest.is_empty() && last == Last::Kept && !is_link => continue,
            Step::Link(text) => text,
            Step::Other => continue,
            Step::Nothing => {
                end = if is_link { End::Dangling } else { End::Nothing };
                continue;
            }
        };
        links += 1;
        is_link |= rest.is_empty();
        if links > LINKS_MAX || (text.first() == Some(&b'/') && root == Root::Somewhere) {
            return Ok(away);
        }
        match text.first() {
            Some(b'/') => done.clear(),
            _ => drop(done.pop()),
        }
        let names = text.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
        for name in names.map(<[u8]>::to_vec).rev() {
            rest.push_front(name);
        }
    }
    let Ok(path) = StorePath::new(&done.join(&b'/')) else { return Ok(away) };
    Ok(Led { path, end })
}

/// Follows the links on a path of a store: the default of [`Store::follow`].
///
/// # Errors
///
/// Those of [`Store::follow`].
pub fn follow_by_names(
    store: &(impl Store + ?Sized),
    path: &StorePath,
    root: Root,
) -> StoreResult<(StorePath, Found)> {
    let doing = doing("follow", path);
    let led = lead(path, (root, Last::Followed), |at| match store.look(at) {
        Ok(found) if found.kind == Kind::Link => store.read_link(at).map(Step::Link),
        Ok(_) => Ok(Step::Other),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(Step::Nothing),
        Err(error) => Err(error),
    })?;
    match led.end {
        End::There => store.look(&led.path).map(|found| (led.path, found)),
        End::Nothing | End::Dangling => doing.fail(ErrorKind::NotFound),
        End::Away => doing.fail(ErrorKind::Link),
    }
}

#[cfg(test)]
mod tests;
