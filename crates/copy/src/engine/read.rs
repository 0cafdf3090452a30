//! Reading a source so that a change meanwhile is found out.

use super::walk::shown;
use hikyaku_fs::{Meta, attributes, holes};
use hikyaku_transfer::{Attribute, Geometry, Hole, SegmentHash, SegmentIndex};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};
use std::fs::File;
use std::io;
use std::path::Path;

/// A source, open, and how it was when it was opened.
pub(crate) struct Source {
    file: File,
    before: Meta,
}

/// Why a source gives no bytes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadSource {
    /// The system refused.
    #[error("cannot read {path}")]
    System {
        path: String,
        #[source]
        source: io::Error,
    },
    /// Somebody writes to it.
    #[error(
        "{path} changed while it was read; run the same command again when nobody writes to it"
    )]
    Changed { path: String },
}

/// What the system counts a file's room in (stat(2)).
const BLOCK: u64 = 512;

/// Of all attributes of a file: they must fit into one message with a small file.
const MOST_ATTRIBUTES: usize = 512 << 10;

/// As they are sent.
pub(crate) fn named(all: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<Attribute> {
    all.into_iter().map(|(name, value)| Attribute { name, value }).collect()
}

/// The chain of causes in one line.
pub(crate) fn describe(error: &ReadSource) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, ReadSource> {
        let fail = |source| ReadSource::System { path: shown(path), source };
        let file = File::open(path).map_err(fail)?;
        let before = Meta::of(&file).map_err(|error| fail(io::Error::other(error)))?;
        Ok(Self { file, before })
    }

    pub(crate) const fn meta(&self) -> &Meta {
        &self.before
    }

    /// Attributes that its user gave it.
    pub(crate) fn attributes(&self, path: &Path) -> Result<Vec<Attribute>, ReadSource> {
        let fail = |source| ReadSource::System { path: shown(path), source };
        let all = attributes(&self.file).map_err(|error| fail(io::Error::other(error)))?;
        let length: usize = all.iter().map(|(name, value)| name.len() + value.len()).sum();
        if length > MOST_ATTRIBUTES {
            return Err(fail(io::Error::other("its extended attributes are more than 512 kB")));
        }
        Ok(named(all))
    }

    /// Runs of segments that nobody has ever written; `None` if there is no hole of any size.
    pub(crate) fn holes(&self, file: Geometry) -> Option<impl Iterator<Item = Hole>> {
        let is_sparse = self.before.blocks * BLOCK < file.size();
        is_sparse.then(|| holes(&self.file, file.size()).filter_map(move |hole| file.hole(hole)))
    }

    /// All of a small file.
    pub(crate) fn read_all(&self, path: &Path) -> Result<Vec<u8>, ReadSource> {
        let mut bytes = Vec::new();
        self.part(0, self.before.size as usize, path, &mut bytes)?;
        if self.is_unchanged() { Ok(bytes) } else { Err(ReadSource::Changed { path: shown(path) }) }
    }

    /// Reads one segment into `bytes`, which are empty, and gives its hash.
    pub(crate) fn segment(
        &self,
        file: Geometry,
        index: SegmentIndex,
        path: &Path,
        bytes: &mut Vec<u8>,
    ) -> Result<SegmentHash, ReadSource> {
        let changed = || ReadSource::Changed { path: shown(path) };
        let range = file.range(index).ok_or_else(changed)?;
        let length = (range.end - range.start) as usize;
        self.part(range.start, length, path, bytes)?;
        SegmentHash::new(file, index, bytes).ok_or_else(changed)
    }

    /// `length` bytes from `at` on, into memory that nobody has cleared before.
    fn part(
        &self,
        at: u64,
        length: usize,
        path: &Path,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadSource> {
        bytes.reserve_exact(length);
        while bytes.len() < length {
            let from = at + bytes.len() as u64;
            match pread(&self.file, spare_capacity(bytes), from) {
                Ok(0) => return Err(ReadSource::Changed { path: shown(path) }),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(ReadSource::System { path: shown(path), source: errno.into() });
                }
            }
        }
        // There may be more room than was asked for.
        bytes.truncate(length);
        Ok(())
    }

    /// Whether it is the file that was opened, as it was then.
    pub(crate) fn is_unchanged(&self) -> bool {
        Meta::of(&self.file).is_ok_and(|now| self.before.is_unchanged(&now))
    }
}
