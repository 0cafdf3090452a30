//! The directories above one that is listed. A link that leads back to one of them has no end, and is not followed.

use super::fault::Trouble;
use hikyaku_job::End;
use hikyaku_pair::ReadSource;
use hikyaku_transfer::FailureKind;
use std::sync::Arc;

/// Directories within each other: a server may tell of more than there are.
const DEPTH_MAX: usize = 2000;

/// Directories within each other, by what tells one from another.
pub(super) struct Above<T>(Option<Arc<Level<T>>>);

struct Level<T> {
    known: T,
    depth: usize,
    up: Above<T>,
}

impl<T> Clone for Above<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: PartialEq> Above<T> {
    /// None.
    pub(super) const NONE: Self = Self(None);

    /// These, and one more in the innermost of them, which is called `path`. It is a failure if it is one of them.
    pub(super) fn with(&self, known: T, (end, path): (End, &[u8])) -> Result<Self, Trouble> {
        let depth = self.0.as_ref().map_or(0, |level| level.depth) + 1;
        let refused = |kind, why: ReadSource| Err(Trouble::of(end, path, kind, &why.reason()));
        if self.levels().any(|level| level.known == known) {
            return refused(FailureKind::Link, ReadSource::Circle);
        }
        if depth > DEPTH_MAX {
            return refused(FailureKind::BadName, ReadSource::TooDeep);
        }
        Ok(Self(Some(Arc::new(Level { known, depth, up: self.clone() }))))
    }

    fn levels(&self) -> impl Iterator<Item = &Level<T>> {
        std::iter::successors(self.0.as_deref(), |level| level.up.0.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_not_entered_below_itself() {
        let place = (End::Here, &b"run7"[..]);
        let above = Above::NONE.with(1, place).unwrap().with(2, place).unwrap();
        for again in [1, 2] {
            let refused = above.with(again, place).err();
            assert!(
                matches!(refused, Some(Trouble::File(_, failure)) if failure.kind == FailureKind::Link)
            );
        }
        // Beside it, it is.
        assert!(above.with(3, place).is_ok() && above.with(4, place).is_ok());
        let deep =
            (3..=DEPTH_MAX).try_fold(above, |above, number| above.with(number, place)).unwrap();
        assert!(deep.with(0, place).is_err());
    }
}
