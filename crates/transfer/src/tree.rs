//! The BLAKE3 hash of a file, computed from the hashes of its segments.
//!
//! A segment is a complete subtree of the BLAKE3 hash tree (section 2.1 of its paper). So segments
//! can be hashed in any order and on any thread, and the file's hash, equal to that of `b3sum`,
//! follows from theirs without reading the bytes again.

use crate::geometry::{Geometry, SegmentIndex};
use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The hash of one segment: its chaining value in the BLAKE3 tree, or the file's hash if the file
/// has only this segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SegmentHash(pub [u8; 32]);

impl SegmentHash {
    /// Hashes segment `index` of `file`; `None` if `bytes` does not have the segment's length.
    // spec: copy-seg-1
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

/// The BLAKE3 hash of a file; displayed in hexadecimal as by `b3sum`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileHash(pub [u8; 32]);

impl FileHash {
    /// Combines the hashes of all segments in order; `None` if their count is not that of the file.
    pub fn new(file: Geometry, segments: &[SegmentHash]) -> Option<Self> {
        if segments.len() as u64 != file.segments() {
            return None;
        }
        match segments {
            [] => Some(Self(*blake3::hash(b"").as_bytes())),
            [only] => Some(Self(only.0)),
            _ => {
                let (left, right) = segments.split_at(left_leaves(segments.len()));
                let (left, right) = (merged_hash(left), merged_hash(right));
                Some(Self(*merge_subtrees_root(&left, &right, Mode::Hash).as_bytes()))
            }
        }
    }
}

/// BLAKE3 puts the largest power of two that is less than all leaves into the left subtree.
const fn left_leaves(segments: usize) -> usize {
    segments.next_power_of_two() / 2
}

fn merged_hash(segments: &[SegmentHash]) -> [u8; 32] {
    match segments {
        [] => [0; 32],
        [only] => only.0,
        _ => {
            let (left, right) = segments.split_at(left_leaves(segments.len()));
            merge_subtrees_non_root(&merged_hash(left), &merged_hash(right), Mode::Hash)
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
