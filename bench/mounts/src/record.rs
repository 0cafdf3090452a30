//! What was done in which order, for the tests to judge.

use std::collections::BTreeMap;

/// What the file system saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `fsync` calls of files, by inode.
    pub file_syncs: BTreeMap<u64, u64>,
    /// `fsync` calls of directories, by inode.
    pub dir_syncs: BTreeMap<u64, u64>,
    /// Names given by a rename to files of which something was not synced.
    pub named_unsynced: Vec<String>,
    /// Names given by a rename to files that were written to and not closed.
    pub named_unclosed: Vec<String>,
}
