//! Causes of failures that were reported: a directory that is not writable is one cause, whatever the number of files in
//! it.

use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Reported causes, by directory.
#[derive(Default)]
pub(crate) struct Said {
    /// By a hash of the directory's path, which may be long. The hash has a random key.
    causes: Mutex<BTreeSet<(u64, Cause)>>,
    key: RandomState,
    remarked: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// A failure of all files of the directory.
    Kind(FailureKind),
    /// The directory itself could not be created.
    Missing,
}

/// Maximum number of remembered causes. Further ones are reported each time.
const MOST: usize = 10_000;

impl Said {
    /// Whether to report the failure of `path`: no failure of its kind was reported for this directory or one above it, or
    /// the kind concerns the file alone.
    pub(crate) fn is_news(&self, path: &[u8], kind: FailureKind) -> bool {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        let (parent, above) = self.above(path);
        let was_told = |dir: u64| {
            causes.contains(&(dir, Cause::Missing))
                || (is_shared(kind) && causes.contains(&(dir, Cause::Kind(kind))))
        };
        if !causes.is_empty() && above.into_iter().any(was_told) {
            return false;
        }
        if is_shared(kind) && causes.len() < MOST {
            causes.insert((parent, Cause::Kind(kind)));
        }
        true
    }

    /// Hashes of the directory of `path`, and of that directory and all above it.
    fn above(&self, path: &[u8]) -> (u64, Vec<u64>) {
        let mut hasher = self.key.build_hasher();
        let mut all = vec![hasher.finish()];
        let mut from = 0;
        for at in (0..path.len()).filter(|&at| path[at] == b'/') {
            hasher.write(&path[from..at]);
            all.push(hasher.finish());
            from = at;
        }
        (all.last().copied().unwrap_or_default(), all)
    }

    /// Notes a directory that could not be created, which was reported. Nothing in it can be created either.
    pub(crate) fn is_missing(&self, dir: &[u8]) {
        let mut causes = self.causes.lock().unwrap_or_else(PoisonError::into_inner);
        let (dir, _) = self.above(&[dir, b"/"].concat());
        if causes.len() < MOST {
            causes.insert((dir, Cause::Missing));
        }
    }

    /// True once.
    pub(crate) fn is_first_remark(&self) -> bool {
        !self.remarked.swap(true, Ordering::AcqRel)
    }
}

/// Whether a failure of this kind concerns all files of a directory.
const fn is_shared(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Denied
            | FailureKind::NotFound
            | FailureKind::ReadOnly
            | FailureKind::Unsupported
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_is_told_once_a_directory() {
        let said = Said::default();
        assert!(said.is_news(b"run7/a", FailureKind::Denied));
        for path in [&b"run7/b"[..], b"run7/deep/c"] {
            assert!(!said.is_news(path, FailureKind::Denied));
            assert!(said.is_news(path, FailureKind::IsDirectory), "it is about the file");
            assert!(said.is_news(path, FailureKind::IsDirectory));
        }
        assert!(said.is_news(b"run8/a", FailureKind::Denied));
        assert!(
            said.is_news(b"a", FailureKind::Denied) && !said.is_news(b"x/y", FailureKind::Denied)
        );
        assert!(said.is_news(b"run9/d", FailureKind::NotDirectory));
        said.is_missing(b"run9/d");
        for kind in [FailureKind::NotDirectory, FailureKind::NotFound] {
            assert!(!said.is_news(b"run9/d/x", kind) && !said.is_news(b"run9/d/e/y", kind));
            assert!(said.is_news(b"run9/e", kind));
        }
        assert!(said.is_first_remark() && !said.is_first_remark());
    }
}
