//! The journal: what a receiver records in order to resume an interrupted copy.
//!
//! A journal is an append-only file: eight bytes of magic, then records. Each record has a frame of
//! its length (four bytes, little endian), the first eight bytes of its BLAKE3 hash, and the record
//! as `postcard` encodes it. Reading stops at the first record that is incomplete or damaged, so a
//! write torn by a crash loses only the records from there on.
//!
//! A segment is *proven* if its bytes matched the sender's hash and have since been synced, that is
//! if a later [`Record::Synced`] covers its record. A segment that was written after that is only
//! *claimed*. The kernel may have lost it, because the disk or quota was full, the device was
//! unplugged, or the volume was restored from a snapshot. A receiver that resumes the file
//! therefore reads claimed segments back and compares their hashes. The heads of incomplete segments
//! are always read back.

mod earlier;

pub use earlier::{EarlierFile, read_earlier};

use crate::geometry::{Geometry, SegmentIndex};
use crate::head::Head;
use crate::proven::Proven;
use crate::tree::{FileHash, SegmentHash};
use crate::version::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A record of the journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Record {
    /// An attempt at the copy begins.
    Begun(Begun),
    /// A file is begun, or begun again. Earlier records of the same path are void.
    File(FileRecord),
    /// Segments of the file at `path` were written after their hashes had matched.
    Segments {
        /// The file's path, relative to the target.
        path: Vec<u8>,
        /// The first segment.
        first: SegmentIndex,
        /// The hashes of this segment and those that follow it.
        hashes: Vec<SegmentHash>,
    },
    /// All data described by the first `length` bytes of the journal are on the disk.
    Synced {
        /// The length of the journal when the sync began.
        length: u64,
        /// The files being written, each with its modification time at that moment. If a file is
        /// found with an earlier time, its volume was restored from a snapshot and its segments
        /// count as unproven.
        stamps: Vec<(Vec<u8>, (i64, u32))>,
    },
    /// A sync of the file at `path` failed. All earlier records of it are void, because the kernel
    /// may have dropped any of its pages (fsync(2), `EIO`).
    Void {
        /// The file's path, relative to the target.
        path: Vec<u8>,
    },
    /// A file is complete and has its final name.
    Done(Done),
    /// The heads of segments of the file at `path` were written. They replace those of the last such
    /// record of the file.
    Heads {
        /// The file's path, relative to the target.
        path: Vec<u8>,
        /// The heads.
        heads: Vec<Head>,
    },
}

/// The start of an attempt at a copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Begun {
    /// The token in the names of its unfinished files.
    pub token: Vec<u8>,
    /// The absolute path of the target directory, or the address of a target in another storage.
    pub dir: Vec<u8>,
    /// The name of the single source at the target, if it differs from the source's own name.
    pub name: Option<Vec<u8>>,
    /// The sources as the sender describes them, for messages. Untrusted text.
    pub from: String,
}

/// A file that is being written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its path, relative to the target.
    pub path: Vec<u8>,
    /// Its temporary name, in the same directory.
    pub partial: Vec<u8>,
    /// Its size at the source in bytes.
    pub size: u64,
    /// The version of the source. If the source has another version later, the segments are not
    /// reused.
    pub version: Version,
}

/// A complete file under its final name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Done {
    /// Its path, relative to the target.
    pub path: Vec<u8>,
    /// Its size in bytes.
    pub size: u64,
    /// The version of the source.
    pub version: Version,
    /// The version of the file at the target when it got its name. If it has another one later,
    /// somebody has modified it.
    pub made: Version,
    /// Its hash. `None` for a file with holes, whose zeros were not hashed.
    pub hash: Option<FileHash>,
    /// How durable it was at that time.
    pub reached: Reached,
}

/// How durable the data of a complete file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Reached {
    /// They are on the disk.
    Disk,
    /// They are in the kernel's cache, because the user chose `--no-fsync`. A receiver that resumes
    /// the copy reads them back.
    Kernel,
}

/// Why a journal cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JournalError {
    /// It does not begin with this version's magic: another program or another version of hikyaku
    /// wrote it.
    #[error("not a journal of this version of hikyaku")]
    Unknown,
}

/// The state that the records of a journal add up to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Journal {
    /// The most recent attempt.
    pub begun: Option<Begun>,
    /// The files, by path relative to the target.
    pub files: BTreeMap<Vec<u8>, Remains>,
    /// The length in bytes of the intact part. The receiver truncates the journal to this length
    /// before it appends.
    pub whole: usize,
}

/// What an earlier attempt left of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remains {
    /// Some segments, under the temporary name.
    Part(Part),
    /// The complete file, under its final name.
    Whole(Done),
    /// A file whose sync failed. The receiver removes it and begins again.
    Void(FileRecord),
}

/// An unfinished file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The record that began it.
    pub record: FileRecord,
    /// Segments that are on the disk.
    pub proven: Proven,
    /// Segments that were written but not synced. The receiver reads them back.
    pub claimed: Proven,
    /// Heads of segments that have not come whole. The receiver reads them back. A later record may have
    /// completed the segment of one.
    pub heads: Vec<Head>,
    /// Its modification time at the last sync.
    pub stamp: Option<(i64, u32)>,
}

const MAGIC: &[u8; 8] = b"hikyaku2";
const CHECK_BYTES: usize = 8;
/// The longest record in bytes: a path and 2^16 hashes.
const RECORD_BYTES_MAX: usize = 4 << 20;

impl Journal {
    /// The first bytes of a journal.
    pub const fn magic() -> &'static [u8] {
        MAGIC
    }

    /// A record with its frame, as it is appended.
    pub fn frame(record: &Record) -> Vec<u8> {
        framed(record)
    }

    /// Reads a journal. An empty file is an empty journal; damage ends the reading without an
    /// error.
    // fuzz: journal
    pub fn read(bytes: &[u8]) -> Result<Self, JournalError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let records = bytes.strip_prefix(MAGIC).ok_or(JournalError::Unknown)?;
        let (records, length) = parse(records);
        let lengths = records.iter().filter_map(|(_, record)| match record {
            Record::Synced { length, .. } => Some(*length),
            _ => None,
        });
        let synced = lengths.max().unwrap_or(0);
        let mut journal = Self { whole: MAGIC.len() + length, ..Self::default() };
        for (end, record) in records {
            let is_synced = (MAGIC.len() + end) as u64 <= synced;
            journal.apply(record, is_synced);
        }
        Ok(journal)
    }

    fn apply(&mut self, record: Record, is_synced: bool) {
        match record {
            Record::Begun(begun) => self.begun = Some(begun),
            Record::Synced { stamps, .. } => {
                for (path, stamp) in stamps {
                    if let Some(Remains::Part(part)) = self.files.get_mut(&path) {
                        part.stamp = Some(stamp);
                    }
                }
            }
            Record::File(record) => {
                if let Some(geometry) = Geometry::new(record.size) {
                    let (proven, claimed) = (Proven::nothing(geometry), Proven::nothing(geometry));
                    let path = record.path.clone();
                    let (heads, stamp) = (Vec::new(), None);
                    let part = Part { record, proven, claimed, heads, stamp };
                    self.files.insert(path, Remains::Part(part));
                }
            }
            Record::Segments { path, first, hashes } => {
                if let Some(Remains::Part(part)) = self.files.get_mut(&path) {
                    let of = if is_synced { &mut part.proven } else { &mut part.claimed };
                    of.insert_run(first, &hashes);
                }
            }
            Record::Heads { path, heads } => {
                if let Some(Remains::Part(part)) = self.files.get_mut(&path) {
                    part.heads = heads;
                }
            }
            Record::Void { path } => {
                if let Some(Remains::Part(part)) = self.files.get(&path) {
                    let void = Remains::Void(part.record.clone());
                    self.files.insert(path, void);
                }
            }
            // The caller compares `Done::made` with the file to find out whether it was changed
            // since.
            Record::Done(done) => {
                self.files.insert(done.path.clone(), Remains::Whole(done));
            }
        }
    }
}

fn framed(record: &impl Serialize) -> Vec<u8> {
    // Encoding a record cannot fail: postcard fails only for values of unknown length.
    let body = postcard::to_allocvec(record).unwrap_or_default();
    let mut frame = (body.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&blake3::hash(&body).as_bytes()[..CHECK_BYTES]);
    frame.extend_from_slice(&body);
    frame
}

/// Decodes the intact records, each with the offset of its end, and returns them with the offset at
/// which the last one ends.
// fuzz: journal
fn parse<R: DeserializeOwned>(bytes: &[u8]) -> (Vec<(usize, R)>, usize) {
    let (mut records, mut rest) = (Vec::new(), bytes);
    while let Some((record, after)) = parse_one(rest) {
        records.push((bytes.len() - after.len(), record));
        rest = after;
    }
    (records, bytes.len() - rest.len())
}

// fuzz: journal
fn parse_one<R: DeserializeOwned>(bytes: &[u8]) -> Option<(R, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (check, rest) = rest.split_first_chunk::<CHECK_BYTES>()?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > RECORD_BYTES_MAX {
        return None;
    }
    let (body, rest) = rest.split_at_checked(length)?;
    if blake3::hash(body).as_bytes()[..CHECK_BYTES] != check[..] {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, rest))
}

#[cfg(test)]
mod tests;
