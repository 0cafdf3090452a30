//! The conformance suite: named test cases for the rules of every store.
//!
//! A crate that implements [`Store`] calls [`failures`] in a test and asserts that the result is
//! empty.

#![allow(clippy::unwrap_used, reason = "a case that cannot go on has failed")]

mod batches;
mod drafts;
mod entries;
mod errors;
mod files;
mod parallel;
mod property;
pub mod read_only;
mod recovery;
mod walks;
mod writes;

use crate::abilities::Writes;
use crate::error::ErrorKind;
use crate::found::{Found, Kind};
use crate::path::StorePath;
use crate::store::{Access, Finish, Make, Naming, Store};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Provides the stores for a test case. Its storage is empty at first.
pub trait Rig {
    /// A store over the rig's storage. Every call returns one over the same storage.
    fn store(&self) -> Box<dyn Store>;

    /// The storage after a power failure; `None` if the rig cannot simulate one.
    fn crash(&self) -> Option<Box<dyn Store>> {
        None
    }

    /// How many sequences of random operations are tried. Default: 40. A rig whose stores log in at a server asks for
    /// fewer.
    fn seeds(&self) -> u64 {
        40
    }

    /// Makes a directory impossible to list. Returns whether the rig can do that.
    fn forbid(&self, _dir: &StorePath) -> Forbidden {
        Forbidden::NotHere
    }
}

/// Whether a rig can make a directory impossible to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forbidden {
    /// Listing the directory fails.
    Done,
    /// The rig has no means, for example because its user may read everything. The case passes.
    NotHere,
}

/// A case of the suite.
struct Case {
    name: &'static str,
    run: fn(&dyn Rig),
}

/// All cases.
const GROUPS: [&[Case]; 10] = [
    entries::CASES,
    files::CASES,
    drafts::CASES,
    errors::CASES,
    recovery::CASES,
    parallel::CASES,
    writes::CASES,
    walks::CASES,
    batches::CASES,
    property::CASES,
];

/// Runs every case with a rig of its own. Returns the names of failed cases with the reason.
pub fn failures<R: Rig>(make: impl Fn() -> R) -> Vec<String> {
    let failed = |case: &Case| {
        let rig = make();
        failure(case.name, || (case.run)(&rig))
    };
    GROUPS.into_iter().flatten().filter_map(failed).collect()
}

/// Runs a case. Returns its name with the reason if it failed.
fn failure(name: &str, run: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    Some(format!("{name}: {}", text.unwrap_or("it panicked")))
}

/// The number of cases.
pub fn count() -> usize {
    GROUPS.iter().map(|group| group.len()).sum()
}

/// A path from a valid text.
fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

/// Creates a file with these bytes.
fn put(store: &dyn Store, at: &str, bytes: &[u8]) -> Found {
    let draft = store.create(&path(at), &Make::default()).unwrap();
    draft.write_at(0, bytes).unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap()
}

/// Whether a draft of the store takes ranges of its first `span` bytes in any order.
fn takes_any_order(store: &dyn Store, span: u64) -> bool {
    match store.abilities().writes {
        Writes::Anywhere | Writes::Runs => true,
        Writes::Window { bytes } => span <= bytes,
        Writes::InOrder | Writes::Never => false,
    }
}

/// All bytes of a file.
fn get(store: &dyn Store, at: &str) -> Vec<u8> {
    let open = store.open(&path(at), Access::Read).unwrap();
    let mut bytes = vec![0; open.found().unwrap().size as usize + 1];
    let length = open.read_at(0, &mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

/// The names and kinds of the entries of a directory, in order, listed in pages of `room` entries.
fn names(store: &dyn Store, dir: &str, room: usize) -> Vec<(String, Kind)> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(&path(dir), after.as_ref(), room).unwrap();
        assert!(page.items.len() <= room, "a page of {} entries, not {room}", page.items.len());
        let named = |item: crate::Item| {
            (String::from_utf8_lossy(item.name.as_bytes()).into_owned(), item.found.kind)
        };
        all.extend(page.items.into_iter().map(named));
        match page.next {
            Some(cursor) => after = Some(cursor),
            None => break,
        }
    }
    all.sort();
    all
}

/// The reason of a failure.
fn why<T>(result: crate::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

/// Pseudo-random bytes, the same for each seed.
fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
}
