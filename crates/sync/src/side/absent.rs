//! A target that does not exist.

use super::{Done, Item, Kind, Meta, Setting, Side, What, Why};
use blake3::Hash;

/// A target that does not exist, in a rehearsal. It has no entries, and every operation on it fails.
pub(crate) struct Absent;

fn absent<T>() -> Done<T> {
    Err(Why { text: "the target does not exist".to_owned(), what: What::Absent })
}

impl Side for Absent {
    fn look(&self, _: &[u8]) -> Done<Meta> {
        absent()
    }

    fn entry(&self, _: &[u8]) -> Done<Item> {
        absent()
    }

    fn list(&self, _: &[u8]) -> Done<Vec<Item>> {
        absent()
    }

    fn hash(&self, _: &[u8]) -> Done<Hash> {
        absent()
    }

    fn make_dir(&self, _: &[u8], _: u32) -> Done {
        absent()
    }

    fn make_link(&self, _: &[u8], _: &[u8]) -> Done {
        absent()
    }

    fn remove(&self, _: &[u8], _: Kind) -> Done {
        absent()
    }

    fn rename(&self, _: &[u8], _: &[u8]) -> Done {
        absent()
    }

    fn set(&self, _: &[u8], _: Kind, _: Setting) -> Done {
        absent()
    }
}
