//! Where the bytes of a picture come from.

use hikyaku_remote::{Class, Client, Give, RemoteError, Seen};
use hikyaku_store::{ErrorKind, Open};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file of which ranges are read. The ranges of a call are in order and do not overlap.
pub trait Ranges: Send + Sync {
    /// The size of the file in bytes.
    fn size(&self) -> u64;

    /// Reads ranges of the file and appends their bytes to `into`, one after the other.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read, or a range leaves the file.
    fn read(&self, ranges: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), ReadFailed>;

    /// Called repeatedly while few bytes are decoded into many.
    ///
    /// # Errors
    ///
    /// The picture is not needed any more: the next read would fail.
    fn check(&self) -> Result<(), ReadFailed> {
        Ok(())
    }
}

/// Why bytes cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadFailed {
    /// An error of the operating system.
    #[error("{}", io::Error::from(*.0))]
    Local(io::ErrorKind),
    /// An error of the store.
    #[error("{0}")]
    Store(ErrorKind),
    /// An error of the server, or the connection has ended.
    #[error(transparent)]
    Far(#[from] RemoteError),
    /// The bytes came damaged.
    #[error("its bytes come damaged")]
    Damaged,
    /// Two parts of a picture lie at the same place.
    #[error("parts of the picture overlap in the file")]
    Overlapping,
    /// The file ends before the bytes that its head promises.
    #[error("the file is shorter than its head says")]
    Short,
}

/// The kernel reads at most as much ahead for one advice (the usual `read_ahead_kb` of a device).
const ADVICE_BYTES: u64 = 128 << 10;
/// Bytes between two ranges that are read ahead as well.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// A file of this machine.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    size: u64,
}

/// A file of a store of this process.
pub struct StoreFile<'a> {
    open: &'a dyn Open,
    size: u64,
}

/// A file behind a daemon.
#[derive(Clone)]
pub struct FarFile {
    /// The connection to the daemon.
    pub client: Client,
    /// The path below the daemon's root.
    pub path: Vec<u8>,
    /// The size and the time of the file as it was found. Another content is refused by the daemon.
    pub seen: Seen,
    /// Whether the daemon answers requests for ranges that are no whole segments.
    pub picking: Picking,
}

/// Whether a daemon answers [`Client::pick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Picking {
    /// It does.
    Offered,
    /// It gives whole segments of one mebibyte only.
    Segments,
}

impl LocalFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// Those of open(2).
    pub fn open(path: &Path) -> Result<Self, ReadFailed> {
        let open = || {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            io::Result::Ok(Self { file, size })
        };
        open().map_err(|error| ReadFailed::Local(error.kind()))
    }
}

impl LocalFile {
    /// Advises the kernel of the parts that will be read: over a network's file system, rows that are requested one after the
    /// other would wait for each other.
    fn advise(&self, ranges: &[Range<u64>]) {
        for range in merged(ranges, GAP_BYTES_MAX) {
            let mut at = range.start;
            while let Some(length) = NonZero::new(ADVICE_BYTES.min(range.end - at)) {
                // Advice that is not taken costs time only.
                let _ = fadvise(&self.file, at, Some(length), Advice::WillNeed);
                at += length.get();
            }
        }
    }
}

/// Ranges with gaps of at most `gap` bytes between them, joined.
pub(crate) fn merged(ranges: &[Range<u64>], gap: u64) -> impl Iterator<Item = Range<u64>> {
    let is_near = move |a: &Range<u64>, b: &Range<u64>| b.start.saturating_sub(a.end) <= gap;
    let near = ranges.chunk_by(is_near);
    near.filter_map(|near| Some(near.first()?.start..near.last()?.end))
}

impl Ranges for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, ranges: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), ReadFailed> {
        let mut at = grow(self.size, ranges, into)?;
        self.advise(ranges);
        for range in ranges {
            let length = (range.end - range.start) as usize;
            let read = self.file.read_exact_at(&mut into[at..at + length], range.start);
            read.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => ReadFailed::Short,
                kind => ReadFailed::Local(kind),
            })?;
            at += length;
        }
        Ok(())
    }
}

impl<'a> StoreFile<'a> {
    /// A file that is open, and its size in bytes.
    pub const fn new(open: &'a dyn Open, size: u64) -> Self {
        Self { open, size }
    }
}

impl Ranges for StoreFile<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, ranges: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), ReadFailed> {
        let mut at = grow(self.size, ranges, into)?;
        for range in ranges {
            let end = at + (range.end - range.start) as usize;
            let read = self.open.read_at(range.start, &mut into[at..end]);
            match read.map_err(|error| ReadFailed::Store(error.kind))? {
                length if length == end - at => at = end,
                _ => return Err(ReadFailed::Short),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ReadFailed> {
        // The owner of the file may end its use at any read, also at an empty one.
        let read = self.open.read_at(0, &mut []);
        read.map(drop).map_err(|error| ReadFailed::Store(error.kind))
    }
}

impl Ranges for FarFile {
    fn size(&self) -> u64 {
        self.seen.size
    }

    fn read(&self, ranges: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), ReadFailed> {
        let start = grow(self.seen.size, ranges, into)?;
        if start == into.len() {
            return Ok(());
        }
        let into = &mut into[start..];
        // Ranges that touch are one range.
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            match joined.last_mut() {
                Some((_, end)) if *end == range.start => *end = range.end,
                _ => joined.push((range.start, range.end)),
            }
        }
        match self.picking {
            Picking::Offered => self.pick(joined, into),
            Picking::Segments => self.segments(&joined, into),
        }
    }
}

impl FarFile {
    fn give(&self, ranges: Vec<(u64, u64)>) -> Give {
        Give { path: self.path.clone(), seen: self.seen, ranges, class: Class::Bulk }
    }

    fn pick(&self, ranges: Vec<(u64, u64)>, into: &mut [u8]) -> Result<(), ReadFailed> {
        let mut at = 0;
        for ranges in ranges.chunks(hikyaku_remote::PICKED_RANGES_MAX) {
            let incoming = self.client.pick(self.give(ranges.to_vec()))?;
            let length = incoming.asked() as usize;
            let here = &mut into[at..at + length];
            let outcome = incoming.receive(
                |_| {},
                |segment| {
                    let from = segment.offset as usize;
                    here[from..from + segment.bytes.len()].copy_from_slice(segment.bytes);
                },
            )?;
            if !outcome.damaged.is_empty() || !outcome.missing.is_empty() {
                return Err(ReadFailed::Damaged);
            }
            at += length;
        }
        Ok(())
    }

    /// Reads whole segments and keeps of each what is wanted.
    fn segments(&self, ranges: &[(u64, u64)], into: &mut [u8]) -> Result<(), ReadFailed> {
        let mut whole: Vec<(u64, u64)> = Vec::new();
        for &(from, to) in ranges {
            let from = from / SEGMENT * SEGMENT;
            let to = to.next_multiple_of(SEGMENT).min(self.seen.size);
            match whole.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => whole.push((from, to)),
            }
        }
        let mut places = Vec::with_capacity(ranges.len());
        let mut at = 0;
        for &(from, to) in ranges {
            places.push((from..to, at));
            at += (to - from) as usize;
        }
        let incoming = self.client.give(self.give(whole))?;
        let outcome = incoming.receive(
            |_| {},
            |segment| {
                let end = segment.offset + segment.bytes.len() as u64;
                let first = places.partition_point(|(range, _)| range.end <= segment.offset);
                for (range, at) in &places[first..] {
                    let (from, to) = (range.start.max(segment.offset), range.end.min(end));
                    if from >= to {
                        break;
                    }
                    let here = at + (from - range.start) as usize;
                    let there = (from - segment.offset) as usize;
                    let length = (to - from) as usize;
                    into[here..here + length]
                        .copy_from_slice(&segment.bytes[there..there + length]);
                }
            },
        )?;
        match outcome.damaged.is_empty() && outcome.missing.is_empty() {
            true => Ok(()),
            false => Err(ReadFailed::Damaged),
        }
    }
}

/// Reads ranges in any order and appends their bytes to `into` in that order. They must not overlap.
pub(crate) fn read_in_any_order(
    bytes: &dyn Ranges,
    ranges: &[Range<u64>],
    into: &mut Vec<u8>,
) -> Result<(), ReadFailed> {
    if ranges.is_sorted_by(|a, b| a.end <= b.start) {
        return bytes.read(ranges, into);
    }
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_unstable_by_key(|&at| ranges[at].start);
    let sorted: Vec<Range<u64>> = order.iter().map(|&at| ranges[at].clone()).collect();
    if !sorted.is_sorted_by(|a, b| a.end <= b.start) {
        return Err(ReadFailed::Overlapping);
    }
    let mut read = Vec::new();
    bytes.read(&sorted, &mut read)?;
    // Where each range begins in `into`.
    let mut places = Vec::with_capacity(ranges.len());
    let mut end = into.len();
    for range in ranges {
        places.push(end);
        end += (range.end - range.start) as usize;
    }
    into.resize(end, 0);
    let mut rest = &read[..];
    for at in order {
        let length = (ranges[at].end - ranges[at].start) as usize;
        let (here, behind) = rest.split_at(length);
        into[places[at]..places[at] + length].copy_from_slice(here);
        rest = behind;
    }
    Ok(())
}

/// Bytes of a segment, the least that [`Client::give`] may ask for.
const SEGMENT: u64 = 1 << 20;

/// Makes room for the ranges at the end of `into`, if all lie in a file of this size; returns where the room begins.
pub(crate) fn grow(
    size: u64,
    ranges: &[Range<u64>],
    into: &mut Vec<u8>,
) -> Result<usize, ReadFailed> {
    let mut total = 0u64;
    for range in ranges {
        if range.start > range.end || range.end > size {
            return Err(ReadFailed::Short);
        }
        total += range.end - range.start;
    }
    let start = into.len();
    into.resize(start + total as usize, 0);
    Ok(start)
}

impl ReadFailed {
    /// Whether the connection to the server is lost, so that another server may have the bytes.
    pub const fn is_of_server(&self) -> bool {
        matches!(self, Self::Far(error) if error.is_of_server())
    }

    /// The kind of the server's failure, for exit codes.
    pub const fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Far(RemoteError::Refused { kind, .. }) => Some(*kind),
            _ => None,
        }
    }
}

/// Bytes in memory are a file as well, for tests and fuzzers.
impl Ranges for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, ranges: &[Range<u64>], into: &mut Vec<u8>) -> Result<(), ReadFailed> {
        let mut at = grow(self.len() as u64, ranges, into)?;
        for range in ranges {
            let bytes = &self[range.start as usize..range.end as usize];
            into[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        }
        Ok(())
    }
}
