//! Directories that cannot be made at the target. That is told of each of them, and not of what would be in it.

use hikyaku_store::StorePath;
use std::collections::BTreeSet;

/// Paths at the target.
#[derive(Default)]
pub(crate) struct Blocked(BTreeSet<Vec<u8>>);

impl Blocked {
    /// A directory cannot be made.
    pub(crate) fn add(&mut self, dir: &StorePath) {
        self.0.insert(dir.as_bytes().to_vec());
    }

    /// Whether one of them is `path`.
    pub(crate) fn is_one(&self, path: &StorePath) -> bool {
        self.0.contains(path.as_bytes())
    }

    /// Whether one of them is above `path`.
    pub(crate) fn is_above(&self, path: &StorePath) -> bool {
        let path = path.as_bytes();
        let slashes = path.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
        !self.0.is_empty() && slashes.into_iter().any(|(at, _)| self.0.contains(&path[..at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_directory_is_blocked_with_it() {
        let path = |text: &str| StorePath::new(text.as_bytes()).unwrap();
        let mut blocked = Blocked::default();
        assert!(!blocked.is_above(&path("a/b/c")));
        blocked.add(&path("a/b"));
        assert!(blocked.is_above(&path("a/b/c")) && blocked.is_above(&path("a/b/c/d")));
        assert!(blocked.is_one(&path("a/b")) && !blocked.is_above(&path("a/b")));
        assert!(!blocked.is_above(&path("a/bc")) && !blocked.is_above(&path("b/c")));
    }
}
