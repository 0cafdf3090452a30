//! A file of which some pieces are in memory, for decoders that read and seek.

use crate::error::ImageError;
use crate::ranges::{Ranges, ReadFailed, read_in_any_order};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

/// Pieces of a file, by their first byte. They do not overlap.
pub(crate) type Pieces = BTreeMap<u64, Arc<[u8]>>;

/// Bytes that decoders see in place of those of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Overlay {
    /// The first of them in the file.
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A file of which some pieces are in memory.
pub(crate) struct Sparse<'a> {
    bytes: &'a dyn Ranges,
    overlays: Vec<Overlay>,
    /// Those that a decoder has asked for.
    asked: RefCell<Pieces>,
    /// Those that were read before a decoder asks for them.
    ahead: RefCell<Pieces>,
    /// Bytes that decoders may still ask for.
    budget: Cell<u64>,
    failed: RefCell<Option<ReadFailed>>,
}

/// Reads the file and seeks in it.
pub(crate) struct Reader<'a> {
    file: &'a Sparse<'a>,
    at: u64,
}

/// Bytes that are read at once where a decoder asks for some.
const PIECE_BYTES: u64 = 64 << 10;

impl<'a> Sparse<'a> {
    /// Begins with pieces that are known. Decoders may ask for `budget` bytes more.
    pub(crate) fn new(bytes: &'a dyn Ranges, asked: Pieces, budget: u64) -> Self {
        let (asked, ahead) = (RefCell::new(asked), RefCell::new(Pieces::new()));
        let (overlays, budget) = (Vec::new(), Cell::new(budget));
        Self { bytes, overlays, asked, ahead, budget, failed: RefCell::new(None) }
    }

    /// The file with other bytes at some places, for decoders only.
    pub(crate) fn overlaid(self, overlays: &[Overlay]) -> Self {
        Self { overlays: overlays.to_vec(), ..self }
    }

    /// Bytes that decoders may still ask for.
    pub(crate) fn budget(&self) -> u64 {
        self.budget.get()
    }

    pub(crate) const fn reader(&'a self) -> Reader<'a> {
        Reader { file: self, at: 0 }
    }

    /// Reads ranges that do not overlap, and keeps them until the next ones are read so.
    pub(crate) fn read_ahead(&self, ranges: &[Range<u64>]) -> Result<(), ReadFailed> {
        let mut ahead = self.ahead.borrow_mut();
        ahead.clear();
        let mut all = Vec::new();
        read_in_any_order(self.bytes, ranges, &mut all)?;
        let mut rest = &all[..];
        for range in ranges {
            let (here, behind) = rest.split_at((range.end - range.start) as usize);
            ahead.insert(range.start, here.into());
            rest = behind;
        }
        Ok(())
    }

    /// The piece that was read ahead and begins here.
    pub(crate) fn piece(&self, start: u64) -> Option<Arc<[u8]>> {
        self.ahead.borrow().get(&start).cloned()
    }

    /// The pieces that decoders have read.
    pub(crate) fn into_pieces(self) -> Pieces {
        self.asked.into_inner()
    }

    /// The cause of a decoder's failure: the error of a read, or `other`.
    pub(crate) fn explain(&self, other: ImageError) -> ImageError {
        self.failed.borrow().clone().map_or(other, Into::into)
    }

    /// Copies bytes from `at` on that are in memory; returns how many.
    fn copy(&self, at: u64, into: &mut [u8]) -> usize {
        for pieces in [&self.ahead, &self.asked] {
            let pieces = pieces.borrow();
            let piece = pieces.range(..=at).next_back();
            let here = piece.and_then(|(start, piece)| piece.get((at - start) as usize..));
            if let Some(here) = here.filter(|here| !here.is_empty()) {
                let length = here.len().min(into.len());
                into[..length].copy_from_slice(&here[..length]);
                return length;
            }
        }
        0
    }

    /// Reads the piece that begins at `at`, which is in the file.
    fn ask(&self, at: u64) -> io::Result<()> {
        let mut asked = self.asked.borrow_mut();
        let next = asked.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
        let end = self.bytes.size().min(at + PIECE_BYTES).min(next);
        let rest = self.budget.get().checked_sub(end - at);
        self.budget.set(rest.ok_or(io::ErrorKind::FileTooLarge)?);
        let mut piece = Vec::new();
        if let Err(error) = self.bytes.read(std::slice::from_ref(&(at..end)), &mut piece) {
            *self.failed.borrow_mut() = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        asked.insert(at, piece.into());
        Ok(())
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.at >= self.file.bytes.size() {
            return Ok(0);
        }
        let mut length = self.file.copy(self.at, into);
        if length == 0 {
            self.file.ask(self.at)?;
            length = self.file.copy(self.at, into);
        }
        for overlay in &self.file.overlays {
            overlay.lay(self.at, &mut into[..length]);
        }
        self.at += length as u64;
        Ok(length)
    }
}

impl Overlay {
    /// Puts its bytes into those of the file from `from` on.
    fn lay(&self, from: u64, bytes: &mut [u8]) {
        for (at, byte) in (self.at..).zip(&self.bytes) {
            let place = at.checked_sub(from).and_then(|place| usize::try_from(place).ok());
            if let Some(to) = place.and_then(|place| bytes.get_mut(place)) {
                *to = *byte;
            }
        }
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.bytes.size().checked_add_signed(by),
        };
        self.at = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_the_bytes_of_the_file_within_its_budget() {
        let file: Vec<u8> = (0..300_000u32).map(|at| (at / 7) as u8).collect();
        let sparse = Sparse::new(&file, Pieces::new(), 3 * PIECE_BYTES);
        sparse.read_ahead(&[100..200, 199_000..200_000, 50..60]).unwrap();
        assert_eq!(sparse.piece(100).as_deref(), Some(&file[100..200]));
        let read = |start: u64, length: usize| {
            let (mut reader, mut read) = (sparse.reader(), vec![0; length]);
            reader.seek(SeekFrom::Start(start))?;
            reader.read_exact(&mut read).map(|()| read)
        };
        for (start, length) in [(0, 1000), (150, 100), (70_000, 9), (66_000, 4500), (199_000, 1000)]
        {
            let wanted = &file[start as usize..start as usize + length];
            assert!(read(start, length).unwrap() == wanted, "{start}");
        }
        assert_eq!(read(150_000, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(sparse.into_pieces().len(), 3);
    }
}
