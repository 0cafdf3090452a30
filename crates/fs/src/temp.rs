//! A file that gets its name when it is whole.

use crate::dir::{Dir, Replace};
use crate::error::FsError;
use crate::path::Name;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::os::fd::AsFd;

/// How the names of unfinished files end.
pub const PARTIAL_SUFFIX: &str = ".hikyaku";

/// A new file under a name that nobody can guess, beside the one that it will have. What is dropped
/// before [`NewFile::commit`] stays, to be taken up again.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    partial: Name,
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
                Ok(file) => return Ok(Self { file, partial }),
                Err(error) if error.errno() == Some(Errno::EXIST) && tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes up a file that was begun as `partial`.
    pub fn take_up(dir: &Dir, partial: Name) -> Result<Self, FsError> {
        let file = dir.write(&partial.clone().into())?;
        Ok(Self { file, partial })
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
        rustix::fs::fsync(self.file.as_fd())
            .map_err(|errno| FsError::new("sync", self.partial.as_bytes(), errno))
    }

    /// Gives it its name. For the name to last through a power failure too, `dir` must be synced.
    pub fn commit(self, dir: &Dir, name: &Name, replace: Replace) -> Result<File, FsError> {
        dir.rename(&self.partial, dir, name, replace)?;
        Ok(self.file)
    }

    /// Gives it up.
    pub fn discard(self, dir: &Dir) -> Result<(), FsError> {
        dir.remove_file(&self.partial)
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
