//! A file's BLAKE3 hash, put together from its segments.
//!
//! A segment is a whole subtree of BLAKE3's tree (section 2.1 of its paper), so that segments can be
//! hashed in any order and on any thread, and the file's own hash, the one that `b3sum` prints,
//! follows from theirs without the bytes.

use crate::geometry::{Geometry, SegmentIndex};
use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The hash of one segment: of a file of one segment the file's own hash, otherwise its chaining
/// value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentHash(pub [u8; 32]);

impl SegmentHash {
    /// Hashes segment `index` of `file`; `None` if `bytes` are not as many as it has.
    pub fn new(file: Geometry, index: SegmentIndex, bytes: &[u8]) -> Option<Self> {
        let range = file.range(index)?;
        if range.end - range.start != bytes.len() as u64 {
            return None;
        }
        if file.segments() == 1 {
            return Some(Self(*blake3::hash(bytes).as_bytes()));
        }
        let mut hasher = Hasher::new();
        hasher.set_input_offset(range.start);
        hasher.update(bytes);
        Some(Self(hasher.finalize_non_root()))
    }
}

/// A file's hash, as `b3sum` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileHash(pub [u8; 32]);

impl FileHash {
    /// From the hashes of all segments; `None` if they are not as many as the file has.
    pub fn new(file: Geometry, segments: &[SegmentHash]) -> Option<Self> {
        if segments.len() as u64 != file.segments() {
            return None;
        }
        match segments {
            [] => Some(Self(*blake3::hash(b"").as_bytes())),
            [only] => Some(Self(only.0)),
            _ => {
                let (left, right) = segments.split_at(left_of(segments.len()));
                let (left, right) = (merged(left), merged(right));
                Some(Self(*merge_subtrees_root(&left, &right, Mode::Hash).as_bytes()))
            }
        }
    }
}

/// The left part of a tree holds as many leaves as a power of two can, but not all of them.
const fn left_of(segments: usize) -> usize {
    segments.next_power_of_two() / 2
}

fn merged(segments: &[SegmentHash]) -> [u8; 32] {
    match segments {
        [] => [0; 32],
        [only] => only.0,
        _ => {
            let (left, right) = segments.split_at(left_of(segments.len()));
            merge_subtrees_non_root(&merged(left), &merged(right), Mode::Hash)
        }
    }
}

impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests;
