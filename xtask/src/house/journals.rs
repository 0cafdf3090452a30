//! Journals: files that record what an interrupted copy has done, for a later run to read.
//!
//! One is a file of the code that writes to a file of the user's state folder, or beside a target, reads it back, and removes
//! it. It is in the crate of an engine or in one that an engine uses: other crates keep lists and notes in the same folders.

use super::Place;
use super::code::Code;
use std::collections::{BTreeMap, BTreeSet};

const WRITES: &[&str] = &[".write_all(", ".append(true)"];
const READS: &[&str] = &["read_to_string(", "read_to_end(", "read_exact(", "fs::read("];
/// A journal is removed when its copy is complete.
const REMOVES: &[&str] = &["remove_file("];
/// The state folder, and a place beside a target.
const PLACES: &[&str] = &["Folder::State", "FilePlace"];

/// Every file of the code with a journal. `engines` are the names of the crates with an engine, `uses` the crates that each
/// crate depends on.
pub(super) fn journals(
    all: &[Code<'_>],
    engines: &BTreeSet<&str>,
    uses: &BTreeMap<&str, Vec<&str>>,
) -> Vec<Place> {
    let mut near: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = engines.iter().copied().collect();
    while let Some(name) = open.pop() {
        if near.insert(name) {
            open.extend(uses.get(name).into_iter().flatten());
        }
    }
    let is_journal = |code: &&Code<'_>| {
        near.contains(code.crate_name)
            && [WRITES, READS, REMOVES, PLACES].iter().all(|any| code.has_any(any))
    };
    all.iter().filter(is_journal).map(|code| Place::file(code.path)).collect()
}
