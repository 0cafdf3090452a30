//! Waking by a pipe, for systems without eventfd(2).

use rustix::io::ioctl_fionbio;
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};

/// A pipe, readable while it is raised.
#[derive(Debug)]
pub(super) struct Signal {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Signal {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = pipe()?;
        ioctl_fionbio(&reader, true)?;
        ioctl_fionbio(&writer, true)?;
        Ok(Self { reader, writer })
    }

    pub(super) fn raise(&self) {
        // The write fails only if the pipe is full, in which case it is readable already.
        let _ = (&self.writer).write(&[1]);
    }

    pub(super) fn lower(&self) {
        // A raised signal is one byte: it is raised again only after this.
        let _ = (&self.reader).read(&mut [0; 64]);
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// Timers of these systems have no slack that a thread could set.
#[cfg(not(target_os = "linux"))]
pub fn sharpen_timers() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn a_signal_is_readable_while_it_is_raised() {
        let signal = Signal::new().unwrap();
        let is_raised = || {
            let mut polled = [PollFd::new(&signal, PollFlags::IN)];
            poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
        };
        for _ in 0..3 {
            assert!(!is_raised());
            signal.lower();
            signal.raise();
            signal.raise();
            assert!(is_raised());
            signal.lower();
        }
        // A pipe that is full stays raised, and nobody waits for room.
        (0..100_000).for_each(|_| signal.raise());
        assert!(is_raised());
    }
}
