//! What a receiver remembers between two attempts.
//!
//! A journal is a file that only grows. Each record stands in a frame: its length, eight bytes of
//! its BLAKE3 hash, the record. A journal torn at any byte is one that ends there: what was not
//! written whole was not proven.
//!
//! After a power failure the journal may have lasted where the data have not. So records count from
//! where the last [`Record::Synced`] says back, unless the machine has not been started since
//! ([`Record::Begun`] keeps the kernel's name for this boot): killed programs lose nothing that they
//! gave to the kernel.

use crate::geometry::{Geometry, SegmentIndex};
use crate::proven::Proven;
use crate::tree::{FileHash, SegmentHash};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a journal may say.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Record {
    /// An attempt begins; the kernel calls this boot so.
    Begun {
        /// `/proc/sys/kernel/random/boot_id`.
        boot: [u8; 16],
    },
    /// A file is begun, or begun anew: what was said of one of this path before is void.
    File(FileRecord),
    /// Segments of the file at `path` are written and right.
    Segments {
        /// Where it will be, relative to the target.
        path: Vec<u8>,
        /// The first of them.
        first: SegmentIndex,
        /// Theirs and the following ones'.
        hashes: Vec<SegmentHash>,
    },
    /// What is said in the first `length` bytes of the journal has reached the disk.
    Synced {
        /// Where the journal ended before the disk was asked.
        length: u64,
    },
    /// The file at `path` has its name.
    Done {
        /// Where it is, relative to the target.
        path: Vec<u8>,
        /// Its size.
        size: u64,
        /// When the source was last written.
        modified: (i64, u32),
        /// Its hash; none, if zeros of its holes would have had to be hashed for it.
        hash: Option<FileHash>,
    },
}

/// A file under way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileRecord {
    /// Where it will be, relative to the target.
    pub path: Vec<u8>,
    /// Its name until then, in the same directory.
    pub partial: Vec<u8>,
    /// Its size at the source.
    pub size: u64,
    /// When the source was last written: a source with another time is another file.
    pub modified: (i64, u32),
}

/// A journal that cannot be taken up.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JournalError {
    /// Another program's file, or another version's.
    #[error("this is no journal that this version of hikyaku can read")]
    Unknown,
}

/// What is known after reading.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Journal {
    /// What there is of files, by path.
    pub files: BTreeMap<Vec<u8>, Remains>,
    /// How much of the journal is whole; what follows is to be cut off before writing on.
    pub whole: usize,
}

/// What an earlier attempt has left of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remains {
    /// A part, under another name.
    Part(FileRecord, Proven),
    /// All of it, under its name.
    Whole {
        /// Its size.
        size: u64,
        /// When the source was last written.
        modified: (i64, u32),
        /// Its hash, if it is known.
        hash: Option<FileHash>,
    },
}

const MAGIC: &[u8; 8] = b"hikyaku1";
const CHECK: usize = 8;
/// The longest record: a path and 2^16 hashes.
const MAX_RECORD: usize = 4 << 20;

impl Journal {
    /// How a journal begins.
    pub const fn magic() -> &'static [u8] {
        MAGIC
    }

    /// A record as it is appended.
    pub fn frame(record: &Record) -> Vec<u8> {
        // Nothing in a record can fail to be written: it has no maps and no borrowed parts.
        let body = postcard::to_allocvec(record).unwrap_or_default();
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&blake3::hash(&body).as_bytes()[..CHECK]);
        frame.extend_from_slice(&body);
        frame
    }

    /// Reads a journal on a machine whose boot has this name.
    // fuzz: journal
    pub fn read(bytes: &[u8], boot: [u8; 16]) -> Result<Self, JournalError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let records = bytes.strip_prefix(MAGIC).ok_or(JournalError::Unknown)?;
        let (records, length) = parse(records);
        let lengths = records.iter().filter_map(|(_, record)| match record {
            Record::Synced { length } => Some(*length),
            _ => None,
        });
        let synced = lengths.max().unwrap_or(0);
        let mut journal = Self { whole: MAGIC.len() + length, ..Self::default() };
        let mut same_boot = false;
        for (end, record) in records {
            if let Record::Begun { boot: then } = &record {
                same_boot = *then == boot;
            }
            journal.apply(record, (MAGIC.len() + end) as u64 <= synced || same_boot);
        }
        Ok(journal)
    }

    fn apply(&mut self, record: Record, lasted: bool) {
        match record {
            Record::Begun { .. } | Record::Synced { .. } => {}
            Record::File(file) => {
                if let Some(geometry) = Geometry::new(file.size) {
                    let proven = Proven::nothing(geometry);
                    self.files.insert(file.path.clone(), Remains::Part(file, proven));
                }
            }
            Record::Segments { path, first, hashes } => {
                let Some(Remains::Part(_, proven)) = self.files.get_mut(&path).filter(|_| lasted)
                else {
                    return;
                };
                proven.insert_run(first, &hashes);
            }
            Record::Done { path, size, modified, hash } => {
                if lasted {
                    self.files.insert(path, Remains::Whole { size, modified, hash });
                }
            }
        }
    }
}

/// The whole records, each with how many bytes it and those before it take, and all that they take.
// fuzz: journal
fn parse(bytes: &[u8]) -> (Vec<(usize, Record)>, usize) {
    let (mut records, mut rest) = (Vec::new(), bytes);
    while let Some((record, after)) = parse_one(rest) {
        records.push((bytes.len() - after.len(), record));
        rest = after;
    }
    (records, bytes.len() - rest.len())
}

// fuzz: journal
fn parse_one(bytes: &[u8]) -> Option<(Record, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (check, rest) = rest.split_first_chunk::<CHECK>()?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_RECORD {
        return None;
    }
    let (body, rest) = rest.split_at_checked(length)?;
    if blake3::hash(body).as_bytes()[..CHECK] != check[..] {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, rest))
}

#[cfg(test)]
mod tests;
