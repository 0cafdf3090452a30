//! A source that has no size: a FIFO or an open descriptor gives its bytes in order, and only once.

use crate::descriptor::{descriptor_number, open_descriptor};
use crate::dir::Meta;
use crate::error::FsError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, open, stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Interval at which a reader that waits checks whether the bytes are still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A source of bytes without a size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// An open descriptor of this process.
    Descriptor(u32),
    /// A FIFO, and its device and inode.
    Fifo(PathBuf, (u64, u64)),
}

impl Incoming {
    /// The one that a path names; `None` if it names anything else, or nothing.
    pub fn of(path: &Path) -> Option<Self> {
        if let Some(number) = descriptor_number(path) {
            return Some(Self::Descriptor(number));
        }
        let stat = stat(path).ok()?;
        let is_fifo = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
        is_fifo.then(|| Self::Fifo(path.to_owned(), Meta::new(&stat).identity))
    }

    /// Opens it, without waiting for a writer.
    ///
    /// # Errors
    ///
    /// There is no such descriptor, the FIFO cannot be read, or something else has its name by now.
    pub fn open(&self) -> Result<File, FsError> {
        match self {
            Self::Descriptor(number) => {
                let path = format!("/dev/fd/{number}");
                open_descriptor(*number)
                    .map_err(|error| FsError::io("open", path.as_bytes(), &error))
            }
            Self::Fifo(path, identity) => {
                let bytes = path.as_os_str().as_bytes();
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let file = open(path, flags, Mode::empty());
                let file = file.map_err(|errno| FsError::new("open", bytes, errno))?;
                match Meta::of(&file)?.identity == *identity {
                    true => Ok(file.into()),
                    false => Err(FsError::exchanged(bytes)),
                }
            }
        }
    }
}

/// Waits for bytes of an open FIFO or descriptor, and reads them. Returns no bytes at their end.
///
/// # Errors
///
/// They cannot be read, or `goes_on` has returned false (`ECANCELED`).
pub fn read_incoming(
    file: &mut File,
    bytes: &mut [u8],
    goes_on: &dyn Fn() -> bool,
) -> io::Result<usize> {
    let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    let check = || if goes_on() { Ok(()) } else { Err(Errno::CANCELED) };
    loop {
        check()?;
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&look)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match file.read(bytes) {
            Ok(0) if !bytes.is_empty() && is_pipe(file) => {
                // Ctrl-C ends the writer as well, and its end is not that of the data.
                thread::sleep(LOOK);
                check()?;
                return Ok(0);
            }
            Err(error)
                if matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::INTR)) => {}
            read => return read,
        }
    }
}

fn is_pipe(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.file_type().is_fifo())
}

#[cfg(test)]
mod tests;
