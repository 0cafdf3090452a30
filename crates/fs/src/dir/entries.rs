//! What stands in a directory.

use super::{Dir, Kind};
use crate::error::FsError;
use crate::path::Name;
use rustix::fs;

/// A name in a directory and, where the file system says so without being asked twice, its kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// The name.
    pub name: Name,
    /// What it is.
    pub kind: Option<Kind>,
}

impl Dir {
    /// All entries, by name: a listing is the same on every run. Fails rather than being
    /// incomplete.
    pub fn entries(&self) -> Result<Vec<Entry>, FsError> {
        let fail = |errno| FsError::new("list", b".", errno);
        let mut entries = Vec::new();
        for entry in fs::Dir::read_from(self).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            // The system's own `.` and `..` are no names.
            if let Ok(name) = Name::new(entry.file_name().to_bytes()) {
                entries.push(Entry { name, kind: Kind::new(entry.file_type()) });
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }
}
