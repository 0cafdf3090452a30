//! A target that takes bytes in order only: a FIFO, a terminal, /dev/null.

use hikyaku_transfer::{Geometry, Hole, SegmentIndex};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Segments that came early wait here. The sender reads in order, so these are at most what the
/// transport's window holds.
#[derive(Debug)]
pub(crate) struct InOrder {
    file: Geometry,
    next: u64,
    early: BTreeMap<u64, Piece>,
    /// Segments among them that are no zeros.
    held: usize,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    /// A run of segments of zeros.
    Zeros(u64),
}

/// Segments that wait: more than any window holds, a gigabyte.
const MOST_EARLY: usize = 1024;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

impl InOrder {
    pub(crate) const fn new(file: Geometry) -> Self {
        Self { file, next: 0, early: BTreeMap::new(), held: 0 }
    }

    /// Takes a segment, and writes what follows what was written.
    pub(crate) fn put(
        &mut self,
        target: &mut dyn Write,
        index: SegmentIndex,
        bytes: &[u8],
    ) -> io::Result<()> {
        let at = u64::from(index.0);
        if at == self.next {
            target.write_all(bytes)?;
            self.next += 1;
            return self.go_on(target);
        }
        if at > self.next {
            let piece = Piece::Bytes(bytes.to_vec());
            if !matches!(self.early.insert(at, piece), Some(Piece::Bytes(_))) {
                self.held += 1;
            }
        }
        if self.held > MOST_EARLY {
            return Err(io::Error::other("the sender keeps back what comes first"));
        }
        Ok(())
    }

    /// Takes segments of zeros.
    pub(crate) fn put_hole(&mut self, target: &mut dyn Write, hole: Hole) -> io::Result<()> {
        let piece = Piece::Zeros(u64::from(hole.count));
        if let Some(Piece::Bytes(_)) = self.early.insert(u64::from(hole.first.0), piece) {
            self.held -= 1;
        }
        self.go_on(target)
    }

    fn go_on(&mut self, target: &mut dyn Write) -> io::Result<()> {
        while let Some(piece) = self.early.remove(&self.next) {
            match piece {
                Piece::Bytes(bytes) => {
                    self.held -= 1;
                    target.write_all(&bytes)?;
                    self.next += 1;
                }
                Piece::Zeros(count) => {
                    self.zeros(target, count)?;
                    self.next += count;
                }
            }
        }
        Ok(())
    }

    fn zeros(&self, target: &mut dyn Write, count: u64) -> io::Result<()> {
        for at in self.next..self.next + count {
            let range = u32::try_from(at).ok().and_then(|at| self.file.range(SegmentIndex(at)));
            let mut left = range.map_or(0, |range| (range.end - range.start) as usize);
            while left > 0 {
                let here = left.min(ZEROS.len());
                target.write_all(&ZEROS[..here])?;
                left -= here;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_transfer::SEGMENT;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_leave_in_order_with_zeros_for_holes() {
        let size = 4 * SEGMENT + 9;
        let mut bytes = vec![1; size as usize];
        bytes[SEGMENT as usize..3 * SEGMENT as usize].fill(0);
        bytes[3 * SEGMENT as usize..].fill(3);
        let file = Geometry::new(size).unwrap();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            theirs.read_to_end(&mut read).unwrap();
            read
        });
        let (mut order, mut target) = (InOrder::new(file), File::from(OwnedFd::from(ours)));
        order.put_hole(&mut target, Hole { first: SegmentIndex(1), count: 2 }).unwrap();
        for index in [4, 3, 0, 0] {
            let range = file.range(SegmentIndex(index)).unwrap();
            let part = &bytes[range.start as usize..range.end as usize];
            order.put(&mut target, SegmentIndex(index), part).unwrap();
        }
        drop(target);
        assert!(reader.join().unwrap() == bytes);
    }
}
