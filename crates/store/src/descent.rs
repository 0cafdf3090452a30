//! A walk whose caller decides which directories are entered. Those that wait are listed ahead of their turn, several at once:
//! over a long path each listing costs a round trip.

use std::thread;

/// Directories that wait for their turn, with the listings of those that come next.
pub struct Descent<D, L> {
    /// The last one comes first.
    waiting: Vec<(D, Option<L>)>,
    /// Those that were entered since the last turn.
    entered: Vec<D>,
    at_once: usize,
}

impl<D: Sync, L: Send> Descent<D, L> {
    /// Lists at most `at_once` directories at the same time.
    pub const fn new(at_once: usize) -> Self {
        Self { waiting: Vec::new(), entered: Vec::new(), at_once }
    }

    /// Adds a directory. Its turn is before all that wait, and behind those that were added since the last turn.
    pub fn enter(&mut self, dir: D) {
        self.entered.push(dir);
    }

    /// The directory whose turn it is, and what `list` returned for it.
    pub fn next(&mut self, list: impl Fn(&D) -> L + Sync) -> Option<(D, L)> {
        self.waiting.extend(self.entered.drain(..).rev().map(|dir| (dir, None)));
        if self.waiting.last().is_some_and(|(_, listed)| listed.is_none()) {
            self.list_ahead(&list);
        }
        let (dir, listed) = self.waiting.pop()?;
        let listed = listed.unwrap_or_else(|| list(&dir));
        Some((dir, listed))
    }

    /// Lists the directories that come next. A single one is left to the caller's thread.
    fn list_ahead(&mut self, list: &(impl Fn(&D) -> L + Sync)) {
        let unlisted = self.waiting.iter_mut().rev().filter(|(_, listed)| listed.is_none());
        let due: Vec<_> = unlisted.take(self.at_once).collect();
        if due.len() > 1 {
            thread::scope(|scope| {
                for (dir, listed) in due {
                    let dir: &D = dir;
                    scope.spawn(move || *listed = Some(list(dir)));
                }
            });
        }
    }
}

#[cfg(test)]
mod tests;
