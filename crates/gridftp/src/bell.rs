//! Wakes the thread of a channel while it waits for the control connection.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Rung by the thread of a data connection when that has nothing more to do.
#[derive(Debug)]
pub(crate) struct Bell {
    button: UnixStream,
    /// Readable while it rings.
    sound: UnixStream,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        let (button, sound) = UnixStream::pair()?;
        button.set_nonblocking(true)?;
        sound.set_nonblocking(true)?;
        Ok(Self { button, sound })
    }

    pub(crate) fn ring(&self) {
        // Without room for another byte it rings already.
        let _ = (&self.button).write(&[0]);
    }

    /// Stops the ringing.
    pub(crate) fn stop(&self) {
        let mut bytes = [0; 64];
        while (&self.sound).read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sound.as_fd()
    }
}
