//! Recognises a PNG whose rows lie at known places.

use crate::decode::Order;
use crate::error::ImageError;
use crate::geometry::Size;
use crate::pixels::Samples;
use crate::placed::{BLOCK_HEAD, CHUNK_HEAD, STREAM_HEAD, Stored};
use crate::ranges::Ranges;
use crate::rows::{Place, Rows};
use std::ops::Range;

/// The fields of the head of a PNG.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Head {
    pub(crate) size: Size,
    pub(crate) order: Order,
    /// `None` for samples that are not whole bytes, for palettes, and where pixels do not follow each other.
    samples: Option<Samples>,
    /// Bytes of the file before its first IDAT chunk.
    data_at: u64,
}

/// The first bytes of every PNG.
pub(crate) const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";
/// Chunks that may stand before the data.
const CHUNKS_MAX: usize = 256;
/// Heads of blocks and of chunks that are compared with where they should be.
const PROBES: u64 = 16;

impl Head {
    /// Reads the head of a PNG, whose first bytes are `start`.
    // fuzz: pictures
    pub(crate) fn read(bytes: &dyn Ranges, start: &[u8]) -> Result<Self, ImageError> {
        let damaged = ImageError::Damaged("no head of a PNG");
        let header = start.get(8..33).filter(|chunk| chunk[4..8] == *b"IHDR").ok_or(damaged)?;
        let number = |at: usize| be32(&header[at..]);
        let size = Size::new(number(8), number(12))?;
        let (depth, colour, interlace) = (header[16], header[17], header[20]);
        let order = match interlace {
            0 => Order::Rows,
            1 => Order::Interlaced,
            _ => return Err(ImageError::Unsupported("a PNG interlaced in another way")),
        };
        let channels = match colour {
            0 => Some(1),
            4 => Some(2),
            2 => Some(3),
            6 => Some(4),
            _ => None,
        };
        let samples = match depth {
            8 | 16 if order == Order::Rows => {
                channels.and_then(|channels| Samples::new(channels, depth / 8))
            }
            _ => None,
        };
        let mut at = 33;
        for _ in 0..CHUNKS_MAX {
            let chunk = chunk_head(bytes, start, at)?;
            if chunk.1 == *b"IDAT" {
                return Ok(Self { size, order, samples, data_at: at });
            }
            if chunk.1 == *b"tRNS" {
                // A transparent colour has to be compared with each pixel; the decoder does that.
                return Ok(Self { size, order, samples: None, data_at: at });
            }
            at += u64::from(chunk.0) + 12;
        }
        Err(ImageError::Damaged("a PNG without data"))
    }

    /// The places of the rows, if the file was written without compression.
    // fuzz: pictures
    pub(crate) fn rows(
        &self,
        bytes: &dyn Ranges,
        start: &[u8],
    ) -> Result<Option<Rows>, ImageError> {
        let Some(samples) = self.samples else { return Ok(None) };
        let (chunk, _) = chunk_head(bytes, start, self.data_at)?;
        let from = self.data_at + CHUNK_HEAD;
        if u64::from(chunk) < STREAM_HEAD + BLOCK_HEAD {
            return Ok(None);
        }
        let heads = slice(bytes, start, from..from + STREAM_HEAD + BLOCK_HEAD)?;
        let Some(block) = block_length(&heads[STREAM_HEAD as usize..]) else { return Ok(None) };
        let first = self.data_at;
        let stored = Stored { first, chunk: chunk.into(), block: block.into() };
        let row = u64::from(self.size.width) * samples.pixel_bytes() as u64 + 1;
        let total = row * u64::from(self.size.height);
        let rows = Rows { size: self.size, samples, place: Place::Stored(stored) };
        Ok(is_regular(bytes, &stored, total)?.then_some(rows))
    }
}

/// Whether the heads of some blocks and chunks, the last ones among them, are where they should be.
fn is_regular(bytes: &dyn Ranges, stored: &Stored, total: u64) -> Result<bool, ImageError> {
    let blocks = total.div_ceil(stored.block);
    let last_block = total - (blocks - 1) * stored.block;
    let sum = 4;
    // Some encoders end with a block of no bytes.
    for extra in [0, BLOCK_HEAD] {
        let length = STREAM_HEAD + blocks * BLOCK_HEAD + total + extra + sum;
        let chunks = length.div_ceil(stored.chunk);
        let last_chunk = length - (chunks - 1) * stored.chunk;
        if stored.chunk_at(chunks - 1) + CHUNK_HEAD + last_chunk + 4 > bytes.size() {
            return Ok(false);
        }
        let (mut ranges, mut expected) = (Vec::new(), Vec::new());
        for chunk in probes(chunks) {
            let at = stored.chunk_at(chunk);
            let length = if chunk == chunks - 1 { last_chunk } else { stored.chunk };
            ranges.push(at..at + CHUNK_HEAD);
            expected.extend_from_slice(&(length as u32).to_be_bytes());
            expected.extend_from_slice(b"IDAT");
        }
        let mut found = Vec::new();
        bytes.read(&ranges, &mut found)?;
        if found != expected {
            continue;
        }
        ranges.clear();
        let probed: Vec<u64> = probes(blocks).collect();
        for block in &probed {
            let at = stored.block_at(*block);
            stored.locate_compressed(at..at + BLOCK_HEAD, &mut ranges);
        }
        found.clear();
        bytes.read(&ranges, &mut found)?;
        let heads = found.chunks_exact(BLOCK_HEAD as usize).zip(&probed);
        let mut heads = heads;
        let is_right = |(head, &block): (&[u8], &u64)| {
            let length = if block == blocks - 1 { last_block } else { stored.block };
            block_length(head).is_some_and(|found| u64::from(found) == length)
        };
        return Ok(heads.all(is_right));
    }
    Ok(false)
}

/// Some numbers below `count` in order, the first and the last among them.
fn probes(count: u64) -> impl Iterator<Item = u64> {
    let probes = PROBES.min(count);
    let between = move |probe: u64| match probes {
        1 => 0,
        _ => (u128::from(probe) * u128::from(count - 1) / u128::from(probes - 1)) as u64,
    };
    (0..probes).map(between)
}

/// The length and the kind of the chunk that begins at `at`.
fn chunk_head(bytes: &dyn Ranges, start: &[u8], at: u64) -> Result<(u32, [u8; 4]), ImageError> {
    let head = slice(bytes, start, at..at + CHUNK_HEAD)?;
    let length = be32(&head);
    match i32::try_from(length) {
        Ok(_) => Ok((length, [head[4], head[5], head[6], head[7]])),
        Err(_) => Err(ImageError::Damaged("a chunk longer than a PNG may have")),
    }
}

/// The length of a stored block, if this is the head of one.
fn block_length(head: &[u8]) -> Option<u16> {
    let &[kind, a, b, c, d] = head else { return None };
    let length = u16::from_le_bytes([a, b]);
    let is_stored = kind & !1 == 0 && length == !u16::from_le_bytes([c, d]) && length > 0;
    is_stored.then_some(length)
}

/// Bytes of the file, which may be among those that were read already.
fn slice(bytes: &dyn Ranges, start: &[u8], range: Range<u64>) -> Result<Vec<u8>, ImageError> {
    if let Some(here) = start.get(range.start as usize..range.end as usize) {
        return Ok(here.to_vec());
    }
    let mut read = Vec::new();
    bytes.read(std::slice::from_ref(&range), &mut read)?;
    Ok(read)
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
