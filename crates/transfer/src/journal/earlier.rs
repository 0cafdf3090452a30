//! Reads journals of protocol version 2, which earlier releases wrote, in order to list their
//! unfinished files. Such copies cannot be resumed. These journals record paths relative to the
//! target, but not the target.

use super::{JournalError, parse};
use crate::geometry::{Geometry, SegmentIndex};
use crate::proven::Proven;
use crate::tree::{FileHash, SegmentHash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const MAGIC: &[u8; 8] = b"hikyaku1";

/// A record of such a journal. The order of the variants is their encoding.
#[derive(Serialize, Deserialize)]
enum Record {
    /// The kernel's boot id.
    Begun([u8; 16]),
    File {
        path: Vec<u8>,
        partial: Vec<u8>,
        size: u64,
        modified: (i64, u32),
    },
    Segments {
        path: Vec<u8>,
        first: SegmentIndex,
        hashes: Vec<SegmentHash>,
    },
    /// The length of the journal whose data are on the disk.
    Synced(u64),
    Done {
        path: Vec<u8>,
        size: u64,
        modified: (i64, u32),
        hash: Option<FileHash>,
    },
}

/// An unfinished file of such a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlierFile {
    /// Its temporary name, in the directory of its path.
    pub partial: Vec<u8>,
    /// Its size at the source in bytes.
    pub size: u64,
    /// The bytes of it that were written.
    pub written: u64,
}

/// The unfinished files of a journal of protocol version 2, by path relative to its target. Fails
/// for other journals.
// fuzz: journal
pub fn read_earlier(bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, EarlierFile>, JournalError> {
    let records = bytes.strip_prefix(MAGIC).ok_or(JournalError::Unknown)?;
    let mut files = BTreeMap::new();
    for (_, record) in parse::<Record>(records).0 {
        match record {
            Record::Begun(_) | Record::Synced(_) => {}
            Record::File { path, partial, size, .. } => {
                if let Some(geometry) = Geometry::new(size) {
                    files.insert(path, (partial, Proven::nothing(geometry)));
                }
            }
            Record::Segments { path, first, hashes } => {
                if let Some((_, written)) = files.get_mut(&path) {
                    written.insert_run(first, &hashes);
                }
            }
            Record::Done { path, .. } => {
                files.remove(&path);
            }
        }
    }
    let file = |(partial, written): (Vec<u8>, Proven)| EarlierFile {
        partial,
        size: written.file().size(),
        written: written.bytes(),
    };
    Ok(files.into_iter().map(|(path, found)| (path, file(found))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::SEGMENT;
    use crate::journal::framed;

    #[test]
    fn unfinished_files_of_protocol_2_are_known_as_far_as_the_journal_is_whole() {
        let file = |path: &[u8]| Record::File {
            path: path.to_vec(),
            partial: [b".", path, b".x.hikyaku"].concat(),
            size: 3 * SEGMENT - 1,
            modified: (7, 7),
        };
        let hashes = vec![SegmentHash([1; 32]); 2];
        let records = [
            Record::Begun([3; 16]),
            file(b"a"),
            file(b"b"),
            Record::Segments { path: b"a".to_vec(), first: SegmentIndex(1), hashes },
            Record::Synced(400),
            Record::Done { path: b"b".to_vec(), size: 5, modified: (7, 7), hash: None },
        ];
        let frames: Vec<Vec<u8>> = records.iter().map(framed).collect();
        let bytes = [MAGIC, frames.concat().as_slice()].concat();
        let files = read_earlier(&bytes).unwrap();
        let a = EarlierFile {
            partial: b".a.x.hikyaku".to_vec(),
            size: 3 * SEGMENT - 1,
            written: 2 * SEGMENT - 1,
        };
        assert_eq!(files, BTreeMap::from([(b"a".to_vec(), a)]));
        assert_eq!(read_earlier(&bytes[..bytes.len() - 1]).unwrap().len(), 2, "b was not done");
        assert_eq!(read_earlier(b"hikyaku2"), Err(JournalError::Unknown));
    }
}
