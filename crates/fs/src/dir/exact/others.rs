//! Listings in pages, by counting entries.

use super::{Dir, Names};
use crate::error::FsError;
use crate::path::Name;
use rustix::fs;

impl Dir {
    /// Whether a position in a listing stays valid while entries are removed. It does not: it is their number.
    pub fn has_lasting_positions(&self) -> bool {
        false
    }

    /// The entries behind a position, at most `room` of them, in the file system's order.
    pub fn names_from(&self, position: Option<u64>, room: usize) -> Result<Names, FsError> {
        let fail = |errno| FsError::new("list", b".", errno);
        let mut page = Names::default();
        let begin = position.unwrap_or(0);
        for (number, entry) in (0_u64..).zip(fs::Dir::read_from(self).map_err(fail)?) {
            let entry = entry.map_err(fail)?;
            if number < begin {
                continue;
            }
            let bytes = entry.file_name().to_bytes();
            match Name::new(bytes) {
                Ok(name) => page.names.push(name),
                Err(_) if matches!(bytes, b"." | b"..") => {}
                Err(_) => page.skipped += 1,
            }
            if page.names.len() >= room {
                page.next = Some(number + 1);
                break;
            }
        }
        Ok(page)
    }
}
