//! What takes bytes in order only: a FIFO, a device, an open descriptor.
//!
//! A FIFO holds up its writer until somebody reads. A writer in a process that serves a peer must end when the peer has
//! gone, so it does not block in open(2) or write(2): it asks again and again, and looks at its [`Patience`] meanwhile.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Tells whether a writer goes on waiting for the reader of a FIFO.
#[derive(Clone)]
pub struct Patience(Arc<dyn Fn() -> bool + Send + Sync>);

/// An open FIFO, device or descriptor.
#[derive(Debug)]
pub struct Stream {
    file: File,
    patience: Patience,
}

/// Time between two looks at the patience of a writer.
const LOOK: Duration = Duration::from_millis(50);

impl Patience {
    /// Waits as long as `goes_on` returns true. It is called about twenty times a second.
    pub fn new(goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(goes_on))
    }

    /// Waits for ever: whoever ends the wait ends the process.
    pub fn endless() -> Self {
        Self::new(|| true)
    }

    fn check(&self) -> Result<(), Errno> {
        if (self.0)() { Ok(()) } else { Err(Errno::CANCELED) }
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Patience")
    }
}

impl Stream {
    /// A descriptor that is open already. Its flags stay as they are, since it may be shared with other processes.
    pub fn of(file: File) -> Self {
        Self { file, patience: Patience::endless() }
    }

    pub(crate) fn open_device(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
        open(path, flags, Mode::empty()).map(|file| Self::of(file.into()))
    }

    pub(crate) fn open_fifo(path: &Path, patience: Patience) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        loop {
            match open(path, flags, Mode::empty()) {
                Ok(file) => return Ok(Self { file: file.into(), patience }),
                // No process has it open for reading (fifo(7)).
                Err(Errno::NXIO) => patience.check()?,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            thread::sleep(LOOK);
        }
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn split(self) -> (File, Patience) {
        (self.file, self.patience)
    }
}

/// Writes to an open stream, and waits with patience where it has no room.
pub(crate) struct Pour<'a> {
    pub(crate) file: &'a File,
    pub(crate) patience: &'a Patience,
}

impl Write for Pour<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => return written,
            }
            self.patience.check()?;
            let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
            let mut room = [PollFd::new(self.file, PollFlags::OUT)];
            match poll(&mut room, Some(&look)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
