//! Symbolic links that are made in a store: what becomes of one whose name is taken.

use crate::choice::{InTheWay, Link, LinkAction, action_of_link};
use hikyaku_store::{Ability, Change, ErrorKind, Kind, Result, Store, StoreError, StorePath};
use hikyaku_transfer::Existing;

/// Which modification time a new link gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkTimes {
    /// That of the source.
    Kept,
    /// The present one.
    New,
}

/// Why a link is not there.
#[derive(Debug)]
pub(crate) enum NoLink {
    /// The store cannot make it.
    Store(StoreError),
    /// What has its name is not replaced by a link.
    InTheWay(InTheWay),
}

impl From<StoreError> for NoLink {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What becomes of a link; `None` if nothing has its name.
pub(crate) fn decide(
    store: &dyn Store,
    path: &StorePath,
    link: &Link,
    existing: Existing,
) -> Result<Option<(LinkAction, Kind)>> {
    let found = match store.look(path) {
        Ok(found) => found,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // A link that cannot be read is another one.
    let text = (found.kind == Kind::Link).then(|| store.read_link(path).ok()).flatten();
    Ok(Some((action_of_link(link, (&found, text.as_deref()), existing), found.kind)))
}

/// Makes a link, in the place of a file or of another link if one has its name.
pub(crate) fn make(
    store: &dyn Store,
    path: &StorePath,
    link: &Link,
    (existing, times): (Existing, LinkTimes),
) -> std::result::Result<(), NoLink> {
    match store.make_link(path, &link.text) {
        Err(error) if error.kind == ErrorKind::Exists => {}
        made => return Ok(made.and_then(|()| dress(store, path, link, times))?),
    }
    match decide(store, path, link, existing)? {
        Some((LinkAction::Stay, _)) => return Ok(()),
        Some((LinkAction::Refuse(way), _)) => return Err(NoLink::InTheWay(way)),
        Some((LinkAction::Make, kind)) => store.remove(path, kind)?,
        None => {}
    }
    store.make_link(path, &link.text)?;
    Ok(dress(store, path, link, times)?)
}

/// Gives a new link its time. A store that has no times of links gives it the present one.
fn dress(store: &dyn Store, path: &StorePath, link: &Link, times: LinkTimes) -> Result<()> {
    if times == LinkTimes::New {
        return Ok(());
    }
    let change = Change { modified: Some(link.modified), ..Change::default() };
    match store.change(path, &change) {
        Err(error) if error.kind == ErrorKind::Unsupported(Ability::Times) => Ok(()),
        changed => changed,
    }
}
