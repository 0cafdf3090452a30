//! The bytes of a draft that are in memory: all of a small file, and of a large one in stream mode those that wait for the
//! bytes before them.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes in memory at most.
pub(crate) const WINDOW_BYTES: u64 = 16 << 20;
/// A file is held as long as it has no more bytes than these: one command stores all of it.
pub(crate) const WHOLE_BYTES_MAX: u64 = 8 << 20;

/// Bytes from an offset on. Those that were not written are zeros.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Offset of the first byte. Those before it were taken.
    base: u64,
    bytes: Vec<u8>,
    /// The written ranges of the file, by start and end. They are disjoint and do not touch.
    written: BTreeMap<u64, u64>,
}

/// A write does not fit: its bytes were taken before, or are too far ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OutOfOrder;

impl Held {
    /// Bytes from this offset on, none of which was written.
    pub(crate) fn from(base: u64) -> Self {
        Self { base, ..Self::default() }
    }

    /// Whether nothing was written or taken.
    pub(crate) fn is_untouched(&self) -> bool {
        self.base == 0 && self.bytes.is_empty()
    }

    /// Offset behind the last byte.
    #[cfg(test)]
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), OutOfOrder> {
        let end = at.checked_add(bytes.len() as u64).ok_or(OutOfOrder)?;
        if at < self.base || end - self.base > WINDOW_BYTES {
            return Err(OutOfOrder);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let (start, stop) = ((at - self.base) as usize, (end - self.base) as usize);
        if self.bytes.len() < stop {
            self.bytes.resize(stop, 0);
        }
        self.bytes[start..stop].copy_from_slice(bytes);
        self.add(at, end);
        Ok(())
    }

    fn add(&mut self, mut start: u64, mut end: u64) {
        let before = self.written.range(..=start).next_back().map(|(&start, &end)| (start, end));
        if let Some((first, last)) = before.filter(|(_, last)| *last >= start) {
            (start, end) = (first, end.max(last));
        }
        while let Some((&next, &last)) =
            self.written.range(start..).next().filter(|(next, _)| **next <= end)
        {
            self.written.remove(&next);
            end = end.max(last);
        }
        self.written.insert(start, end);
    }

    /// The number of bytes that were written without a gap from the first one on.
    pub(crate) fn ready(&self) -> u64 {
        let first = self.written.first_key_value();
        first.filter(|(start, _)| **start == self.base).map_or(0, |(_, end)| end - self.base)
    }

    /// Takes all bytes that were written without a gap from the first one on.
    pub(crate) fn take_ready(&mut self) -> (u64, Vec<u8>) {
        let (at, count) = (self.base, self.ready());
        let behind = self.bytes.split_off(count as usize);
        let taken = std::mem::replace(&mut self.bytes, behind);
        self.base += count;
        if count > 0 {
            self.written.remove(&at);
        }
        (at, taken)
    }

    /// Takes all bytes, with zeros where none were written.
    pub(crate) fn take_all(&mut self) -> (u64, Vec<u8>) {
        let (at, taken) = (self.base, std::mem::take(&mut self.bytes));
        self.base += taken.len() as u64;
        self.written.clear();
        (at, taken)
    }

    /// Takes each range that was written.
    pub(crate) fn take_written(&mut self) -> Vec<(u64, Vec<u8>)> {
        let base = self.base;
        let part = |(start, end): (u64, u64)| {
            (start, self.bytes[(start - base) as usize..(end - base) as usize].to_vec())
        };
        let parts = std::mem::take(&mut self.written).into_iter().map(part).collect();
        self.bytes.clear();
        parts
    }

    /// All bytes, with zeros where none were written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes bytes behind an offset, or adds zeros.
    pub(crate) fn set_end(&mut self, end: u64) -> Result<(), OutOfOrder> {
        let length = end.checked_sub(self.base).filter(|length| *length <= WINDOW_BYTES);
        self.bytes.resize(length.ok_or(OutOfOrder)? as usize, 0);
        let cut = |range: (u64, u64)| Range { start: range.0, end: range.1.min(end) };
        let written = std::mem::take(&mut self.written).into_iter().map(cut);
        self.written = written
            .filter(|range| !range.is_empty())
            .map(|range| (range.start, range.end))
            .collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_in_order_and_gaps_are_zeros() {
        let mut held = Held::default();
        held.write(5, b"fgh").unwrap();
        assert_eq!((held.ready(), held.take_ready()), (0, (0, Vec::new())));
        held.write(0, b"abc").unwrap();
        assert_eq!(held.take_ready(), (0, b"abc".to_vec()));
        assert_eq!(held.write(2, b"x"), Err(OutOfOrder));
        assert_eq!(held.write(3 + WINDOW_BYTES, b"x"), Err(OutOfOrder));
        held.write(3, b"dE").unwrap();
        held.write(4, b"ef").unwrap();
        assert_eq!((held.ready(), held.base, held.end()), (5, 3, 8));
        held.set_end(7).unwrap();
        held.write(9, b"j").unwrap();
        assert_eq!(held.take_all(), (3, b"defg\0\0j".to_vec()));
        assert_eq!((held.base, held.end(), held.ready()), (10, 10, 0));
        held.write(12, b"m").unwrap();
        held.write(10, b"k").unwrap();
        assert_eq!(held.take_written(), [(10, b"k".to_vec()), (12, b"m".to_vec())]);
    }

    #[test]
    fn ranges_that_touch_or_overlap_become_one() {
        let mut held = Held::default();
        for at in [40_u64, 0, 20, 10, 30, 35, 5] {
            held.write(at, &[1; 10]).unwrap();
        }
        assert_eq!((held.ready(), held.end()), (50, 50));
    }
}
