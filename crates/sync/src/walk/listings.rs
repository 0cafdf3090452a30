//! Listings of directories of the target that may be deleted.

use super::{LISTED_AT_ONCE, NoPlan, Sink, Walk};
use crate::plan::join;
use crate::side::{Done, Item, Kind};
use hikyaku_store::Descent;
use std::collections::BTreeMap;

/// Listings of directories that may be deleted, by path.
pub(super) type Listings = BTreeMap<Vec<u8>, Done<Vec<Item>>>;

impl Walk<'_> {
    /// Lists all directories at and below these that rules do not keep, several at a time.
    pub(super) fn listings(
        &self,
        open: Vec<Vec<u8>>,
        sink: &mut Sink<'_>,
    ) -> Result<Listings, NoPlan> {
        let (mut listings, mut dirs) = (Listings::new(), Descent::new(LISTED_AT_ONCE));
        open.into_iter().for_each(|path| dirs.enter(path));
        while let Some((path, listed)) = dirs.next(|path| self.target.list(path)) {
            for item in listed.iter().flatten() {
                let path = join(&path, &item.name);
                sink.hold(&path)?;
                if item.meta.kind == Kind::Dir && !self.is_kept(&path, &item.meta) {
                    dirs.enter(path);
                }
            }
            listings.insert(path, listed);
        }
        Ok(listings)
    }

    /// Lists one directory.
    pub(super) fn listing(&self, dir: &[u8]) -> Listings {
        Listings::from([(dir.to_vec(), self.target.list(dir))])
    }
}
