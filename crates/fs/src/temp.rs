//! A file that is being written: mostly a new one that gets its name when it is whole.

use crate::dir::{Dir, Replace};
use crate::error::FsError;
use crate::path::Name;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::os::fd::AsFd;

/// How the names of unfinished files end.
pub const PARTIAL_SUFFIX: &str = ".hikyaku";

/// A file that is being written. What is dropped before [`NewFile::commit`] stays, to be taken up
/// again.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    partial: Name,
    manner: Manner,
}

/// How it comes to its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// It is new, under a name that nobody can guess, beside the one that it will have.
    Renamed,
    /// It has it: it is the old file, written over.
    InPlace,
    /// It is no plain file: what is written is gone at once.
    Stream,
}

/// A name has 255 bytes: a dot, this much of the final one, a dot, the token, the suffix.
const KEPT_NAME: usize = 255 - 2 - TOKEN - PARTIAL_SUFFIX.len();
const TOKEN: usize = 13;
const TRIES: usize = 8;

impl NewFile {
    /// Begins a file that will be `name` in `dir`.
    pub fn create(dir: &Dir, name: &Name) -> Result<Self, FsError> {
        let mut tries = 0;
        loop {
            let partial = partial_name(name)?;
            match dir.create(&partial) {
                Ok(file) => return Ok(Self { file, partial, manner: Manner::Renamed }),
                Err(error) if error.errno() == Some(Errno::EXIST) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes up a file that was begun as `partial` and will be `name`.
    pub fn take_up(dir: &Dir, partial: Name, name: &Name) -> Result<Self, FsError> {
        let file = dir.write(&partial.clone().into())?;
        let manner = if partial == *name { Manner::InPlace } else { Manner::Renamed };
        Ok(Self { file, partial, manner })
    }

    /// Writes over the file that is `name` in `dir`.
    pub fn in_place(dir: &Dir, name: &Name) -> Result<Self, FsError> {
        Self::take_up(dir, name.clone(), name)
    }

    /// Writes to what this machine's own user opened, and calls `name`.
    pub const fn stream(file: File, name: Name) -> Self {
        Self { file, partial: name, manner: Manner::Stream }
    }

    /// How it comes to its name.
    pub const fn manner(&self) -> Manner {
        self.manner
    }

    /// The file, to be written.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Its name until it is whole.
    pub const fn partial(&self) -> &Name {
        &self.partial
    }

    /// Makes the content last through a power failure.
    pub fn sync(&self) -> Result<(), FsError> {
        match rustix::fs::fsync(self.file.as_fd()) {
            // A device or a FIFO has nothing to sync.
            Err(Errno::INVAL) if self.manner == Manner::Stream => Ok(()),
            synced => synced.map_err(|errno| FsError::new("sync", self.partial.as_bytes(), errno)),
        }
    }

    /// Gives it its length, which holes at its end or an old file's rest may have kept from it.
    pub fn set_length(&self, length: u64) -> Result<(), FsError> {
        match self.manner {
            Manner::Stream => Ok(()),
            Manner::Renamed | Manner::InPlace => rustix::fs::ftruncate(self.file.as_fd(), length)
                .map_err(|errno| FsError::new("set the length of", self.partial.as_bytes(), errno)),
        }
    }

    /// Gives it its name. For the name to last through a power failure too, `dir` must be synced.
    pub fn commit(self, dir: &Dir, name: &Name, replace: Replace) -> Result<File, FsError> {
        match self.manner {
            Manner::Renamed => dir.rename(&self.partial, dir, name, replace)?,
            Manner::InPlace | Manner::Stream => {}
        }
        Ok(self.file)
    }

    /// Gives it up. What was written in place stays as it is.
    pub fn discard(self, dir: &Dir) -> Result<(), FsError> {
        match self.manner {
            Manner::Renamed => dir.remove_file(&self.partial),
            Manner::InPlace | Manner::Stream => Ok(()),
        }
    }
}

/// `.NAME.TOKEN.hikyaku`
fn partial_name(name: &Name) -> Result<Name, FsError> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())
        .map_err(|errno| FsError::new("draw a random name for", name.as_bytes(), errno))?;
    let mut bits = u64::from_le_bytes(random);
    let kept = &name.as_bytes()[..name.as_bytes().len().min(KEPT_NAME)];
    let mut bytes = vec![b'.'];
    bytes.extend_from_slice(kept);
    bytes.push(b'.');
    for _ in 0..TOKEN {
        bytes.push(b"abcdefghijklmnopqrstuvwxyz234567"[(bits & 31) as usize]);
        bits >>= 5;
    }
    bytes.extend_from_slice(PARTIAL_SUFFIX.as_bytes());
    Name::new(&bytes).map_err(|error| FsError::Path { path: name.shown().to_string(), error })
}
