//! The directories above an entry, as far as links that were followed have led to it.

use hikyaku_store::StorePath;
use std::sync::Arc;

/// The directories above one whose path has no links, from the one that a source or a link has led to.
#[derive(Clone)]
pub(crate) struct Above {
    first: StorePath,
    /// The directory of the link, and those above it.
    link: Option<Arc<(StorePath, Self)>>,
}

impl Above {
    /// Those of a source.
    pub(crate) fn of(source: &StorePath) -> Self {
        Self { first: source.clone(), link: None }
    }

    /// Those of the directory `real`, to which a link in `dir` has led.
    #[must_use]
    pub(crate) fn behind_link(self, dir: &StorePath, real: &StorePath) -> Self {
        Self { first: real.clone(), link: Some(Arc::new((dir.clone(), self))) }
    }

    /// Whether `real` is `dir` or a directory above it.
    pub(crate) fn has(&self, dir: &StorePath, real: &StorePath) -> bool {
        (is_within(dir, real) && is_within(real, &self.first))
            || self.link.as_ref().is_some_and(|link| link.1.has(&link.0, real))
    }
}

/// Whether `path` is `dir` or below it.
pub(crate) fn is_within(path: &StorePath, dir: &StorePath) -> bool {
    let mut names = path.names();
    dir.names().all(|name| names.next() == Some(name))
}
