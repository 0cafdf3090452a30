//! Reading a source so that a change meanwhile is found out, and so that a file whose size is not what
//! reading gives is copied whole or not at all.

use super::SMALL;
use super::claims::JUST_MADE;
use super::spot::Spot;
use hikyaku_fs::{CHANGED, FsError, Kind, Meta, attributes, holes};
use hikyaku_transfer::{Attribute, Geometry, Hole, SegmentHash, SegmentIndex};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use std::fs::File;
use std::os::fd::AsFd;

/// A source, open, and how it was when it was opened.
pub(crate) struct Source {
    file: File,
    before: Meta,
}

/// Why a source is not copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadSource {
    /// The system refused.
    #[error("{}", .0.reason())]
    System(FsError),
    /// Somebody writes to it.
    #[error("{CHANGED}")]
    Changed,
    /// A link is where a file or directory was, or on the way there.
    #[error("a symbolic link is in the way, and nothing is read through one with -a")]
    Link,
    /// Something else is where a file was.
    #[error("was exchanged for something that is no file")]
    Exchanged,
    /// An empty argument.
    #[error("an empty name is no file")]
    Nameless,
    #[error("{0}, which is not copied")]
    Special(&'static str),
    /// The far side's own standard input and output.
    #[error("is not free on this side, it carries the copy itself")]
    Carrier,
    #[error("no such open descriptor")]
    Closed,
    #[error("is a directory, and -r was not given")]
    Directory,
    #[error("a link leads back to a directory above it")]
    Circle,
    #[error("is too deep, or its path too long, to be copied")]
    TooDeep,
    #[error("{0} names in it are longer than any that can be copied")]
    Odd(usize),
    /// Another source has its name.
    #[error("{JUST_MADE}")]
    JustMade,
    #[error("is larger than any file that can be copied")]
    TooLarge,
    #[error("its extended attributes are more than 512 kB")]
    Attributes,
    /// As files of /proc do.
    #[error(
        "gives more bytes than its size says, and too many to be copied in one piece; copy what 'cat' makes of it"
    )]
    More,
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
    /// What is said behind the path.
    pub(crate) fn reason(&self) -> String {
        self.to_string()
    }

    fn read(errno: Errno) -> Self {
        FsError::io("read", b"", &errno.into()).into()
    }
}

/// What the system counts a file's room in (stat(2)).
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
    /// Opens a file. Whatever is there in its place meanwhile is not read, and not waited for.
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

    /// Attributes that its user gave it.
    pub(crate) fn attributes(&self) -> Result<Vec<Attribute>, ReadSource> {
        named(&self.file)
    }

    /// Runs of segments that nobody has ever written; `None` if there is no hole of any size.
    pub(crate) fn holes(&self, file: Geometry) -> Option<impl Iterator<Item = Hole>> {
        let is_sparse = self.before.blocks * BLOCK < file.size();
        is_sparse.then(|| holes(&self.file, file.size()).filter_map(move |hole| file.hole(hole)))
    }

    /// All of a small file: what reading gives, whatever the size says. The kernel tells files of /proc to be
    /// empty and files of /sys to be a page.
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

    /// Reads on until `bytes`, which begin with the byte at `at`, are `length`, or it ends; into memory that
    /// nobody has cleared before.
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
        // There may be more room than was asked for.
        bytes.truncate(length);
        Ok(())
    }

    /// Whether it is the file that was opened, as it was then.
    fn is_unchanged(&self) -> bool {
        Meta::of(&self.file).is_ok_and(|now| self.before.is_unchanged(&now))
    }

    /// All of it has been read: whether it is still what it was, and ends where its size says.
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
