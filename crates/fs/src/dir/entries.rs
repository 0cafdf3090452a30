//! The entries of a directory.

use super::{Dir, Kind};
use crate::error::FsError;
use crate::path::Name;
use rustix::fs;

/// An entry: its name, and its kind if the file system reports one in the listing (`d_type`,
/// readdir(3)).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// Its kind; `None` where the file system does not report it.
    pub kind: Option<Kind>,
}

impl Dir {
    /// Lists all entries, sorted by name, so that every run sees the same order. Any read error
    /// fails the whole listing: an incomplete list is never returned.
    pub fn entries(&self) -> Result<Vec<Entry>, FsError> {
        self.first_entries(usize::MAX)
    }

    /// Lists at most the first `most` entries in the file system's order, sorted by name.
    pub fn first_entries(&self, most: usize) -> Result<Vec<Entry>, FsError> {
        let fail = |errno| FsError::new("list", b".", errno);
        let mut entries = Vec::new();
        for entry in fs::Dir::read_from(self).map_err(fail)?.take(most) {
            let entry = entry.map_err(fail)?;
            // Skips `.` and `..`, which `Name` refuses.
            if let Ok(name) = Name::new(entry.file_name().to_bytes()) {
                entries.push(Entry { name, kind: Kind::new(entry.file_type()) });
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }
}
