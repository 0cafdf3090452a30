//! The files of the journal: segments, each with records one after the other.
//!
//! A record has a frame of the length of its head and of the bytes behind it (four bytes each, little endian) and the first
//! eight bytes of the BLAKE3 hash of both, then the head as `postcard` encodes it, then the bytes. Reading stops at the first
//! record that is incomplete or damaged: what a crash has torn was not promised.

use hikyaku_remote::SMALL_BYTES_MAX;
use hikyaku_store::{Identity, Time};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

/// The head of a record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Record {
    /// A file that later records of this segment write to.
    File(Target),
    /// The bytes behind the head are written into the file of this number.
    Write { file: u64, at: u64 },
}

/// A file that is written to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Target {
    /// Its number in this segment.
    pub(crate) file: u64,
    pub(crate) path: Vec<u8>,
    pub(crate) identity: Identity,
    /// The server's size and modification time, if it had confirmed everything before the first write.
    pub(crate) base: Option<(u64, Time)>,
    /// Its size before the first write.
    pub(crate) size: u64,
}

/// A record of a segment and where the bytes behind its head lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Logged {
    pub(crate) record: Record,
    pub(crate) from: u64,
    pub(crate) length: u32,
}

/// The first bytes of every segment.
pub(crate) const MAGIC: &[u8; 8] = b"hkstage1";
const FRAME_BYTES: usize = 16;
/// Paths have at most 4,096 bytes.
const HEAD_BYTES_MAX: u32 = 16 << 10;

/// A record as it stands in the file, and the bytes before those behind its head.
pub(crate) fn frame(record: &Record, bytes: &[u8]) -> (Vec<u8>, u64) {
    // A record has no map and no float, which alone cannot be encoded.
    let head = postcard::to_allocvec(record).unwrap_or_default();
    let mut framed = Vec::with_capacity(FRAME_BYTES + head.len() + bytes.len());
    framed.extend_from_slice(&(head.len() as u32).to_le_bytes());
    framed.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    framed.extend_from_slice(&hash(&head, bytes));
    framed.extend_from_slice(&head);
    framed.extend_from_slice(bytes);
    (framed, (FRAME_BYTES + head.len()) as u64)
}

/// The intact records of a segment.
pub(crate) fn read(file: &File) -> io::Result<Vec<Logged>> {
    let mut input = BufReader::with_capacity(1 << 20, file);
    input.rewind()?;
    let mut magic = [0; MAGIC.len()];
    let mut records = Vec::new();
    if filled(&mut input, &mut magic)?.is_none() || &magic != MAGIC {
        return Ok(records);
    }
    let mut at = MAGIC.len() as u64;
    let mut content = Vec::new();
    loop {
        let mut start = [0; FRAME_BYTES];
        if filled(&mut input, &mut start)?.is_none() {
            return Ok(records);
        }
        let [a, b, c, d, e, f, g, h, sum @ ..] = start;
        let head = u32::from_le_bytes([a, b, c, d]);
        let length = u32::from_le_bytes([e, f, g, h]);
        if head > HEAD_BYTES_MAX || u64::from(length) > SMALL_BYTES_MAX {
            return Ok(records);
        }
        content.resize((head + length) as usize, 0);
        if filled(&mut input, &mut content)?.is_none() {
            return Ok(records);
        }
        let (head_bytes, bytes) = content.split_at(head as usize);
        let Ok(record) = postcard::from_bytes(head_bytes) else { return Ok(records) };
        if hash(head_bytes, bytes) != sum {
            return Ok(records);
        }
        let from = at + FRAME_BYTES as u64 + u64::from(head);
        records.push(Logged { record, from, length });
        at = from + u64::from(length);
    }
}

/// Fills the buffer; `None` if the file ends before.
fn filled(input: &mut impl Read, into: &mut [u8]) -> io::Result<Option<()>> {
    match input.read_exact(into) {
        Ok(()) => Ok(Some(())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

fn hash(head: &[u8], bytes: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(bytes);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}
