//! Files and segments that the receiver reported before the first byte was sent. A million files take little memory, and
//! no report takes more than a budget.

use crate::landing::renamed;
use hikyaku_transfer::{FileHash, Kept, SegmentHash, SegmentIndex, Version};
use std::collections::HashMap;

/// The receiver's reports before the first byte was sent.
#[derive(Default)]
pub(super) struct Before {
    whole: HashMap<Key, Option<FileHash>>,
    parts: HashMap<Key, Vec<Run>>,
    /// Lower bound of the memory of all reports, in bytes.
    held: usize,
    /// The name of a single source at the destination, if it differs.
    renamed: Option<Vec<u8>>,
}

/// Segments that follow each other: the first of them, and their hashes.
pub(super) type Run = (SegmentIndex, Vec<SegmentHash>);

/// Half of a hash of a path at the destination and the version of its source. No attacker finds two equal ones.
type Key = [u8; 16];

/// The parts of a file that exist at the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum There<'a> {
    /// The whole file, with its hash if it is known.
    Whole(Option<FileHash>),
    /// Proven segments.
    Part(&'a [Run]),
}

/// Maximum memory of reports. Files of further reports are sent whole. It is enough for a million complete files, or for
/// three terabytes of an incomplete one.
const MOST_HELD: usize = 128 << 20;
/// Bytes of an entry, including the free room of a hash table.
const ENTRY: usize = 112;
/// Bytes of a run without its hashes.
const RUN: usize = 48;

impl Before {
    /// Adds a report. A file may have several.
    pub(super) fn add(&mut self, path: &[u8], version: Version, kept: Kept) {
        let key = key(path, version);
        let size = match &kept {
            Kept::Whole(_) => 0,
            Kept::Segments(runs) => runs.iter().map(|(_, hashes)| RUN + 32 * hashes.len()).sum(),
        };
        if self.held + size + ENTRY > MOST_HELD {
            return;
        }
        self.held += size + ENTRY;
        match kept {
            Kept::Whole(hash) => drop(self.whole.insert(key, hash)),
            Kept::Segments(runs) => self.parts.entry(key).or_default().extend(runs),
        }
    }

    /// Sets the name of a single source at the destination.
    pub(super) fn rename(&mut self, renamed: Option<Vec<u8>>) {
        self.renamed = renamed;
    }

    /// The path at the destination of `path` at the source.
    pub(super) fn at_target(&self, path: &[u8]) -> Vec<u8> {
        match &self.renamed {
            Some(name) => renamed(path, name),
            None => path.to_vec(),
        }
    }

    /// The parts at the destination of the file `path`, if its version is the reported one.
    pub(super) fn kept(&self, path: &[u8], version: Version) -> Option<There<'_>> {
        let key = key(&self.at_target(path), version);
        let whole = self.whole.get(&key).map(|hash| There::Whole(*hash));
        whole.or_else(|| self.parts.get(&key).map(|runs| There::Part(runs)))
    }
}

fn key(path: &[u8], version: Version) -> Key {
    let mut hasher = blake3::Hasher::new();
    // The version has a fixed length, so that no path can take its place.
    hasher.update(&version.0).update(path);
    let mut key = Key::default();
    hasher.finalize_xof().fill(&mut key);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: Version = Version([1; 32]);

    #[test]
    fn what_was_said_is_found_by_name_and_version() {
        let mut before = Before::default();
        let (hash, run) = (FileHash([2; 32]), |at| (SegmentIndex(at), vec![SegmentHash([3; 32])]));
        before.add(b"new/a", VERSION, Kept::Whole(Some(hash)));
        before.add(b"new/b", VERSION, Kept::Segments(vec![run(0)]));
        before.add(b"new/b", VERSION, Kept::Segments(vec![run(7)]));
        before.rename(Some(b"new".to_vec()));
        assert_eq!(before.kept(b"old/a", VERSION), Some(There::Whole(Some(hash))));
        assert_eq!(before.kept(b"old/b", VERSION), Some(There::Part(&[run(0), run(7)])));
        assert_eq!(before.kept(b"old/a", Version([9; 32])), None);
        assert_eq!(before.kept(b"old/c", VERSION), None);
    }

    #[test]
    fn a_million_files_are_remembered_and_what_a_liar_says_beyond_is_not() {
        let mut before = Before::default();
        let path = |n: u32| format!("run7/a directory of some length/file {n}").into_bytes();
        for n in 0..1_000_000 {
            before.add(&path(n), VERSION, Kept::Whole(None));
        }
        assert!(before.kept(&path(999_999), VERSION).is_some());
        // Long names cost what short ones do, and hashes are counted.
        let long = vec![b'x'; 4096];
        for n in 0..100 {
            let runs = (0..64).map(|at| (SegmentIndex(at), vec![SegmentHash([0; 32]); 1000]));
            before.add(&[&long[..], &path(n)].concat(), VERSION, Kept::Segments(runs.collect()));
        }
        let runs = before.parts.values().flatten();
        let hashes: usize = runs.map(|(_, hashes)| 32 * hashes.capacity()).sum();
        let tables = 17 * before.parts.capacity() + 49 * before.whole.capacity();
        assert!(hashes + tables <= MOST_HELD, "{hashes} + {tables}");
        assert!(before.parts.len() < 20 && before.held <= MOST_HELD);
        for n in 0..1_000_000 {
            before.add(&path(n), Version([7; 32]), Kept::Whole(None));
        }
        assert!(before.whole.len() < 1_200_000);
    }
}
