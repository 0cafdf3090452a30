//! The halves of a stream for code that blocks.

use crate::carrier::{ReceiveHalf, SendHalf};
use bytes::Bytes;
use hikyaku_net::blocking::block_on;
use std::io::{self, ErrorKind, Read, Write};

/// Reads the bytes that the other end sends.
pub struct StreamReader(ReceiveHalf, Bytes);

/// Sends bytes to the other end. Dropping it ends the stream.
pub struct StreamWriter(SendHalf);

impl StreamReader {
    /// The reader of this half.
    pub const fn new(half: ReceiveHalf) -> Self {
        Self(half, Bytes::new())
    }
}

impl StreamWriter {
    /// The writer of this half.
    pub const fn new(half: SendHalf) -> Self {
        Self(half)
    }

    /// Ends the stream, and waits until the other end's transport has all of it.
    ///
    /// # Errors
    ///
    /// The connection is lost before that.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.finish();
        block_on(self.0.delivered()).map_err(broken)
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, error)
}

impl Read for StreamReader {
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

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        block_on(self.0.write_chunk(Bytes::copy_from_slice(bytes))).map_err(broken)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.0.finish();
    }
}
