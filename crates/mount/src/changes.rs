//! The changes of this mount, numbered, so that each call sees the changes that ended before it began.
//!
//! A change has a number. A question carries the number of the last change that the server had made for certain when it
//! was sent ([`Turn`]). An answer about a path is used only if neither that name nor one of the directories above it has
//! been changed since, because the server may have answered from before the change; a listing, only if no entry of its
//! directory has. While a change is under way an answer may be from before or after it, so that no answer about its
//! paths is used.

use hikyaku_store::StorePath;
use std::collections::HashMap;

#[cfg(test)]
mod tests;

/// The number of the last change at some time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Turn(u64);

impl Turn {
    /// The number of the change before.
    pub(crate) const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// The last change of each path.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    last: Turn,
    paths: HashMap<Vec<u8>, Changed>,
    /// Changes of before are not remembered: no answer to a question of before is used.
    floor: Turn,
    /// Paths that were left when they were pruned.
    kept: usize,
}

/// The last changes of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    name: Turn,
    entries: Turn,
    /// Changes of the name that the server has not answered.
    under_way: u32,
}

/// Paths beyond those that were kept at the last time, at which they are pruned.
const PATHS_MAX: usize = 4096;

impl Changes {
    /// The number of the last change.
    pub(crate) const fn turn(&self) -> Turn {
        self.last
    }

    /// A change of this name is sent to the server.
    pub(crate) fn begin(&mut self, path: &StorePath) {
        self.at(path.as_bytes()).under_way += 1;
    }

    /// The server has answered the change.
    pub(crate) fn end(&mut self, path: &StorePath) {
        let at = self.at(path.as_bytes());
        at.under_way = at.under_way.saturating_sub(1);
    }

    /// The name was made, removed, or given to something else.
    pub(crate) fn name(&mut self, path: &StorePath) {
        self.last.0 += 1;
        let last = self.last;
        self.at(path.as_bytes()).name = last;
        if let Some((dir, _)) = path.split() {
            self.at(dir.as_bytes()).entries = last;
        }
    }

    /// An entry of this directory has changed.
    pub(crate) fn entries(&mut self, dir: &StorePath) {
        self.last.0 += 1;
        let last = self.last;
        self.at(dir.as_bytes()).entries = last;
    }

    /// Whether an answer about a path holds, to a question that was sent then.
    pub(crate) fn serves(&self, path: &StorePath, sent: Turn) -> bool {
        let holds = |at: &Changed| at.under_way == 0 && at.name <= sent;
        sent >= self.floor && self.upwards(path.as_bytes()).all(holds)
    }

    /// Whether a listing of a directory holds, which was asked for then. So do the times of the directory.
    pub(crate) fn serves_entries(&self, dir: &StorePath, sent: Turn) -> bool {
        let holds = |at: &Changed| at.entries <= sent;
        self.serves(dir, sent) && self.paths.get(dir.as_bytes()).is_none_or(holds)
    }

    /// Whether a change of the name of this path, or of a directory above it, is under way.
    pub(crate) fn is_under_way(&self, path: &StorePath) -> bool {
        self.upwards(path.as_bytes()).any(|at| at.under_way > 0)
    }

    /// Whether the number of remembered changes requires pruning.
    pub(crate) fn is_full(&self) -> bool {
        self.paths.len() > self.kept + PATHS_MAX
    }

    /// Forgets the changes that are older than the oldest question that may be answered yet.
    pub(crate) fn prune(&mut self, oldest: Turn) {
        self.paths.retain(|_, at| at.under_way > 0 || at.name.max(at.entries) > oldest);
        self.floor = self.floor.max(oldest);
        self.kept = self.paths.len();
    }

    fn at(&mut self, path: &[u8]) -> &mut Changed {
        self.paths.entry(path.to_vec()).or_default()
    }

    /// The remembered changes of a path and of the directories above it.
    fn upwards<'a>(&'a self, path: &'a [u8]) -> impl Iterator<Item = &'a Changed> {
        let is_known = !self.paths.is_empty();
        let up = |path: &&'a [u8]| {
            let end = path.iter().rposition(|&byte| byte == b'/')?;
            path.get(..end)
        };
        let paths = std::iter::successors(is_known.then_some(path), up);
        paths.filter_map(|path| self.paths.get(path))
    }
}
