//! A blocking pipe within a limit, such as standard input or output of a program.

use super::Pace;
use std::io::{self, Read, Write};
use std::thread;
use std::time::Instant;

/// A reader or a writer whose bytes wait for the time slots of a limit; without a limit they pass as they are.
#[derive(Debug)]
pub struct WithinPace<T> {
    inner: T,
    pace: Option<Pace>,
}

impl<T> WithinPace<T> {
    /// `inner` within the limit of `pace`.
    pub const fn new(inner: T, pace: Option<Pace>) -> Self {
        Self { inner, pace }
    }

    /// The length of the next piece, of `most` bytes.
    fn piece(&self, most: usize) -> usize {
        self.pace.as_ref().map_or(most, |pace| most.min(pace.piece_bytes()))
    }

    /// Waits until so many bytes may pass.
    fn wait(&self, bytes: usize) {
        if let Some(pace) = self.pace.as_ref().filter(|_| bytes > 0) {
            let now = Instant::now();
            thread::sleep(pace.reserve(now, bytes).saturating_duration_since(now));
        }
    }
}

impl<T: Read> Read for WithinPace<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.piece(buffer.len());
        let length = self.inner.read(&mut buffer[..most])?;
        self.wait(length);
        Ok(length)
    }
}

impl<T: Write> Write for WithinPace<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = self.piece(bytes.len());
        self.wait(most);
        self.inner.write(&bytes[..most])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
