//! Reading of sources. A change during the reading is detected, and a file with another length than its size is copied
//! completely or not at all.

use super::SMALL;
use super::spot::Spot;
use hikyaku_fs::{CHANGED, FsError, Kind, Meta, attributes, holes};
use hikyaku_job::JUST_MADE;
use hikyaku_transfer::{Attribute, Geometry, Hole, SegmentHash, SegmentIndex};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use std::fs::File;
use std::os::fd::AsFd;

/// An open source, and its metadata at that time.
pub(crate) struct Source {
    file: File,
    before: Meta,
}

/// Why a source is not copied.
#[derive(Debug, thiserror::Error)]
pub enum ReadSource {
    /// The system refused.
    #[error("{}", .0.reason())]
    System(FsError),
    /// Another process writes to it.
    #[error("{CHANGED}")]
    Changed,
    /// A file or directory, or one above it, was replaced by a link.
    #[error("a symbolic link is in the way, and nothing is read through one with -a")]
    Link,
    /// The file was replaced by an entry of another kind.
    #[error("was exchanged for something that is no file")]
    Exchanged,
    /// An empty argument.
    #[error("an empty name is no file")]
    Nameless,
    /// A FIFO, a socket or a device.
    #[error("{0}, which is not copied")]
    Special(&'static str),
    /// The far side's own standard input and output.
    #[error("is not free on this side, it carries the copy itself")]
    Carrier,
    /// A number that is no open descriptor.
    #[error("no such open descriptor")]
    Closed,
    /// A directory without `-r`.
    #[error("is a directory, and -r was not given")]
    Directory,
    /// A link to a directory above it.
    #[error("a link leads back to a directory above it")]
    Circle,
    /// More directories within each other, or a longer path, than can be copied.
    #[error("is too deep, or its path too long, to be copied")]
    TooDeep,
    /// Names longer than any that can be copied, and how many.
    #[error("{0} names in it are longer than any that can be copied")]
    Odd(usize),
    /// Another source has its name.
    #[error("{JUST_MADE}")]
    JustMade,
    /// A file larger than any that can be copied.
    #[error("is larger than any file that can be copied")]
    TooLarge,
    /// More extended attributes than fit into one message.
    #[error("its extended attributes are more than 512 kB")]
    Attributes,
    /// As files of /proc do.
    #[error(
        "gives more bytes than its size says, and too many to be copied in one piece; copy what 'cat' makes of it"
    )]
    More,
    /// The file ends before its size.
    #[error("gives fewer bytes than its size says")]
    Less,
}

impl From<FsError> for ReadSource {
    fn from(error: FsError) -> Self {
        match error {
            FsError::Link { .. } => Self::Link,
            error => Self::System(error),
        }
    }
}

impl ReadSource {
    /// The text behind the path.
    pub fn reason(&self) -> String {
        self.to_string()
    }

    fn read(errno: Errno) -> Self {
        FsError::io("read", b"", &errno.into()).into()
    }
}

/// Bytes of the unit of `st_blocks` (stat(2)).
const BLOCK: u64 = 512;

/// Of all attributes of a file: they must fit into one message with a small file.
const MOST_ATTRIBUTES: usize = 512 << 10;

/// As they are sent.
pub(crate) fn named(file: impl AsFd) -> Result<Vec<Attribute>, ReadSource> {
    let all = attributes(file)?;
    let length: usize = all.iter().map(|(name, value)| name.len() + value.len()).sum();
    if length > MOST_ATTRIBUTES {
        return Err(ReadSource::Attributes);
    }
    Ok(all.into_iter().map(|(name, value)| Attribute { name, value }).collect())
}

impl Source {
    /// Opens a file. If it was replaced by an entry of another kind, that is neither read nor waited for.
    pub(crate) fn open(spot: &Spot) -> Result<Self, ReadSource> {
        let file = spot.open()?;
        let before = Meta::of(&file)?;
        match before.kind {
            Kind::File => Ok(Self { file, before }),
            _ => Err(ReadSource::Exchanged),
        }
    }

    pub(crate) const fn meta(&self) -> &Meta {
        &self.before
    }

    /// Its extended attributes.
    pub(crate) fn attributes(&self) -> Result<Vec<Attribute>, ReadSource> {
        named(&self.file)
    }

    /// Runs of segments that are holes; `None` if the file has no hole of any size.
    pub(crate) fn holes(&self, file: Geometry) -> Option<impl Iterator<Item = Hole>> {
        let is_sparse = self.before.blocks * BLOCK < file.size();
        is_sparse.then(|| holes(&self.file, file.size()).filter_map(move |hole| file.hole(hole)))
    }

    /// Reads a small file to its end, whatever its size: the kernel reports a size of zero for files of /proc, and of a page
    /// for files of /sys.
    pub(crate) fn read_all(&self) -> Result<Vec<u8>, ReadSource> {
        let mut bytes = Vec::new();
        self.part(0, self.before.size as usize + 1, &mut bytes)?;
        if bytes.len() as u64 > self.before.size {
            self.part(0, SMALL as usize + 1, &mut bytes)?;
        }
        match self.is_unchanged() {
            false => Err(ReadSource::Changed),
            true if bytes.len() as u64 > SMALL => Err(ReadSource::More),
            true => Ok(bytes),
        }
    }

    /// Reads one segment into `bytes`, which are empty, and gives its hash.
    pub(crate) fn segment(
        &self,
        file: Geometry,
        index: SegmentIndex,
        bytes: &mut Vec<u8>,
    ) -> Result<SegmentHash, ReadSource> {
        let range = file.range(index).ok_or(ReadSource::Changed)?;
        let length = (range.end - range.start) as usize;
        self.part(range.start, length, bytes)?;
        let hash = SegmentHash::new(file, index, bytes);
        hash.ok_or_else(|| if self.is_unchanged() { ReadSource::Less } else { ReadSource::Changed })
    }

    /// Reads from `at` on into `bytes`, until they are `length` or the file ends. The memory is not cleared before.
    fn part(&self, at: u64, length: usize, bytes: &mut Vec<u8>) -> Result<(), ReadSource> {
        bytes.reserve_exact(length.saturating_sub(bytes.len()));
        while bytes.len() < length {
            let from = at + bytes.len() as u64;
            match pread(&self.file, spare_capacity(bytes), from) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(ReadSource::read(errno)),
            }
        }
        // The capacity may exceed the requested one.
        bytes.truncate(length);
        Ok(())
    }

    /// Whether the file still has the metadata that it had when it was opened.
    fn is_unchanged(&self) -> bool {
        Meta::of(&self.file).is_ok_and(|now| self.before.is_unchanged(&now))
    }

    /// Checks, after reading, that the file has not changed and ends at its size.
    pub(crate) fn check_end(&self) -> Result<(), ReadSource> {
        let mut more = Vec::new();
        self.part(self.before.size, 1, &mut more)?;
        match (self.is_unchanged(), more.is_empty()) {
            (false, _) => Err(ReadSource::Changed),
            (true, false) => Err(ReadSource::More),
            (true, true) => Ok(()),
        }
    }
}
