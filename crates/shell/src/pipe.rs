//! A stream of a connection as a pipe that blocks.

use bytes::Bytes;
use hikyaku_net::blocking::block_on;
use hikyaku_reach::{ReceiveHalf, SendHalf};
use std::io::{self, ErrorKind, Read, Write};

/// What comes from the other end.
pub(crate) struct From(ReceiveHalf, Bytes);

/// What goes to the other end. Dropping it ends the stream.
pub(crate) struct To(SendHalf);

impl From {
    pub(crate) const fn new(half: ReceiveHalf) -> Self {
        Self(half, Bytes::new())
    }
}

impl To {
    pub(crate) const fn new(half: SendHalf) -> Self {
        Self(half)
    }

    /// Ends the stream, and waits until the other end's transport has all of it.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.finish();
        block_on(self.0.delivered()).map_err(broken)
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, error)
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.1.is_empty() {
            match block_on(self.0.read_chunk()).map_err(broken)? {
                Some(run) => self.1 = Bytes::from(run.to_vec()),
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.1.len());
        buffer[..length].copy_from_slice(&self.1.split_to(length));
        Ok(length)
    }
}

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        block_on(self.0.write_chunk(Bytes::copy_from_slice(bytes))).map_err(broken)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for To {
    fn drop(&mut self) {
        self.0.finish();
    }
}
