//! Where the bytes of a PNG lie that was written without compression.
//!
//! Such a file holds the rows in deflate blocks of kind "stored" (RFC 1951, section 3.2.4), each with a head of five bytes,
//! within the data of IDAT chunks. Encoders make all blocks of one length and all chunks of one length, but the last ones.
//! So the place of every byte is computed from the two lengths.

use std::ops::Range;

/// The places of the bytes of a deflate stream of stored blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    /// The first byte of the first IDAT chunk, which is that of its length.
    pub(crate) first: u64,
    /// Bytes of data of every chunk but the last, not 0.
    pub(crate) chunk: u64,
    /// Bytes of every block but the last, not 0.
    pub(crate) block: u64,
}

/// Bytes of the head of a chunk, and of its checksum.
pub(crate) const CHUNK_HEAD: u64 = 8;
const CHUNK_SUM: u64 = 4;
/// Bytes of the head of the stream (RFC 1950).
pub(crate) const STREAM_HEAD: u64 = 2;
/// Bytes of the head of a stored block.
pub(crate) const BLOCK_HEAD: u64 = 5;

impl Stored {
    /// Appends the places of a range of the uncompressed bytes.
    pub(crate) fn locate(&self, wanted: Range<u64>, ranges: &mut Vec<Range<u64>>) {
        let mut at = wanted.start;
        while at < wanted.end {
            let block = at / self.block;
            let end = wanted.end.min((block + 1) * self.block);
            let from = STREAM_HEAD + BLOCK_HEAD * (block + 1) + at;
            self.locate_compressed(from..from + (end - at), ranges);
            at = end;
        }
    }

    /// Appends the places of a range of the compressed bytes, which are the data of all chunks.
    pub(crate) fn locate_compressed(&self, wanted: Range<u64>, ranges: &mut Vec<Range<u64>>) {
        let mut at = wanted.start;
        while at < wanted.end {
            let chunk = at / self.chunk;
            let end = wanted.end.min((chunk + 1) * self.chunk);
            let from = self.chunk_at(chunk) + CHUNK_HEAD + (at - chunk * self.chunk);
            ranges.push(from..from + (end - at));
            at = end;
        }
    }

    /// The first byte of a chunk.
    pub(crate) fn chunk_at(&self, chunk: u64) -> u64 {
        self.first + chunk * (CHUNK_HEAD + self.chunk + CHUNK_SUM)
    }

    /// Where the head of a block begins among the compressed bytes.
    pub(crate) fn block_at(&self, block: u64) -> u64 {
        STREAM_HEAD + block * (BLOCK_HEAD + self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_behind_the_heads_of_blocks_and_chunks() {
        let stored = Stored { first: 100, chunk: 40, block: 10 };
        let places = |wanted| {
            let mut ranges = Vec::new();
            stored.locate(wanted, &mut ranges);
            ranges
        };
        // 100 length and type of the chunk, 108 head of the stream, 110 head of the block.
        assert_eq!(places(0..3).first(), Some(&(115..118)));
        assert_eq!(places(8..12), [123..125, 130..132]);
        // Bytes 20 to 30 of the rows are bytes 37 to 47 of the compressed data: the chunk ends at 40.
        assert_eq!(places(20..30), [145..148, 160..167]);
    }
}
